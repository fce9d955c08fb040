"""Progress for people: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import pytest

from longtail.log import LOG
from longtail.progress import ProgressBar, bar
from longtail.training.run import EpochReport, TrainingRun


class Terminal(io.StringIO):
    def isatty(self):
        return True


def trained(stream, *, first=1, n_batches=2, epochs=3, stage="module I"):
    with ProgressBar(stream) as progress:
        for done in range(first, n_batches * epochs + 1):
            progress.on_batch(stage, done, n_batches * epochs, 8.0 / done if done % 2 else None)
            if done % n_batches == 0:
                progress.on_epoch(EpochReport(stage, done // n_batches, epochs, 8.0 / done))
    return stream.getvalue()


def test_into_a_file_each_epoch_has_one_line_and_no_bar():
    lines = trained(io.StringIO()).splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "module I: epoch 1 of 3",
        "module I: epoch 2 of 3",
        "module I: epoch 3 of 3",
    ]
    assert "loss 1.333" in lines[-1]
    assert lines[-1].endswith("0 s left")


def test_on_a_terminal_the_bar_names_stage_loss_and_time_left():
    text = trained(Terminal())
    last = text.split("\r")[-1]
    assert last.startswith("module I: 100%")
    assert "6/6" in last
    assert "loss" in last
    assert "<" in last  # elapsed<left
    assert text.endswith("\n")  # the bar is closed


def test_what_is_said_after_the_end_goes_where_it_went_before():
    before = LOG.handlers[:], LOG.propagate, LOG.level
    with ProgressBar(io.StringIO()) as progress:
        assert LOG.handlers != before[0]
    assert progress is not None  # else nobody would hold on to it
    assert (LOG.handlers, LOG.propagate, LOG.level) == before


def test_a_stage_that_comes_twice_has_taken_both_times():
    run = TrainingRun(seed=0, n_threads=1)
    for _ in range(2):
        with run.stage("search"):
            time.sleep(0.02)
    assert run.timings["search"]["wall_seconds"] >= 0.04


def test_a_resumed_stage_says_where_it_goes_on():
    assert "module I: resumes after 4 of 6 batches" in trained(io.StringIO(), first=5)
    last = trained(Terminal(), first=5).split("\r")[-1]
    assert "6/6" in last


def test_a_new_stage_ends_the_bar_of_the_one_before():
    stream = Terminal()
    with ProgressBar(stream) as progress:
        progress.on_batch("module I", 1, 2, 1.0)
        progress.on_batch("module IV", 1, 2, 1.0)
    assert [part for part in ("module I:", "module IV:") if part in stream.getvalue()] == [
        "module I:",
        "module IV:",
    ]
    assert stream.getvalue().count("\n") == 2


def test_a_stage_without_batches_has_one_line_with_its_time():
    stream = io.StringIO()
    with ProgressBar(stream) as progress:
        progress.on_stage("module I", None)
        progress.on_batch("module I", 1, 1, 4.0)
        progress.on_epoch(EpochReport("module I", 1, 1, 4.0))
        progress.on_stage("module I", 7.0)
        progress.on_stage("search", None)
        progress.on_stage("search", 1234.4)
    assert stream.getvalue().splitlines() == [
        "module I ...",
        "module I: epoch 1 of 1, loss 4, 0 s left",
        "search ... 1,234 s",
    ]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_is_said_after_a_stopped_stage_begins_on_a_line_of_its_own(stream):
    with ProgressBar(stream) as progress:
        progress.on_stage("search", None)
    assert stream.getvalue() == "search ...\n"


def test_the_first_loss_is_shown_when_it_is_not_measured_at_once():
    stream = io.StringIO()
    with ProgressBar(stream) as progress:
        progress.on_batch("module I", 1, 2, None)
        progress.on_batch("module I", 2, 2, 3.25)
        progress.on_epoch(EpochReport("module I", 1, 1, 3.25))
    assert "loss 3.25" in stream.getvalue()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals are Unix's")
def test_a_terminal_that_does_not_tell_its_size_has_a_bar_too():
    import os
    import pty

    parent, child = pty.openpty()  # 0 by 0
    script = (
        "from longtail.progress import ProgressBar\n"
        "with ProgressBar() as progress:\n    progress.on_batch('module I', 2, 2, 1.0)\n"
    )
    subprocess.run([sys.executable, "-c", script], stdout=child, stderr=child, check=True)
    os.close(child)
    assert b"module I: 100%" in os.read(parent, 10_000)
    os.close(parent)


def test_what_others_say_spoils_no_line():
    stream = io.StringIO()
    with ProgressBar(stream) as progress:
        progress.on_stage("search", None)
        LOG.warning("Compiling.")
        progress.on_stage("search", 3.0)
        LOG.info("Done.")
    assert stream.getvalue() == "search ...\nCompiling.\nsearch ... 3 s\nDone.\n"


def test_a_process_without_standard_error_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with ProgressBar() as progress:
        progress.on_stage("search", None)
        progress.on_stage("search", 3.0)
    with bar("predict", 10, unit=" points") as shown:
        shown.update(10)


def test_a_stage_of_another_training_has_a_bar_of_its_own():
    stream = Terminal()
    with ProgressBar(stream) as progress:
        for n_done in (2, 4):  # the first is stopped
            before = len(stream.getvalue())
            progress.on_stage("vectors", None)
            for done in range(1, n_done + 1):
                progress.on_batch("vectors", done, 4, 1.0)
    assert "vectors: 100%" in stream.getvalue()[before:]
