"""The mean of the weights that training goes through, in place of the last ones."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from longtail.named_parts import with_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor

    from longtail.training.batches import Batch
    from longtail.training.loop import Task
    from longtail.training.state import State

__all__ = ["AveragedTask"]

EVERY = 20  # steps: a pass over all tables takes as long as a step, where these are large
LEAST_AVERAGED = 10  # where there are as many steps


class AveragedTask:
    """A task of whose weights a mean is kept (Izmailov et al., "Averaging weights", UAI 2018).

    Training goes on from the weights themselves, as if there were no mean.

    Parameters
    ----------
    task : Task
    weights : mapping of str to Tensor
        The live tensors to be averaged; none of an optimiser.
    n_steps_before : int
        Steps after which the mean begins.
    every : int
        One step of so many enters the mean.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.weight_average import AveragedTask
    >>> class Counting:
    ...     weight = torch.zeros(1)
    ...
    ...     def step(self, batch, learning_rate, share, *, measure):
    ...         self.weight += 1
    ...
    ...     def state(self):
    ...         return {"weight": self.weight}
    >>> task = Counting()
    >>> averaged = AveragedTask(task, task.state(), n_steps_before=20)
    >>> for _ in range(60):
    ...     averaged.step(None, 0.1, 1.0, measure=False)
    >>> with averaged.in_use():
    ...     print(task.weight)
    tensor([50.])
    >>> task.weight
    tensor([60.])
    """

    def __init__(
        self, task: Task, weights: Mapping[str, Tensor], n_steps_before: int, every: int = EVERY
    ) -> None:
        self._task, self._weights = task, weights
        self._n_steps_before, self._every = n_steps_before, every
        self._means = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        self._n_steps = torch.zeros(1, dtype=torch.int64)

    @classmethod
    def after(
        cls, task: Task, weights: Mapping[str, Tensor], n_steps_before: int, n_steps: int
    ) -> AveragedTask:
        """Return one that averages some of the steps left of `n_steps`, or each of a few."""
        n_left = n_steps - n_steps_before
        return cls(task, weights, n_steps_before, min(max(n_left // LEAST_AVERAGED, 1), EVERY))

    def step(
        self, batch: Batch, learning_rate: float, share: float, *, measure: bool
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        loss = self._task.step(batch, learning_rate, share, measure=measure)
        self._n_steps += 1
        n_counting = int(self._n_steps) - self._n_steps_before
        if n_counting > 0 and n_counting % self._every == 0:
            for name, weight in self._weights.items():
                self._means[name].lerp_(weight, self._every / n_counting)
        return loss

    def state(self) -> State:
        """See `longtail.training.loop.Task.state`."""
        means = with_prefix("mean.", self._means)
        return {**self._task.state(), **means, "mean steps": self._n_steps}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let the weights be their mean, if there is one yet, and give them back at the end."""
        before = {name: weight.clone() for name, weight in self._weights.items()}
        self.take_over()
        try:
            yield
        finally:
            for name, weight in self._weights.items():
                weight.copy_(before[name])

    def take_over(self) -> None:
        """Let the weights be their mean from now on, if there is one yet."""
        if int(self._n_steps) >= self._n_steps_before + self._every:
            for name, weight in self._weights.items():
                weight.copy_(self._means[name])
