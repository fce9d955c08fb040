"""Starting and stopping: what is imported when, Ctrl-C at any moment, SIGTERM, SIGHUP."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from types import SimpleNamespace

import pytest

from command_line import SMALL, refused, run
from longtail.cli.interrupts import HungUp, Terminated, nothing_to_lose, stoppable
from longtail.cli.notices import notice
from longtail.recipes.longtail import LongtailClassifier

COMMAND = [sys.executable, "-m", "longtail"]
HEAVY = {"numpy", "numba", "scipy", "torch"}


@pytest.fixture(autouse=True)
def _heard():
    """What a shell or nohup starts in the background, as these tests, is deaf to some signals."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def imported_by(*arguments):
    """Return exit code, error and which heavy packages a command imports."""
    code = f"""
import sys
from longtail.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as stop:
    code = stop.code
print(code, sorted({HEAVY} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()


@pytest.mark.parametrize("module", ["longtail.cli", "argparse", "longtail.cli.parser"])
def test_ctrl_c_before_anything_is_imported_is_no_traceback(module):
    code = f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
from longtail.__main__ import main
sys.meta_path.insert(0, Finder())
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (130, "Stopped.\n", "")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_next_to_nothing(option):
    assert imported_by(option)[-1] == "0 []"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "no-file", "--model", "x"], "no-file cannot be opened"),
        (["predict", "no-model", "--text", "wine"], "There is no model folder at no-model"),
        (["predict", ".", "no-file"], "no-file cannot be opened"),
        (["evaluate", ".", "no-file"], "no-file cannot be opened"),
        (["serve", "no-model"], "There is no model folder at no-model"),
        (["serve", "~/no-model"], "'~' of a home folder is not expanded here"),
        (["train", "~/no-file", "--model", "x"], "'~' of a home folder is not expanded here"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_imported(arguments, said):
    error, *_, last = imported_by(*arguments)
    assert said in error
    assert last == "2 []"


@pytest.mark.parametrize("option", ["--labels", "--label-pairs"])
def test_a_file_that_is_missing_is_told_before_the_recipe_is_looked_up(place, capsys, option):
    command = ("train", place / "train.jsonl", "--model", "x", "--recipe", "none")
    assert "no-file cannot be opened" in refused(capsys, *command, option, "no-file")
    assert "There is no recipe" in refused(capsys, *command)


def test_the_help_of_a_command_asks_for_no_file(capsys):
    code, out, _ = run(capsys, "predict", "no-model", "--help")
    assert code == 0
    assert "--top-k" in out


def stopped_after(seconds, number, *arguments):
    """Start a command, send it a signal, and return exit code and standard error."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(seconds)
        process.send_signal(number)
        return process.wait(timeout=60), process.stderr.read()


@pytest.mark.parametrize("seconds", [0.2, 0.4, 0.6])
def test_ctrl_c_during_imports_is_one_line(place, tmp_path, seconds):
    """A quick machine has said what the data are by then, or has begun to train."""
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model")
    code, said = stopped_after(seconds, signal.SIGINT, *command)
    *before, last = said.splitlines()
    assert code == 130
    assert last in {"Stopped.", "Stopped: nothing was kept."}
    assert not before or before[0].startswith("40 points")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_stop_that_compiling_loses_is_one_line(capsys, monkeypatch, number, code):
    def compile_something(*_):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        raise RuntimeError("no compiled object yet")

    monkeypatch.setattr("longtail.cli.parser.nothing_to_lose", nullcontext)
    monkeypatch.setattr("longtail.cli.parser.importlib.import_module", compile_something)
    assert run(capsys, "train", __file__, "--model", "y") == (code, "", "Stopped.\n")


@pytest.mark.parametrize(("number", "code_of_it"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_other_signals_stop_a_training_as_ctrl_c_does(
    place, capsys, tmp_path, monkeypatch, number, code_of_it
):
    def asked_to_stop(*_, **__):
        os.kill(os.getpid(), number)
        time.sleep(10)

    monkeypatch.setattr(LongtailClassifier, "fit_dataset", asked_to_stop)
    code, _, err = run(
        capsys, "train", place / "train.jsonl", "--model", tmp_path / "model", *SMALL
    )
    assert code == code_of_it
    assert err.splitlines()[-1] == "Stopped: nothing was kept."
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_closed_terminal_is_told_nothing(monkeypatch):
    def write(_):
        raise OSError(number, "no longer there")

    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=write, flush=lambda: None))
    number = errno.EIO
    notice("Stopped.")
    number = errno.ENOSPC
    with pytest.raises(OSError, match="no longer there"):
        notice("Stopped.")


def test_what_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_of_the_caller_stay():
    def own(*_):
        pass

    before = signal.signal(signal.SIGTERM, own)
    try:
        with stoppable(), nothing_to_lose():
            assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)
    with pytest.raises(Terminated), stoppable():
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("number", "stop"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated), (signal.SIGHUP, HungUp)],
)
def test_a_signal_during_a_clean_up_is_not_lost(number, stop, capsys):
    class Dropping:
        def __del__(self):
            signal.raise_signal(number)

    def clean_up():
        Dropping()
        time.sleep(10)

    with pytest.raises(stop), stoppable():
        clean_up()
    assert capsys.readouterr().err == ""


def test_other_errors_of_clean_ups_are_shown_as_before(monkeypatch):
    class Failing:
        def __del__(self):
            raise ValueError

    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    with stoppable():
        Failing()
    assert [dropped.exc_type for dropped in shown] == [ValueError]
