"""Rows of which some units are left out, scaled to unit length, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from longtail.training.dropout import kept_units, random_bytes_on_device
from longtail.training.optimisers import numbers_of
from longtail.training.unit_rows import UnitRows
from longtail.training.units import DroppedUnits

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DroppedRows", "dropped_rows"]


class DroppedRows(Protocol):
    """Rows after dropout, as unit vectors."""

    @property
    def unit(self) -> Tensor:
        """The vectors in the dtype of products, (n, d)."""
        ...

    def backward(self, gradient: Tensor, scale: float) -> Tensor:
        """Return the gradient with respect to the rows as they were given.

        Parameters
        ----------
        gradient : Tensor (n, d)
            With respect to `unit`, but for the factor `scale`; of its dtype.
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
    """In main memory, with nothing in between written out: see `DroppedUnits`."""

    def __init__(self, rows: Tensor, dropout: float, dtype: torch.dtype) -> None:
        drawn, n_dropped = random_bytes_on_device(rows, dropout)
        narrow = np.float32 if dtype == torch.float32 else np.uint16
        self._units = DroppedUnits(rows.numpy(), drawn.numpy(), n_dropped, narrow)
        unit = torch.from_numpy(self._units.unit)
        self.unit = unit if dtype == torch.float32 else unit.view(dtype)

    def backward(self, gradient: Tensor, scale: float) -> Tensor:
        """See `DroppedRows.backward`."""
        return torch.from_numpy(self._units.backward(numbers_of(gradient), scale))
