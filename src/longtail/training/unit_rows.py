"""Rows scaled to unit length while they are trained, on any device, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from longtail.training.units import SMALLEST_LENGTH

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from longtail.training.optimisers import RowwiseAdagrad

__all__ = ["PoolRows", "UnitRows"]


class UnitRows(NamedTuple):
    """Rows scaled to length 1, and what the gradient needs to find its way back.

    Attributes
    ----------
    unit : float32 Tensor (n, d)
    lengths : float32 Tensor (n, 1)

    Examples
    --------
    >>> import torch
    >>> from longtail.training.unit_rows import UnitRows
    >>> rows = UnitRows.of(torch.tensor([[3.0, 4.0]]))
    >>> rows.unit
    tensor([[0.6000, 0.8000]])
    >>> rows.backward(rows.unit).abs() < 1e-6  # longer is not nearer
    tensor([[True, True]])
    """

    unit: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> UnitRows:
        """Scale float32 rows (n, d); those of zeros stay so."""
        lengths = rows.norm(dim=1, keepdim=True).clamp_min(SMALLEST_LENGTH)
        return cls(rows / lengths, lengths)

    def backward(self, gradient: Tensor) -> Tensor:
        """Return the gradient with respect to the rows before they were scaled."""
        along = (self.unit * gradient).sum(dim=1, keepdim=True)
        return (gradient - self.unit * along) / self.lengths


class PoolRows:
    """Some rows of a table, to each of which a text may be added, as unit vectors.

    Parameters
    ----------
    table : float32 Tensor (n_rows, d)
    rows : int64 Tensor (n,)
        -1 where the text stands alone: then no row is stepped.
    texts : UnitRows (n, d) or None
    dtype : torch.dtype
        float32 or bfloat16.

    Attributes
    ----------
    unit : Tensor (n, d)
        The vectors in the dtype of products.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.optimisers import RowwiseAdagrad
    >>> from longtail.training.unit_rows import PoolRows
    >>> table = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    >>> rows = PoolRows(table, torch.tensor([1]), None, torch.float32)
    >>> rows.unit
    tensor([[0., 1.]])
    >>> rows.step(RowwiseAdagrad(table), torch.tensor([[1.0, 0.0]]), 1.0, 0.1)
    >>> table[1] @ torch.tensor([1.0, 0.0]) < 0  # turned away
    tensor(True)
    """

    def __init__(
        self, table: Tensor, rows: Tensor, texts: UnitRows | None, dtype: torch.dtype
    ) -> None:
        self._table, self._rows, self._texts = table, rows, texts
        self._is_own = rows >= 0
        sums = table[rows] * self._is_own[:, None]
        self._sums = UnitRows.of(sums if texts is None else sums + texts.unit)
        self.unit = self._sums.unit.to(dtype)

    def step(
        self, optimiser: RowwiseAdagrad, gradient: Tensor, scale: float, learning_rate: float
    ) -> Tensor | None:
        """Step the table against `scale` times the gradient with respect to `unit`.

        Returns
        -------
        float32 Tensor (n, d) or None
            The gradient with respect to the texts before they were scaled, if there are any.
        """
        slopes = self._sums.backward(gradient.float().mul_(scale))
        own = self._is_own
        optimiser.step(self._table, self._rows[own], slopes[own], learning_rate)
        return None if self._texts is None else self._texts.backward(slopes)
