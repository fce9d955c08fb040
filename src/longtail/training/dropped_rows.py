"""Rows of which some units are left out, scaled to unit length, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

from longtail.kernels.unit_rows import slopes_of_dropped, write_dropped
from longtail.training.dropout import kept_units, random_bytes
from longtail.training.optimisers import in_threads, numbers_of
from longtail.training.unit_rows import SMALLEST_LENGTH, UnitRows

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DroppedRows", "dropped_rows", "unit_rows_in_place"]


class DroppedRows(Protocol):
    """Rows after dropout, as unit vectors."""

    @property
    def unit(self) -> Tensor:
        """The vectors in the dtype of products, (n, d)."""
        ...

    def backward(self, gradient: Tensor, scale: float) -> Tensor:
        """Return the gradient by the rows as they were given.

        Parameters
        ----------
        gradient : Tensor (n, d)
            By `unit`, less the factor `scale`, and of its dtype.
        scale : float

        Returns
        -------
        float32 Tensor (n, d)
        """
        ...


def dropped_rows(rows: Tensor, dropout: float, dtype: torch.dtype) -> DroppedRows:
    """Return rows after dropout as unit vectors, in one pass where that can be done.

    Parameters
    ----------
    rows : float32 Tensor (n, d)
        In main memory, they are changed, and written over with what `backward` returns.
    dropout : float
    dtype : torch.dtype
        float32 or bfloat16.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.dropped_rows import dropped_rows
    >>> rows = dropped_rows(torch.tensor([[3.0, 4.0]]), 0.0, torch.float32)
    >>> rows.unit
    tensor([[0.6000, 0.8000]])
    >>> rows.backward(torch.tensor([[0.8, -0.6]]), 10.0)
    tensor([[ 1.6000, -1.2000]])
    """
    kind = _DroppedByKernels if rows.device.type == "cpu" else _DroppedByTensors
    return kind(rows, dropout, dtype)


def unit_rows_in_place(rows: Tensor) -> UnitRows:
    """Do what `UnitRows.of` does, in the place of the rows where they are in main memory.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.dropped_rows import unit_rows_in_place
    >>> unit_rows_in_place(torch.tensor([[3.0, 4.0]])).lengths
    tensor([[5.]])
    """
    if rows.device.type != "cpu":
        return UnitRows.of(rows)
    lengths = torch.empty(len(rows), 1)
    none = (torch.empty(len(rows), 0, dtype=torch.uint8), 0)
    _write(rows, *none, lengths, torch.empty(len(rows), 0))
    return UnitRows(rows, lengths)


class _DroppedByTensors:
    """By tensor operations: on any device."""

    def __init__(self, rows: Tensor, dropout: float, dtype: torch.dtype) -> None:
        self._kept = kept_units(rows, dropout)
        self._rows = UnitRows.of(rows * self._kept)
        self.unit = self._rows.unit.to(dtype)

    def backward(self, gradient: Tensor, scale: float) -> Tensor:
        """See `DroppedRows.backward`."""
        return self._rows.backward(gradient.float() * scale) * self._kept


class _DroppedByKernels:
    """In main memory, with nothing in between written out."""

    def __init__(self, rows: Tensor, dropout: float, dtype: torch.dtype) -> None:
        self._drawn = random_bytes(rows, dropout)
        self._lengths = torch.empty(len(rows), 1)
        self._rows, self.unit, written = rows, rows, torch.empty(len(rows), 0)
        if dtype != torch.float32:
            self.unit = written = torch.empty(rows.shape, dtype=dtype)
        _write(rows, *self._drawn, self._lengths, written)

    def backward(self, gradient: Tensor, scale: float) -> Tensor:
        """See `DroppedRows.backward`."""
        drawn, n_dropped = self._drawn
        read = (self._rows.numpy(), drawn.numpy(), n_dropped, self._lengths.numpy()[:, 0])
        numbers = numbers_of(gradient)
        in_threads(
            lambda start, stop: slopes_of_dropped(*read, numbers, scale, start, stop),
            len(self._rows),
        )
        return self._rows


def _write(rows: Tensor, drawn: Tensor, n_dropped: int, lengths: Tensor, narrow: Tensor) -> None:
    """Call the kernel on chunks of rows."""
    read = (rows.numpy(), drawn.numpy(), n_dropped, SMALLEST_LENGTH)
    written = (lengths.numpy()[:, 0], numbers_of(narrow))
    in_threads(lambda start, stop: write_dropped(*read, start, stop, *written), len(rows))
