"""The command line among other programs: pipes, closed streams, terminals, two runs at once."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import subprocess
import sys
import threading

import pytest

from command_line import SMALL, refused, run
from longtail import load
from longtail.cli import main
from longtail.cli.one_at_a_time import alone_in
from longtail.errors import InputError
from longtail.recipes.longtail import LongtailClassifier

COMMAND = [sys.executable, "-m", "longtail"]


@pytest.fixture
def pipe(tmp_path):
    """A function that makes a named pipe from which a file's content comes once."""
    writers = []

    def made(source):
        path = tmp_path / "pipe"
        os.mkfifo(path)
        content = source.read_bytes()
        writers.append(threading.Thread(target=path.write_bytes, args=(content,), daemon=True))
        writers[-1].start()
        return path

    yield made
    for writer in writers:
        writer.join(timeout=10)
        assert not writer.is_alive()


def test_a_pipe_is_trained_from_if_its_format_is_named(place, pipe, capsys, tmp_path):
    named = ("--format", "json-lines", "--model", tmp_path / "model", *SMALL)
    code, _, err = run(capsys, "train", pipe(place / "train.jsonl"), *named)
    assert code == 0
    assert "40 points, 10 labels" in err


def test_the_format_of_a_pipe_is_not_guessed(capsys, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    message = refused(capsys, "train", tmp_path / "pipe", "--model", tmp_path / "model")
    assert "is a pipe, which can be read only once" in message
    assert "Pass --format, one of" in message


@pytest.mark.parametrize("to_file", [True, False])
def test_texts_from_a_pipe_are_all_answered(to_file, place, pipe, capsys, tmp_path):
    command = ("predict", place / "model", "--format", "json-lines")
    expected = run(capsys, *command, place / "test.jsonl")[1]
    output = tmp_path / "answers.jsonl"
    more = ("--output", output) if to_file else ()
    code, out, _ = run(capsys, *command, pipe(place / "test.jsonl"), *more)
    assert code == 0
    assert (output.read_text() if to_file else out) == expected


def test_standard_input_is_trained_from(place, tmp_path):
    with (place / "train.jsonl").open("rb") as stream:
        done = subprocess.run(
            [*COMMAND, "train", "-", "--format", "json-lines", "--model", tmp_path / "model",
             *SMALL],
            stdin=stream, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "40 points, 10 labels" in done.stderr


def test_nobody_looks_for_garbage_when_a_command_ends():
    script = (
        "import atexit, gc\n"
        "from longtail.cli import main\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0))\n"  # called after those of main
        "main(['predict', 'no-such-model'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_streams_that_are_closed_are_no_error(place):
    model = str(place / "model")
    for streams, said in ((">&-", ""), ("2>&-", "drink")):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {streams}', "sh", *COMMAND, "predict", model, "--text",
             "red wine"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert said in done.stdout


def test_nothing_that_is_opened_later_takes_the_place_of_a_closed_stream():
    script = (
        "import os, sys; from longtail.cli import main\n"
        "main(['predict', 'no-such-model'])\n"
        "print(*map(os.get_inheritable, range(3)), sys.stdin)\n"
    )
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-c", script]
    done = subprocess.run(closed, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True True True None\n"), done.stderr


def test_a_reader_that_leaves_is_no_error(place):
    reader, writer = os.pipe()
    os.close(reader)  # before anything is written, as `head` leaves before all is
    with os.fdopen(writer, "w") as left:
        done = subprocess.run(
            [*COMMAND, "inspect", str(place / "model")],
            stdout=left, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("words", ["inspect MODEL", "--version", "train --help"])
def test_output_that_cannot_be_written_is_one_sentence(place, words, buffered):
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [*COMMAND, *words.replace("MODEL", str(place / "model")).split()],
            env=os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"},
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "longtail: error: No space left on device. Free some space, then run the same command "
        "again.\n"
    )


@pytest.mark.parametrize("buffered", [True, False])
def test_output_of_which_the_disk_takes_a_part_is_told(place, tmp_path, buffered):
    (tmp_path / "texts.txt").write_text("red wine in a glass\n" * 500)
    command = [*COMMAND, "predict", place / "model", tmp_path / "texts.txt", "--format", "text"]
    with (tmp_path / "answers.jsonl").open("w") as answers:
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *command],
            env=os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"},
            stdout=answers, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "error: File too large. Free some space" in done.stderr


def test_standard_output_without_a_buffer_is_left_as_it_was(place, monkeypatch, tmp_path):
    with (tmp_path / "names.txt").open("wb", buffering=0) as raw:
        stream = io.TextIOWrapper(raw, write_through=True)
        monkeypatch.setattr("sys.stdout", stream)
        assert main(["labels", "list", str(place / "model")]) == 0
        assert sys.stdout is stream
        stream.write("more")
    names = load(place / "model").label_space.names
    assert (tmp_path / "names.txt").read_text() == "".join(f"{name}\n" for name in names) + "more"


def test_names_that_a_terminal_cannot_write_are_escaped(tmp_path, monkeypatch):
    model = LongtailClassifier(dimension=8, epochs=1, n_threads=1)
    model.fit(["red wine", "old car"] * 9, [["\N{WINE GLASS}"], ["auto"]] * 9).save(tmp_path / "m")
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["predict", str(tmp_path / "m"), "--text", "wine", "--top-k", "1"]) == 0
    assert written.getvalue().split(b"\t")[1] == b"\\U0001f377\n"


def test_ctrl_c_before_there_is_anything_to_do(capsys, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("longtail.cli.parser.importlib.import_module", pressed)
    assert run(capsys, "train", __file__, "--model", "y") == (130, "", "Stopped.\n")


def test_two_trainings_do_not_share_a_folder(place, capsys, tmp_path):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", *SMALL)
    checkpoints = tmp_path / "model.checkpoint"
    (checkpoints / "run").mkdir(parents=True)
    (checkpoints / "run" / "module.checkpoint").write_text("of the one that is running")
    with alone_in(checkpoints, "model"):
        message = refused(capsys, *command, "--fresh")
        assert "Another training is writing to" in message
    assert len(list(checkpoints.glob("*/*"))) == 1
    assert run(capsys, *command, "--fresh")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_folders_made_for_nothing_are_removed(tmp_path):
    place = tmp_path / "runs" / "first" / "model.checkpoint"
    with alone_in(place, "model"):
        assert place.is_dir()
    assert not list(tmp_path.iterdir())
    with alone_in(place, "model"):
        (place.parent / "model").mkdir()
    assert [path.name for path in place.parent.iterdir()] == ["model"]


def test_a_folder_that_another_training_removes_meanwhile_is_not_locked(tmp_path, monkeypatch):
    place, lock = tmp_path / "model.checkpoint", fcntl.flock

    def lock_too_late(handle, how):
        place.rmdir()
        place.mkdir()
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", lock_too_late)
    with pytest.raises(InputError, match="Another training"), alone_in(place, "model"):
        pass


def test_a_folder_that_is_removed_before_it_is_opened_is_made_again(tmp_path, monkeypatch):
    place, opened, refusals = tmp_path / "model.checkpoint", os.open, iter([True, True, False])

    def gone(path, *others):
        if path == place and next(refusals):
            place.rmdir()
        return opened(path, *others)

    monkeypatch.setattr(os, "open", gone)
    with alone_in(place, "model"):
        assert place.is_dir()


def test_file_systems_without_locks_are_no_error(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with alone_in(tmp_path / "model.checkpoint", "model"):
        assert (tmp_path / "model.checkpoint").is_dir()


def test_words_are_read_as_utf_8_where_the_locale_is_not(place, capsys, tmp_path):
    half = os.fsencode("röd").decode("ascii", "surrogateescape")
    code, _, _ = run(capsys, "labels", "rename", place / "model", "red", half, tmp_path / "model")
    assert code == 0
    assert {"röd", "white"} < set(load(tmp_path / "model").label_space.names)
    own = ("--text-column", half, "--model", tmp_path / "other")
    assert "There is no key 'röd'" in refused(capsys, "train", place / "train.jsonl", *own)


def test_a_text_that_is_not_utf_8_is_refused(place, capsys):
    message = refused(capsys, "predict", place / "model", "--text", "r\udcf6d wine")
    assert r"--text is not UTF-8: 'r\udcf6d wine'. Convert it" in message


def test_a_text_is_the_same_in_every_locale(capsys, tmp_path):
    model = LongtailClassifier(dimension=8, epochs=1, n_threads=1)
    model.fit(["röd", "gammal"] * 9, [["wine"], ["car"]] * 9).save(tmp_path / "model")
    half = os.fsencode("röd").decode("ascii", "surrogateescape")
    whole, parted = (run(capsys, "predict", tmp_path / "model", "--text", t) for t in ("röd", half))
    assert whole == parted
    assert whole[1].splitlines()[0].endswith("\twine")
