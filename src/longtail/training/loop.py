"""The one training loop."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from longtail.errors import TrainingError
from longtail.training.processes import processes, share_of

if TYPE_CHECKING:
    from torch import Tensor

    from longtail.training.batches import Batch, Batches
    from longtail.training.run import TrainingRun
    from longtail.training.schedule import Schedule

__all__ = ["Task", "train"]

MEASURE_EVERY = 10  # batches: the loss's value costs a pass over the logits, its gradient does not


class Task(Protocol):
    """What is trained."""

    def step(
        self, batch: Batch, learning_rate: float, share: float, *, measure: bool
    ) -> float | None:
        """Train on a batch and return the loss if it was to be measured."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that training changes."""
        ...


def train(task: Task, batches: Batches, schedule: Schedule, run: TrainingRun, stage: str) -> None:
    """Train a task for the epochs of a schedule, from its last checkpoint if there is one.

    Parameters
    ----------
    task : Task
    batches : Batches
    schedule : Schedule
    run : TrainingRun
    stage : str
        What this is called in history, progress and checkpoints.

    Raises
    ------
    TrainingError
        If the loss is not a finite number.
    """
    stage = run.scope + stage
    n_batches = batches.n_batches()
    for epoch in range(_restored(task, run, stage), schedule.epochs):
        started = time.perf_counter()
        # Each epoch has its own seed: one resumed here draws what it would have drawn anyway.
        torch.manual_seed(run.seed_for(stage, "dropout", epoch) + processes().rank)
        random = np.random.default_rng(run.seed_for(stage, "batches", epoch))
        losses = []
        for i, drawn in enumerate(batches.epoch(random)):
            if (batch := share_of(drawn)) is None:
                continue
            rate = schedule.rate_at(epoch, i / n_batches)
            measure = i % MEASURE_EVERY == 0 or i + 1 == n_batches
            loss = task.step(batch, rate, rate / schedule.learning_rate, measure=measure)
            if loss is not None:
                losses.append(_finite(loss, stage, epoch))
            for callback in run.callbacks:
                done, total = epoch * n_batches + i + 1, schedule.epochs * n_batches
                callback.on_batch(stage, done, total, loss)
        mean_loss = float(np.mean(losses)) if losses else math.nan
        seconds = round(time.perf_counter() - started, 3)
        run.history.append(
            {"stage": stage, "epoch": epoch + 1, "loss": mean_loss, "seconds": seconds}
        )
        if run.checkpoints is not None and not processes().rank:
            is_last = epoch + 1 == schedule.epochs
            run.checkpoints.save(stage, epoch + 1, task.state(), run.history, at_once=is_last)
        for callback in run.callbacks:
            callback.on_epoch(stage, epoch + 1, schedule.epochs, mean_loss)


def _restored(task: Task, run: TrainingRun, stage: str) -> int:
    """Copy a checkpoint into the task's tensors and return how many epochs it has behind it."""
    checkpoint = run.checkpoints.load(stage) if run.checkpoints is not None else None
    state = task.state()
    if checkpoint is None or not state.keys() <= checkpoint.arrays.keys():
        return 0  # there is none, or it is of a version that trained other tensors
    for name, tensor in state.items():
        tensor.copy_(torch.from_numpy(checkpoint.arrays[name]).reshape(tensor.shape))
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
