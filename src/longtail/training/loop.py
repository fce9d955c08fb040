"""The one training loop."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Protocol

import numpy as np

from longtail.errors import TrainingError
from longtail.training.early_stopping import BestEpoch
from longtail.training.processes import processes, share_of
from longtail.training.run import EpochReport
from longtail.training.state import check_live, state_of, write_state
from longtail.training.threads import one_ahead

if TYPE_CHECKING:
    from collections.abc import Callable

    from longtail.training.batches import Batch, Batches
    from longtail.training.early_stopping import EarlyStopping
    from longtail.training.run import TrainingRun
    from longtail.training.schedule import Schedule
    from longtail.training.state import State

__all__ = ["Task", "seed_torch", "train"]

MEASURE_EVERY = 10  # batches: the loss's value costs a pass over the logits, its gradient does not


class Task(Protocol):
    """What is trained."""

    def step(
        self, batch: Batch, learning_rate: float, share: float, *, measure: bool
    ) -> float | None:
        """Train on a batch.

        Parameters
        ----------
        batch : Batch
        learning_rate : float
            Of the tables.
        share : float
            The learning rate divided by that of the first step.
        measure : bool
            Whether the loss is wanted.

        Returns
        -------
        float or None
            The loss, if it was wanted and the batch has one.
        """
        ...

    def state(self) -> State:
        """Return the live arrays and tensors that training changes."""
        ...


def seed_torch(seed: int) -> None:
    """Let torch draw from this seed on, on all devices.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.loop import seed_torch
    >>> seed_torch(3)
    >>> first = torch.rand(1)
    >>> seed_torch(3)
    >>> torch.equal(torch.rand(1), first)
    True
    """
    import torch  # noqa: PLC0415 - whose layers draw from it, where it is loaded

    torch.manual_seed(seed)


def train(
    task: Task,
    batches: Batches,
    schedule: Schedule,
    run: TrainingRun,
    stage: str,
    stopping: EarlyStopping | None = None,
    draw_anew: Callable[[int], None] = seed_torch,
) -> None:
    """Train a task for the epochs of a schedule, from its last checkpoint if there is one.

    Parameters
    ----------
    task : Task
    batches : Batches
    schedule : Schedule
    run : TrainingRun
    stage : str
        What this is called in history, progress and checkpoints.
    stopping : EarlyStopping or None
        Stop once the quality on held-out points has not risen for some epochs, and leave the task
        as it was after its best epoch. The rate falls as it would for all epochs.
    draw_anew : callable
        Is called with a seed before each epoch, and what is random in the task's steps is drawn
        from there on: an epoch that is resumed draws what it would have drawn anyway.

    Raises
    ------
    TrainingError
        If the loss, or the quality, is not a finite number.
    InputError
        If the state of the task is needed, and is not what training changes.

    Examples
    --------
    A task with one number, which every step moves a part of the way to 1.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.batches import AllLabels
    >>> from longtail.training.loop import train
    >>> from longtail.training.run import TrainingRun
    >>> from longtail.training.schedule import Schedule
    >>> class ToOne:
    ...     number = np.zeros(1)
    ...
    ...     def step(self, batch, learning_rate, share, *, measure):
    ...         loss = (1 - self.number[0]) ** 2
    ...         self.number += learning_rate * (1 - self.number)
    ...         return loss
    ...
    ...     def state(self):
    ...         return {"number": self.number}
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> batches = AllLabels(csr_array(np.eye(4, dtype=np.float32)), 2)
    >>> train(ToOne(), batches, Schedule(epochs=3, learning_rate=0.5), run, "to one")
    >>> [entry["epoch"] for entry in run.history]
    [1, 2, 3]
    >>> run.history[2]["loss"] < run.history[0]["loss"]
    True
    """
    stage = run.scope + stage
    best = BestEpoch(stopping, task)

    def live() -> State:
        return {**task.state(), **state_of(batches), **best.state()}

    if run.checkpoints is not None or stopping is not None:
        check_live(live)
    for epoch in range(_restored(live(), run, stage), schedule.epochs):
        if best.is_long_ago(epoch):
            break
        started = time.perf_counter()
        draw_anew(run.seed_for(stage, "dropout", epoch) + processes().rank)
        loss = _epoch(task, batches, schedule, run, stage, epoch)
        quality = best.measure(stage, epoch + 1)
        seconds = round(time.perf_counter() - started, 3)
        known = None if math.isnan(loss) else loss  # as JSON has it
        entry = {"stage": stage, "epoch": epoch + 1, "loss": known, "seconds": seconds}
        run.history.append(entry if quality is None else entry | {"quality": quality})
        if run.checkpoints is not None and not processes().rank:
            is_last = epoch + 1 == schedule.epochs or best.is_long_ago(epoch + 1)
            run.checkpoints.save(stage, epoch + 1, live(), run.history, ends_stage=is_last)
        report = EpochReport(stage, epoch + 1, schedule.epochs, loss, quality)
        for callback in run.callbacks:
            callback.on_epoch(report)
    best.restore()


def _epoch(
    task: Task, batches: Batches, schedule: Schedule, run: TrainingRun, stage: str, epoch: int
) -> float:
    """Train on every batch of an epoch once, and return the mean of the losses measured."""
    random = np.random.default_rng(run.seed_for(stage, "batches", epoch))
    n_batches = batches.n_batches()
    losses: list[float] = []
    n_trained, is_due = 0, False
    for i, drawn in enumerate(one_ahead(batches.epoch(random), run.n_threads)):
        if (batch := share_of(drawn)) is None:
            continue
        n_trained += 1
        rate = schedule.rate_at(epoch, i / n_batches)
        is_due = is_due or i % MEASURE_EVERY == 0 or i + 1 == n_batches
        loss = task.step(batch, rate, rate / schedule.learning_rate, measure=is_due)
        if loss is not None:  # a batch of which nothing is known has none: the next will do
            losses.append(_finite(loss, stage, epoch))
            is_due = False
        for callback in run.callbacks:
            done, total = epoch * n_batches + i + 1, schedule.epochs * n_batches
            callback.on_batch(stage, done, total, loss)
    if n_batches and not n_trained:
        raise TrainingError(
            f"No batch of {stage!r} has a point for each of the {processes().count} processes. "
            "Raise the batch size, or start fewer processes."
        )
    return float(np.mean(losses)) if losses else math.nan


def _restored(state: State, run: TrainingRun, stage: str) -> int:
    """Write a checkpoint over the live state and return how many epochs it has behind it."""
    checkpoint = run.checkpoints.load(stage) if run.checkpoints is not None else None
    if checkpoint is None or not state.keys() <= checkpoint.arrays.keys():
        return 0  # there is none, or it is of a version that trained other things
    if any(checkpoint.arrays[name].size != math.prod(part.shape) for name, part in state.items()):
        return 0
    write_state(state, checkpoint.arrays)
    run.history[:] = checkpoint.history
    return checkpoint.epoch


def _finite(loss: float, stage: str, epoch: int) -> float:
    """Return the loss, or raise TrainingError if it has run away."""
    if not math.isfinite(loss):
        raise TrainingError(
            f"The loss is {loss} in {stage!r}, epoch {epoch + 1}. Lower the learning rate of that "
            "stage, or look for extreme values in the features."
        )
    return loss
