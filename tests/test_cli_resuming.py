"""Files of answers that are gone on with after a stop."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shutil
from unittest.mock import Mock

import pytest

from longtail import load
from longtail.cli import answer_output, main
from longtail.cli.answer_output import identity_of, resuming
from longtail.cli.one_at_a_time import lock
from longtail.cli.points import points_in
from longtail.errors import InputError

TEXTS = [f"{adjective} wine {i}" for i in range(5) for adjective in ("red", "old")]


class Stopped(BaseException):
    """As if somebody had pressed Ctrl-C."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("longtail.cli.points.POINTS_AT_ONCE", 3)


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def predict(model, texts, target, *more):
    return main(["predict", str(model), str(texts), "--output", str(target), *more])


def stop_after(monkeypatch, n_blocks, error):
    """Let the model answer some blocks, then raise."""
    from longtail.predictor import Predictor

    whole = Predictor.predict_topk
    asked = []

    def predict_topk(self, points, *arguments, **keywords):
        asked.append(len(points))
        if len(asked) > n_blocks:
            raise error
        return whole(self, points, *arguments, **keywords)

    monkeypatch.setattr(Predictor, "predict_topk", predict_topk)
    return asked


def test_a_run_that_is_stopped_before_its_first_answer_leaves_nothing(tmp_path):
    with pytest.raises(Stopped), resuming(tmp_path / "out.jsonl", {"model": 1}):
        raise Stopped
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("moment", ["lock", "_set_aside", "_resumed"])
def test_a_run_that_is_stopped_while_it_opens_its_output_leaves_nothing(
    tmp_path, monkeypatch, moment
):
    monkeypatch.setattr(answer_output, moment, Mock(side_effect=[Stopped, None]))
    with pytest.raises(Stopped):
        resuming(tmp_path / "out.jsonl", {"model": 1}).__enter__()
    assert not [*tmp_path.iterdir()]


def test_a_run_that_is_stopped_once_all_is_written_leaves_its_output_alone(tmp_path):
    def stopped_behind(path, target):
        path.replace(target)
        raise Stopped

    path, identity = tmp_path / "out.jsonl", {"model": 1}
    with pytest.raises(Stopped), resuming(path, identity, finish=stopped_behind) as writer:
        writer.write(b"one\n", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
@pytest.mark.parametrize("n_blocks", [1, 3])
def test_a_stopped_run_is_gone_on_with(
    text_model_path, texts, tmp_path, monkeypatch, capsys, name, n_blocks
):
    whole, target = tmp_path / f"whole-{name}", tmp_path / name
    assert predict(text_model_path, texts, whole) == 0
    with monkeypatch.context() as patch:
        stop_after(patch, n_blocks, KeyboardInterrupt)
        assert predict(text_model_path, texts, target) == 130
    assert not target.exists()
    partial = tmp_path / f".{name}.partial"
    partial.write_bytes(partial.read_bytes() + b"half a li")  # as a kill may leave it
    capsys.readouterr()
    with monkeypatch.context() as patch:
        asked = stop_after(patch, 9, KeyboardInterrupt)
        assert predict(text_model_path, texts, target) == 0
    assert sum(asked) == 10 - 3 * n_blocks
    assert f"has answered: {3 * n_blocks} points." in capsys.readouterr().err
    assert target.read_bytes() == whole.read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    content = target.read_bytes()
    lines = (gzip.decompress(content) if name.endswith("gz") else content).splitlines()
    assert [json.loads(line)["text"] for line in lines] == TEXTS


@pytest.mark.parametrize("change", ["options", "input", "damage"])
def test_what_belongs_to_something_else_is_not_gone_on_with(
    text_model_path, texts, tmp_path, monkeypatch, change
):
    target = tmp_path / "out.jsonl"
    with monkeypatch.context() as patch:
        stop_after(patch, 2, KeyboardInterrupt)
        assert predict(text_model_path, texts, target) == 130
    if change == "input":
        texts.write_text("\n".join(["new wine"] * 10), encoding="utf-8")
    if change == "damage":
        (tmp_path / ".out.jsonl.partial").write_bytes(b"")
    more = ["--top-k", "2"] if change == "options" else []
    assert predict(text_model_path, texts, target, *more) == 0
    fresh = tmp_path / "fresh.jsonl"
    assert predict(text_model_path, texts, fresh, *more) == 0
    assert target.read_bytes() == fresh.read_bytes()


def test_what_another_run_has_answered_is_kept_and_can_be_gone_on_with(
    text_model_path, texts, tmp_path, monkeypatch, capsys
):
    target = tmp_path / "out.jsonl"
    with monkeypatch.context() as patch:
        stop_after(patch, 2, KeyboardInterrupt)
        assert predict(text_model_path, texts, target) == 130
    capsys.readouterr()
    assert predict(text_model_path, texts, target, "--top-k", "2") == 0
    err = capsys.readouterr().err
    assert "stopped after 6 points, with --top-k 5, not 2. This one starts over." in err
    (kept,) = tmp_path.glob(".out.jsonl.*.partial")
    assert str(kept) in err
    assert len(kept.read_bytes().splitlines()) == 6
    with monkeypatch.context() as patch:
        asked = stop_after(patch, 9, KeyboardInterrupt)
        assert predict(text_model_path, texts, target) == 0
    assert sum(asked) == 4
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("option", ["--allowed", "--masked"])
def test_other_labels_of_an_option_are_told(
    text_model_path, texts, tmp_path, monkeypatch, capsys, option
):
    names = tmp_path / "names.txt"
    names.write_text("drink\n", encoding="utf-8")
    target, more = tmp_path / "out.jsonl", [option, str(names)]
    with monkeypatch.context() as patch:
        stop_after(patch, 2, KeyboardInterrupt)
        assert predict(text_model_path, texts, target, *more) == 130
    names.write_text("drink\nvehicle\n", encoding="utf-8")
    capsys.readouterr()
    assert predict(text_model_path, texts, target, *more) == 0
    assert f"with other {option} labels." in capsys.readouterr().err


def test_another_input_is_told(text_model_path, texts, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stop_after(patch, 1, KeyboardInterrupt)
        assert predict(text_model_path, texts, tmp_path / "out.jsonl") == 130
    texts.write_text("new wine", encoding="utf-8")
    capsys.readouterr()
    assert predict(text_model_path, texts, tmp_path / "out.jsonl") == 0
    assert "with another input, or one that was changed since." in capsys.readouterr().err


def test_after_wrong_input_nothing_is_left(text_model_path, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "red wine"}\n' * 7 + '{"text": 3}\n', encoding="utf-8")
    assert predict(text_model_path, source, tmp_path / "out.jsonl") == 2
    assert list(tmp_path.iterdir()) == [source]


def test_a_name_that_is_no_utf_8_is_one_all_the_same(text_model_path, texts, tmp_path):
    folder = tmp_path / os.fsdecode(b"b\xe4ume")
    try:
        folder.mkdir()
    except OSError:  # as on a Mac
        pytest.skip("this file system has UTF-8 names only")
    source, target = folder / "in.txt", tmp_path / "out.jsonl"
    source.write_bytes(texts.read_bytes())
    assert predict(text_model_path, source, target) == 0
    assert len(target.read_text().splitlines()) == len(TEXTS)


def test_a_run_that_has_just_ended_keeps_its_output(texts, tmp_path, monkeypatch):
    target, lock = tmp_path / "out", fcntl.flock

    def flock(stream, how):
        if (tmp_path / ".out.partial").exists():
            (tmp_path / ".out.partial").replace(target)  # as the other run does at that moment
        lock(stream, how)

    (tmp_path / ".out.partial").write_bytes(b"all answers\n")
    monkeypatch.setattr(fcntl, "flock", flock)
    run = resuming(target, identity_of(str(texts)))
    with pytest.raises(InputError, match="Another run is writing"):
        run.__enter__()
    assert target.read_bytes() == b"all answers\n"


def test_two_runs_do_not_write_one_file(texts, tmp_path):
    identity = identity_of(str(texts))
    with resuming(tmp_path / "out", identity) as writer:
        writer.write(b"one\n", 1)
        again = resuming(tmp_path / "out", identity)
        with pytest.raises(InputError, match="Another run is writing"):
            again.__enter__()
        with (tmp_path / ".out.partial").open("rb") as stream, pytest.raises(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert (tmp_path / "out").read_bytes() == b"one\n"


def test_a_run_of_another_kind_leaves_alone_what_is_being_written(tmp_path):
    with resuming(tmp_path / "out", {"top_k": 1}) as writer:
        writer.write(b"one\n", 1)
        with pytest.raises(InputError, match="Another run is writing"):
            resuming(tmp_path / "out", {"top_k": 2}).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_bytes() == b"one\n"


def test_what_was_put_in_the_place_of_a_file_is_not_locked(tmp_path):
    path = tmp_path / "out.partial"
    with path.open("ab") as stream:
        path.unlink()
        path.write_bytes(b"")
        with pytest.raises(InputError, match="taken"):
            lock(stream.fileno(), path, "taken")


def test_what_another_version_has_begun_is_not_gone_on_with(tmp_path, monkeypatch):
    (tmp_path / "texts.txt").write_text("red wine\n")
    ours = identity_of(str(tmp_path / "texts.txt"))
    monkeypatch.setattr("longtail.cli.answer_output.__version__", "0.0.1")
    assert identity_of(str(tmp_path / "texts.txt")) != ours


def test_other_content_is_another_input(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("red wine\n")
    before = identity_of(str(texts))
    os.utime(texts, ns=(0, 10**18))  # as long as before
    assert identity_of(str(texts)) != before


def test_answers_of_a_model_that_was_replaced_after_it_was_loaded_are_not_gone_on_with(
    text_model_path, texts, tmp_path, monkeypatch, capsys
):
    model, target = tmp_path / "model", tmp_path / "out.jsonl"
    shutil.copytree(text_model_path, model)

    def replacing(*arguments, **keywords):
        name = load(model).label_space.names[0]
        assert main(["labels", "rename", str(model), name, "another name", str(model)]) == 0
        return points_in(*arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr("longtail.cli.predict.points_in", replacing)
        stop_after(patch, 1, KeyboardInterrupt())
        assert predict(model, texts, target, "--format", "text") == 130
    assert predict(model, texts, target, "--format", "text") == 0
    assert "with another model. This one starts over" in capsys.readouterr().err
    answers = target.read_bytes()
    assert predict(model, texts, target, "--format", "text") == 0
    assert target.read_bytes() == answers


def test_one_text_can_be_explained(text_model_path, capsys):
    assert main(["predict", str(text_model_path), "--text", "old wine", "--explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines[0].split("\t")) == 2
    assert "wine +" in lines[1] or "wine -" in lines[1]
    assert any(line.startswith("labels of the nearest training points, and") for line in lines)
    assert main(["predict", str(text_model_path), "x.txt", "--explain"]) == 2


def test_one_column_is_not_two(text_model_path, tmp_path, monkeypatch, capsys):
    table, target = tmp_path / "points.csv", tmp_path / "answers.jsonl"
    rows = [f"{i},wine,old car,red" for i in range(7)]
    table.write_text("\n".join(["id,a b,a,b", *rows]) + "\n", encoding="utf-8")
    monkeypatch.setattr("longtail.data.blocks.POINTS_AT_ONCE", 3)
    stop_after(monkeypatch, 1, KeyboardInterrupt())
    assert predict(text_model_path, table, target, "--text-column", "a b") == 130
    monkeypatch.undo()
    capsys.readouterr()
    assert predict(text_model_path, table, target, "--text-column", "a", "b") == 0
    assert "Resuming" not in capsys.readouterr().err
    texts = {json.loads(line)["text"] for line in target.read_text().splitlines()}
    assert texts == {"old car red"}


def test_points_without_a_label_are_counted_in_all(text_model_path, tmp_path, monkeypatch, capsys):
    texts, target = tmp_path / "texts.txt", tmp_path / "answers.jsonl"
    texts.write_text("zzz\n" * 5 + "red wine\n" * 5, encoding="utf-8")
    stop_after(monkeypatch, 2, KeyboardInterrupt())
    assert predict(text_model_path, texts, target) == 130
    monkeypatch.undo()
    capsys.readouterr()
    assert predict(text_model_path, texts, target) == 0
    said = capsys.readouterr().err
    assert "Resuming after what an earlier run has answered: 6 points." in said
    assert "No label for 5 points" in said
