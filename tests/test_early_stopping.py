"""Training that stops by held-out points: when, with what, and after having been killed."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail.errors import InputError, TrainingError
from longtail.progress import ProgressBar
from longtail.training.batches import AllLabels
from longtail.training.checkpoints import CheckpointFolder
from longtail.training.early_stopping import BestEpoch, EarlyStopping, HeldOut
from longtail.training.fingerprint import Fingerprint
from longtail.training.loop import train
from longtail.training.run import TrainingData
from longtail.training.schedule import Schedule
from small_runs import a_run

CPU = torch.device("cpu")
LABELS = csr_array(np.eye(4, dtype=np.float32)[np.arange(12) % 4])


class Walk:
    """A task whose tensor takes a random step a batch: it depends on all batches before."""

    def __init__(self):
        self.place = torch.zeros(2, 3)
        self.n_steps = torch.zeros(1, dtype=torch.int64)

    def step(self, batch, learning_rate, share, *, measure):
        self.place += learning_rate * torch.randn(2, 3) * float(batch.points.sum())
        self.n_steps += 1
        return 1.0 if measure else None

    def state(self):
        return {"place": self.place, "n_steps": self.n_steps}

    def quality(self):
        """A number that goes up and down as the walk does."""
        return float(self.place.sum().sin())


class Recorder:
    def __init__(self):
        self.epochs = []

    def on_batch(self, stage, done, total, loss):
        pass

    def on_epoch(self, report):
        self.epochs.append((report.epoch, report.quality))


class Killer(Recorder):
    """Kills training after a batch, counted from 1, or after an epoch."""

    def __init__(self, batch=0, epoch=0):
        super().__init__()
        self.batch, self.epoch = batch, epoch

    def on_batch(self, stage, done, total, loss):
        if done == self.batch:
            raise KeyboardInterrupt

    def on_epoch(self, report):
        if report.epoch == self.epoch:
            raise KeyboardInterrupt


def walk(run, epochs=30, patience=3, quality=None):
    """Train a walk, and return it."""
    task = Walk()
    stopping = None
    if patience is not None:
        stopping = EarlyStopping(quality or task.quality, patience)
    schedule = Schedule(epochs=epochs, learning_rate=0.1)
    train(task, AllLabels(LABELS, 5), schedule, run, "walk", stopping)
    return task


def without_seconds(history):
    return [{k: v for k, v in entry.items() if k != "seconds"} for entry in history]


def stops_after(qualities, patience):
    """The epochs that are trained, and the best of them, by the words of the docstring."""
    best, n_since = 0, 0
    for epoch in range(1, len(qualities) + 1):
        if epoch == 1 or qualities[epoch - 1] > qualities[best - 1]:
            best, n_since = epoch, 0
        else:
            n_since += 1
        if n_since == patience:
            return epoch, best
    return len(qualities), best


class TestLoop:
    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.integers(-3, 3), min_size=1, max_size=10), st.integers(1, 5))
    def test_stops_in_time_with_the_best_epoch(self, qualities, patience):
        told, run = iter(qualities), a_run()
        task = walk(run, len(qualities), patience, lambda: float(next(told)))
        n_epochs, best = stops_after(qualities, patience)
        assert [entry["quality"] for entry in run.history] == qualities[:n_epochs]
        assert int(task.n_steps) == 3 * best

    def test_leaves_the_very_tensors_of_the_best_epoch(self):
        kept, task, run = [], Walk(), a_run()

        def quality():
            kept.append(task.place.clone())
            return task.quality()

        schedule = Schedule(epochs=30, learning_rate=0.1)
        train(task, AllLabels(LABELS, 5), schedule, run, "walk", EarlyStopping(quality, 3))
        qualities = [entry["quality"] for entry in run.history]
        assert len(qualities) == int(np.argmax(qualities)) + 1 + 3 < 30
        assert torch.equal(task.place, kept[int(np.argmax(qualities))])

    def test_without_it_nothing_is_measured(self):
        recorder = Recorder()
        run = a_run(recorder)
        task = walk(run, 6, None)
        assert int(task.n_steps) == 18
        assert "quality" not in run.history[0]
        assert recorder.epochs == [(epoch, None) for epoch in range(1, 7)]

    def test_no_epochs_change_nothing(self):
        assert not walk(a_run(), epochs=0).place.any()

    def test_callbacks_hear_the_quality(self):
        recorder, stream = Recorder(), io.StringIO()
        run = a_run(recorder, ProgressBar(stream))
        walk(run)
        assert recorder.epochs == [(entry["epoch"], entry["quality"]) for entry in run.history]
        first = run.history[0]["quality"]
        assert f"walk: epoch 1 of 30, loss 1, quality {first:.4g}, " in stream.getvalue()

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_a_quality_that_is_no_number_stops_training(self, value):
        with pytest.raises(TrainingError, match=r"quality .* is .* in 'walk', epoch 1. Lower the"):
            walk(a_run(), quality=lambda: value)

    @pytest.mark.parametrize("patience", [0, -1])
    def test_patience_is_an_epoch_at_least(self, patience):
        with pytest.raises(InputError, match="at least 1, got"):
            walk(a_run(), patience=patience)


class TestResuming:
    def folder(self, path):
        return CheckpointFolder(path, fingerprint=Fingerprint("{}", "f"), every_seconds=0)

    def killed(self, path, **place):
        with pytest.raises(KeyboardInterrupt):
            walk(a_run(Killer(**place), folder=self.folder(path)))

    def check(self, path, epochs_left=None):
        """A training that goes on must leave what one that was not killed leaves."""
        alone, recorder = a_run(), Recorder()
        whole = walk(alone)
        run = a_run(recorder, folder=self.folder(path))
        resumed = walk(run)
        assert torch.equal(resumed.place, whole.place)
        assert torch.equal(resumed.n_steps, whole.n_steps)
        assert without_seconds(run.history) == without_seconds(alone.history)
        if epochs_left is not None:
            assert len(recorder.epochs) == epochs_left

    def n_epochs(self):
        run = a_run()
        walk(run)
        return len(run.history)

    def test_goes_on_from_wherever_it_was_killed(self, tmp_path):
        n_epochs = self.n_epochs()
        for batch in range(1, 3 * n_epochs + 1):
            path = tmp_path / str(batch)
            self.killed(path, batch=batch)
            self.check(path, n_epochs - (batch - 1) // 3)

    def test_goes_on_between_epochs(self, tmp_path):
        n_epochs = self.n_epochs()
        for epoch in range(1, n_epochs + 1):
            path = tmp_path / str(epoch)
            self.killed(path, epoch=epoch)
            self.check(path, n_epochs - epoch)

    def test_twice_killed(self, tmp_path):
        self.killed(tmp_path, batch=5)
        self.killed(tmp_path, batch=11)
        self.check(tmp_path)

    def test_nothing_is_left_to_do_after_it_has_stopped(self, tmp_path):
        rare = CheckpointFolder(tmp_path, fingerprint=Fingerprint("{}", "f"), every_seconds=1000)
        walk(a_run(folder=rare))  # which is kept all the same, since it is the end
        self.check(tmp_path, 0)

    def test_a_checkpoint_without_it_is_ignored(self, tmp_path):
        walk(a_run(folder=self.folder(tmp_path)), epochs=2, patience=None)
        self.check(tmp_path, self.n_epochs())


class TestHeldOut:
    def test_is_none_without_patience(self):
        nothing = csr_array((0, 3), dtype=np.float32)
        assert HeldOut.of(TrainingData(nothing, nothing), nothing, None) is None

    @pytest.mark.parametrize("n_points", [0, 7])
    def test_must_have_something_to_find(self, n_points):
        nothing = csr_array((n_points, 3), dtype=np.float32)
        with pytest.raises(InputError, match=rf"none of the {n_points} held-out points has"):
            HeldOut.of(TrainingData(nothing, nothing), nothing, 2)


def test_all_processes_go_by_the_quality_of_the_first(monkeypatch):
    monkeypatch.setattr("longtail.training.early_stopping.of_first", lambda own: own + 100)
    best = BestEpoch(EarlyStopping(lambda: 0.5, patience=1), Walk())
    assert best.measure("stage", 1) == 100.5


class Walks(Walk):
    """A walk whose state is what it is: parameters that torch has written, or no live tensors."""

    def __init__(self, state):
        super().__init__()
        self.weight = torch.nn.Parameter(self.place.clone())
        self.half = self.place.bfloat16()
        self.found = state

    def step(self, batch, learning_rate, share, *, measure):
        loss = super().step(batch, learning_rate, share, measure=measure)
        self.half.copy_(self.place)
        self.weight.data.copy_(self.place)
        return loss

    def state(self):
        return {**super().state(), **self.found(self)}


def stopped(task):
    stopping = EarlyStopping(iter([0.5, 0.4, 0.3]).__next__, patience=2)
    train(task, AllLabels(LABELS, 4), Schedule(epochs=3, learning_rate=0.1), a_run(), "w", stopping)
    return task


@pytest.mark.parametrize("name", ["weight", "half"])
def test_a_parameter_or_half_numbers_go_back_to_the_best_epoch(name):
    task = stopped(Walks(lambda walk: {name: getattr(walk, name)}))
    assert int(task.n_steps) == 3  # of the one epoch that was the best
    assert torch.equal(task.weight, task.place) == (name == "weight")
    assert torch.equal(task.half, task.place.bfloat16()) == (name == "half")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda walk: {"copy": walk.place.clone()}, "`state` returns a copy of 'copy', another"),
        (lambda walk: {"copy": walk.place.numpy() + 1}, "`state` returns a copy of 'copy'"),
        (lambda _: {"n": 3}, "must return the live tensors or arrays .*, got an int"),
    ],
)
def test_a_state_that_nothing_could_be_written_into_is_refused(state, message, tmp_path):
    with pytest.raises(InputError, match=message):
        stopped(Walks(state))
    run = a_run(folder=CheckpointFolder(tmp_path, fingerprint=Fingerprint("{}", "data")))
    with pytest.raises(InputError, match=message):
        train(Walks(state), AllLabels(LABELS, 4), Schedule(epochs=1, learning_rate=0.1), run, "w")
