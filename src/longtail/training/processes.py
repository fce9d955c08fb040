"""Several processes that train one model: each takes a share of every batch's points.

Started by ``torchrun --nproc-per-node N --no-python longtail train ...``, or by whatever else sets
up `torch.distributed`. All read the same data, draw the same batches from the same seeds, and hold
the whole model. A loss is a sum over points, so its gradient is the sum over the processes of the
gradients of their shares: optimisers add these up, row by row, before they step. The model is that
of one process, to rounding; dropout aside, of which each process draws its own.

What has no batches, such as clusters, searches and linear classifiers, each process does for
itself, alike. The first one alone writes checkpoints and the model.
"""

from __future__ import annotations

import atexit
import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import TrainingError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.training.batches import Batch

__all__ = [
    "Processes",
    "add_up",
    "add_up_arrays",
    "among_largest",
    "join_processes",
    "of_first",
    "own_device",
    "processes",
    "refuse_several",
    "share_of",
]


@dataclass(frozen=True)
class Processes:
    """Which process this is, counted from 0, and how many there are."""

    rank: int = 0
    count: int = 1


def processes() -> Processes:
    """Return this process's place among those that train together.

    Examples
    --------
    >>> from longtail.training.processes import processes
    >>> processes()
    Processes(rank=0, count=1)
    """
    if "torch" not in sys.modules:
        return Processes()
    from torch import distributed  # noqa: PLC0415 - loaded already

    if not distributed.is_available() or not distributed.is_initialized():
        return Processes()
    return Processes(distributed.get_rank(), distributed.get_world_size())


def join_processes() -> Processes:
    """Join the processes that ``torchrun`` has started, if it has, and return this one's place.

    Examples
    --------
    Where it has not:

    >>> from longtail.training.processes import join_processes
    >>> join_processes()
    Processes(rank=0, count=1)
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:  # as torch itself tells
        return processes()
    import torch  # noqa: PLC0415 - which is not needed by one process
    from torch import distributed  # noqa: PLC0415

    if distributed.is_available() and not distributed.is_initialized():
        # Tables of tokens stay in main memory, whatever the device: gloo adds those up.
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        distributed.init_process_group(backend)
        atexit.register(distributed.destroy_process_group)
    return processes()


def own_device(device: str) -> str:
    """Return this process's own GPU where several share a machine's, and were given none by number.

    Examples
    --------
    >>> from longtail.training.processes import own_device
    >>> own_device("cpu")
    'cpu'
    """
    if device != "cuda" or processes().count == 1:
        return device
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"


def share_of(batch: Batch) -> Batch | None:
    """Return this process's points of a batch, against all of its labels.

    None for all processes if there are fewer points than processes, as an epoch's last batch may
    have: those points are left out.

    Examples
    --------
    One process alone has them all.

    >>> import numpy as np
    >>> from longtail.training.batches import Batch
    >>> from longtail.training.processes import share_of
    >>> batch = Batch(np.array([7, 9]), None, np.array([0, 1]), np.array([2, 0]))
    >>> share_of(batch).points.tolist()
    [7, 9]
    """
    rank, count = processes().rank, processes().count
    if count == 1:
        return batch
    if len(batch.points) < count:
        return None
    is_of_rank = batch.positive_rows % count == rank
    return replace(
        batch,
        points=np.ascontiguousarray(batch.points[rank::count]),
        positive_rows=batch.positive_rows[is_of_rank] // count,
        positive_columns=batch.positive_columns[is_of_rank],
        in_loss=None if batch.in_loss is None else batch.in_loss[rank::count],
    )


def add_up(n_rows: int, rows: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Add the gradients of some rows of a table up over all processes.

    Every process calls this for every table, in the same order.

    Parameters
    ----------
    n_rows : int
        Of the table.
    rows : int64 Tensor (n,)
        Distinct; each process may have others.
    gradient : float32 Tensor (n, dimension)

    Returns
    -------
    rows : int64 Tensor (m,)
        Those that any process has, ascending.
    gradient : float32 Tensor (m, dimension)
        The same numbers in every process.

    Examples
    --------
    In one process there is nothing to add.

    >>> import torch
    >>> from longtail.training.processes import add_up
    >>> rows, gradient = add_up(5, torch.tensor([3]), torch.tensor([[0.5, -1.0]]))
    >>> rows.tolist(), gradient.tolist()
    ([3], [[0.5, -1.0]])
    """
    count = processes().count
    if count == 1:
        return rows, gradient
    import torch  # noqa: PLC0415 - there are tensors, so it is loaded
    from torch import distributed  # noqa: PLC0415

    sizes = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(count)]
    distributed.all_gather(sizes, torch.tensor([len(rows)], device=rows.device))
    lengths = [int(size) for size in sizes]
    if min(lengths) == n_rows:
        whole = torch.empty_like(gradient).index_copy_(0, rows, gradient)
        distributed.all_reduce(whole)
        return torch.arange(n_rows, device=rows.device), whole
    every_row = torch.cat(_gathered(rows, lengths))
    every_gradient = torch.cat(_gathered(gradient, lengths))
    union, places = torch.unique(every_row, return_inverse=True)
    summed = torch.zeros(len(union), gradient.shape[1], device=gradient.device)
    return union, summed.index_add_(0, places, every_gradient)


def add_up_arrays(
    n_rows: int, rows: NDArray[np.int64], gradient: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Do what `add_up` does for arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.processes import add_up_arrays
    >>> rows, gradient = add_up_arrays(5, np.array([3]), np.float32([[0.5, -1.0]]))
    >>> rows.tolist(), gradient.tolist()
    ([3], [[0.5, -1.0]])
    """
    if processes().count == 1:
        return rows, gradient
    import torch  # noqa: PLC0415 - several processes have loaded it

    every_row, summed = add_up(n_rows, torch.from_numpy(rows), torch.from_numpy(gradient))
    return every_row.numpy(), summed.numpy()


def among_largest(numbers: Tensor, n_largest: int) -> Tensor:
    """Return which numbers of each row are among its largest of all processes.

    Every process calls this with as many rows.

    Parameters
    ----------
    numbers : float32 Tensor (n, size)
        Of this process, which has at most `n_largest` of each row.
    n_largest : int

    Returns
    -------
    bool Tensor (n, size)

    Examples
    --------
    >>> import torch
    >>> from longtail.training.processes import among_largest
    >>> among_largest(torch.tensor([[0.5, 0.7]]), 2)
    tensor([[True, True]])
    """
    import torch  # noqa: PLC0415 - there is a tensor, so it is loaded
    from torch import distributed  # noqa: PLC0415

    rank, count = processes().rank, processes().count
    if count == 1:
        return torch.ones_like(numbers, dtype=torch.bool)
    padded = numbers.new_full((len(numbers), n_largest), -torch.inf)
    padded[:, : numbers.shape[1]] = numbers
    parts = [torch.empty_like(padded) for _ in range(count)]
    distributed.all_gather(parts, padded)
    together = torch.cat(parts, dim=1)
    is_largest = torch.zeros_like(together, dtype=torch.bool)
    is_largest.scatter_(1, together.topk(n_largest, dim=1).indices, value=True)
    first = rank * n_largest
    return is_largest[:, first : first + numbers.shape[1]]


def of_first(number: float) -> float:
    """Return the number that the first process has, in every process.

    What all decide by must be the same in all: rounding may differ.

    Examples
    --------
    >>> from longtail.training.processes import of_first
    >>> of_first(0.5)
    0.5
    """
    if processes().count == 1:
        return number
    import torch  # noqa: PLC0415 - several processes have loaded it
    from torch import distributed  # noqa: PLC0415

    told = torch.tensor([number], dtype=torch.float64)
    distributed.broadcast(told, 0)
    return float(told)


def refuse_several(what: str) -> None:
    """Raise TrainingError if there are several processes, for what trains in one alone."""
    count = processes().count
    if count > 1:
        raise TrainingError(
            f"{what} trains in one process, but {count} were started. Start it without torchrun."
        )


def _gathered(own: Tensor, lengths: list[int]) -> list[Tensor]:
    """Return the rows that each process has; all are sent as many, so they are padded."""
    import torch  # noqa: PLC0415 - several processes have loaded it
    from torch import distributed  # noqa: PLC0415

    padded = own.new_zeros(max(lengths), *own.shape[1:])
    padded[: len(own)] = own
    parts = [torch.empty_like(padded) for _ in lengths]
    distributed.all_gather(parts, padded)
    return [part[:length] for part, length in zip(parts, lengths, strict=True)]
