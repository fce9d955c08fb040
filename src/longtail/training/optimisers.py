"""Optimisers that touch only the rows of a table which a batch has touched.

A table of token or label vectors has as many rows as there are tokens or labels; a batch gives a
gradient to few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from longtail.kernels.optimisers import adam_rows
from longtail.training.processes import add_up
from longtail.training.row_adagrad import EPSILON, RowAdagrad
from longtail.training.threads import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["LazyAdam", "RowOptimiser", "RowwiseAdagrad", "numbers_of"]


class RowOptimiser(Protocol):
    """Changes some rows of a table, given the gradient of just those rows.

    Where several processes train, the gradients of all are added up first: see `add_up`.
    """

    def step(self, table: Tensor, rows: Tensor, gradient: Tensor, learning_rate: float) -> None:
        """Step ``table[rows]``; int64 (n,) distinct rows and a float32 (n, d) gradient."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return the tensors that a checkpoint keeps; they are the live ones."""
        ...


class RowwiseAdagrad:
    """Adagrad with one accumulator a row, on any device: see `RowAdagrad`.

    Parameters
    ----------
    table : Tensor (n, d)
        What will be trained.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.optimisers import RowwiseAdagrad
    >>> table = torch.zeros(3, 2)
    >>> RowwiseAdagrad(table).step(table, torch.tensor([1]), torch.tensor([[5.0, -5.0]]), 0.1)
    >>> table  # the first step is as long as the rate, whatever the gradient's length
    tensor([[ 0.0000,  0.0000],
            [-0.1000,  0.1000],
            [ 0.0000,  0.0000]])
    """

    def __init__(self, table: Tensor) -> None:
        self._here = RowAdagrad(len(table) if table.device.type == "cpu" else 0)
        self._sums = torch.zeros(len(table), device=table.device)
        if table.device.type == "cpu":
            self._sums = torch.from_numpy(self._here.sums)

    def step(self, table: Tensor, rows: Tensor, gradient: Tensor, learning_rate: float) -> None:
        """See `RowOptimiser.step`."""
        rows, gradient = add_up(len(table), rows, gradient)
        if table.device.type == "cpu":
            self._here.step(table.numpy(), rows.numpy(), gradient.numpy(), learning_rate)
            return
        self._sums[rows] += gradient.square().mean(dim=1)
        size = learning_rate / (self._sums[rows].sqrt() + EPSILON)
        table[rows] -= size[:, None] * gradient

    def state(self) -> dict[str, Tensor]:
        """See `RowOptimiser.state`."""
        return {"sums": self._sums}


class LazyAdam:
    """Adam whose moments move only for the rows of a batch, as torch's SparseAdam does.

    Three times the memory of the table; for following the published code.

    Parameters
    ----------
    table : Tensor (n, d)
        What will be trained.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.optimisers import LazyAdam
    >>> table = torch.zeros(2, 2)
    >>> LazyAdam(table).step(table, torch.tensor([1]), torch.tensor([[5.0, -0.2]]), 0.1)
    >>> table  # each number by itself, where `RowwiseAdagrad` looks at the row
    tensor([[ 0.0000,  0.0000],
            [-0.1000,  0.1000]])
    """

    def __init__(self, table: Tensor) -> None:
        self._means = torch.zeros_like(table)
        self._squares = torch.zeros_like(table)
        self._n_steps = torch.zeros(1, dtype=torch.int64)

    def step(self, table: Tensor, rows: Tensor, gradient: Tensor, learning_rate: float) -> None:
        """See `RowOptimiser.step`."""
        self.step_summed(table, *add_up(len(table), rows, gradient), learning_rate)

    def step_summed(
        self, table: Tensor, rows: Tensor, gradient: Tensor, learning_rate: float
    ) -> None:
        """Step as `step` does, with the gradients of all processes added up already."""
        size = self._next_size(learning_rate)
        if table.device.type == "cpu":
            tensors = (table, self._means, self._squares, rows, gradient)
            table_, means, squares, ids, slopes = (tensor.numpy() for tensor in tensors)
            in_threads(
                lambda start, stop: adam_rows(
                    table_, means, squares, ids, slopes, size, EPSILON, start, stop
                ),
                len(rows),
            )
            return
        self._means[rows] = 0.9 * self._means[rows] + 0.1 * gradient
        self._squares[rows] = 0.999 * self._squares[rows] + 0.001 * gradient.square()
        table[rows] -= size * self._means[rows] / (self._squares[rows].sqrt() + EPSILON)

    def step_all(self, table: Tensor, gradient: Tensor, learning_rate: float) -> None:
        """Step all rows as `step_summed` does, which makes this plain Adam."""
        if table.device.type == "cpu":
            self.step_summed(table, torch.arange(len(table)), gradient, learning_rate)
            return
        self._means.mul_(0.9).add_(gradient, alpha=0.1)
        self._squares.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        roots = self._squares.sqrt().add_(EPSILON)
        table.addcdiv_(self._means, roots, value=-self._next_size(learning_rate))

    def _next_size(self, learning_rate: float) -> float:
        """Return how far the next step goes, whose moments have begun at 0."""
        self._n_steps += 1
        n_steps = int(self._n_steps)
        return learning_rate * float(np.sqrt(1 - 0.999**n_steps)) / (1 - 0.9**n_steps)

    def state(self) -> dict[str, Tensor]:
        """See `RowOptimiser.state`."""
        return {"means": self._means, "squares": self._squares, "n_steps": self._n_steps}


def numbers_of(tensor: Tensor) -> NDArray[Any]:
    """Return a CPU tensor as an array, bfloat16 as its bits in uint16, without a copy.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.optimisers import numbers_of
    >>> one = torch.ones(1)
    >>> numbers_of(one).tolist(), [hex(bits) for bits in numbers_of(one.bfloat16()).tolist()]
    ([1.0], ['0x3f80'])
    """
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    array: NDArray[Any] = tensor.numpy()
    return array
