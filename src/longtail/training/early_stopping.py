"""When training stops: once it gains no more on points that it does not see."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from longtail.errors import InputError, TrainingError
from longtail.named_parts import with_prefix
from longtail.training.processes import of_first
from longtail.training.state import as_array, write_state

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.loop import Task
    from longtail.training.run import TrainingData
    from longtail.training.state import State

__all__ = ["BestEpoch", "EarlyStopping", "HeldOut"]


@dataclass(frozen=True)
class EarlyStopping:
    """What `longtail.training.loop.train` stops by (Prechelt, "Early stopping, but when?", 1998).

    Parameters
    ----------
    quality : callable
        Measures what is being trained, on held-out points; higher is better. It is called after
        every epoch and must leave the training as it is.
    patience : int
        Epochs in a row without a gain after which training stops, at least 1.

    Raises
    ------
    InputError
        If `patience` is below 1.

    Examples
    --------
    >>> from longtail.training.early_stopping import EarlyStopping
    >>> EarlyStopping(lambda: 0.5, patience=3).patience
    3
    """

    quality: Callable[[], float]
    patience: int

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise InputError(
                f"patience is a number of epochs, at least 1, got {self.patience}. To train for "
                "all epochs, pass None."
            )


class HeldOut(NamedTuple):
    """Points that a recipe holds out, and how long it waits for a gain on them.

    Attributes
    ----------
    data : TrainingData
    targets : csr_array (n_points, n_targets)
        What is to be found: their labels, among those that have training points, or clusters of
        these.
    patience : int

    Examples
    --------
    Nothing is held out where training does not stop early.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.early_stopping import HeldOut
    >>> from longtail.training.run import TrainingData
    >>> labels = csr_array(np.eye(2, dtype=np.float32))
    >>> data = TrainingData(features=labels, labels=labels)
    >>> HeldOut.of(data, labels, patience=3).patience, HeldOut.of(data, labels, patience=None)
    (3, None)
    """

    data: TrainingData
    targets: csr_array
    patience: int

    @classmethod
    def of(cls, data: TrainingData, targets: csr_array, patience: int | None) -> Self | None:
        """Return them, or None without patience.

        Raises
        ------
        InputError
            If there is nothing to be found.
        """
        if patience is None:
            return None
        if not targets.nnz:
            raise InputError(
                f"patience = {patience} stops training by its quality on held-out points, but "
                f"none of the {targets.shape[0]} held-out points has a label of a training point. "
                "Hold out more, such as held_out = 0.1 of at least 200 points, or pass None."
            )
        return cls(data, targets, patience)


class BestEpoch:
    """The epoch of the best quality so far, and the task's state after it, in main memory.

    Without early stopping there is none, and all of this does nothing.

    Examples
    --------
    The first epoch is the best, the second gains nothing: with patience 1, that is the end.

    >>> import numpy as np
    >>> from longtail.training.early_stopping import BestEpoch, EarlyStopping
    >>> class OneNumber:
    ...     number = np.zeros(1)
    ...
    ...     def state(self):
    ...         return {"number": self.number}
    >>> task, qualities = OneNumber(), iter([0.6, 0.5])
    >>> best = BestEpoch(EarlyStopping(lambda: next(qualities), patience=1), task)
    >>> for epoch in (1, 2):
    ...     task.number[:] = epoch  # what was learnt
    ...     quality = best.measure("training", epoch)
    >>> best.restore()
    >>> best.is_long_ago(2), task.number.item()
    (True, 1.0)
    """

    def __init__(self, stopping: EarlyStopping | None, task: Task) -> None:
        self._stopping, self._task = stopping, task
        self._quality, self._epoch = np.full(1, -np.inf), np.zeros(1, np.int64)
        self._kept: dict[str, NDArray[Any]] = {}
        if stopping is not None:
            self._kept = {name: as_array(part).copy() for name, part in task.state().items()}

    def measure(self, stage: str, epoch: int) -> float | None:
        """Return the quality after an epoch, counted from 1, and keep the epoch if it is the best.

        Raises
        ------
        TrainingError
            If the quality is not a finite number.
        """
        if self._stopping is None:
            return None
        quality = of_first(self._stopping.quality())
        if not math.isfinite(quality):
            raise TrainingError(
                f"The quality on held-out points is {quality} in {stage!r}, epoch {epoch}. Lower "
                "the learning rate of that stage, or train without early stopping."
            )
        if quality > self._quality[0]:
            self._quality[:], self._epoch[:] = quality, epoch
            for name, part in self._task.state().items():
                self._kept[name][...] = as_array(part)
        return quality

    def is_long_ago(self, epoch: int) -> bool:
        """Tell whether the epochs since then, up to this one, have used up the patience."""
        return self._stopping is not None and epoch - int(self._epoch[0]) >= self._stopping.patience

    def restore(self) -> None:
        """Copy what was kept into the task."""
        if self._epoch[0]:
            write_state(self._task.state(), self._kept)

    def state(self) -> State:
        """Return the live arrays that a checkpoint keeps: a training that goes on stops alike."""
        if self._stopping is None:
            return {}
        kept = with_prefix("best.", self._kept)
        return {"best quality": self._quality, "best epoch": self._epoch, **kept}
