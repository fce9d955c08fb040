"""Losses of a batch of points against a pool of labels, from their cosines, and their slopes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from longtail.errors import InputError, named
from longtail.training.processes import among_largest
from longtail.training.unit_labels_on_device import decoupled_softmax

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DecoupledSoftmax", "PairLoss", "ProbabilisticContrast", "TripletLoss", "checked_slope"]


class PairLoss(Protocol):
    """How far true labels should be before false ones."""

    def slope(self, cosines: Tensor, rows: Tensor, columns: Tensor) -> tuple[float, Tensor]:
        """Return the loss of a batch, and its slope with respect to the cosines.

        Parameters
        ----------
        cosines : float32 Tensor (n, n_pool)
            Overwritten.
        rows, columns : int64 Tensor (n_positives,)
            Where the true labels are; all others are negatives.

        Returns
        -------
        loss : float
            Mean over the points.
        slope : float32 Tensor (n, n_pool)
            Of the sum over the points, not of their mean.
        """
        ...


def checked_slope(
    loss: PairLoss, cosines: Tensor, rows: Tensor, columns: Tensor
) -> tuple[float, Tensor]:
    """Return what `PairLoss.slope` does, if compiled code can learn by it.

    Raises
    ------
    InputError
        If it is not a number and a slope for each cosine.

    Examples
    --------
    >>> import torch
    >>> from longtail.siamese.pair_losses import TripletLoss, checked_slope
    >>> cosines, first = torch.tensor([[0.5, 0.4]]), torch.tensor([0])
    >>> checked_slope(TripletLoss(), cosines, first, first)[1].tolist()
    [[-1.0, 1.0]]
    """
    shape = cosines.shape
    found: Any = loss.slope(cosines, rows, columns)
    if not isinstance(found, tuple) or len(found) != 2:
        raise InputError(
            f"`slope` of {type(loss).__name__} must return two things, the loss and its slope, "
            f"got {named(found)}."
        )
    value, slope = found
    if not isinstance(slope, torch.Tensor) or slope.shape != shape:
        got = tuple(slope.shape) if isinstance(slope, torch.Tensor) else named(slope)
        raise InputError(
            f"The slope that {type(loss).__name__} returns must be a tensor of the shape of the "
            f"cosines, {tuple(shape)}, got {got}."
        )
    if not math.isfinite(float(slope.sum())):  # of one that is none, neither is the sum
        raise InputError(
            f"The slope that {type(loss).__name__} returns holds NaN, infinite or huge numbers."
        )
    if not isinstance(value, int | float | np.number) and getattr(value, "shape", None) != ():
        raise InputError(
            f"The loss that {type(loss).__name__} returns must be a number, got {named(value)}."
        )
    return float(value.detach() if isinstance(value, torch.Tensor) else value), slope.detach()


@dataclass(frozen=True, kw_only=True)
class TripletLoss:
    """Each true label should be nearer than the hardest false ones by a margin.

    ``sum_p sum_n max(0, margin + cos_n - cos_p)`` for a point, p being its true labels and n the
    `n_hardest` nearest negatives of the batch: NGAME (Dahiya et al., WSDM 2023, section 3) and DEXA
    (KDD 2023).

    Parameters
    ----------
    margin : float
    n_hardest : int
        Negatives of a point that count.

    Examples
    --------
    >>> import torch
    >>> from longtail.siamese.pair_losses import TripletLoss
    >>> cosines, first = torch.tensor([[0.5, 0.4, -0.9]]), torch.tensor([0])
    >>> loss, slope = TripletLoss(margin=0.3, n_hardest=1).slope(cosines, first, first)
    >>> round(loss, 2), slope.tolist()
    (0.2, [[-1.0, 1.0, 0.0]])
    """

    margin: float = 0.3
    n_hardest: int = 10

    def slope(self, cosines: Tensor, rows: Tensor, columns: Tensor) -> tuple[float, Tensor]:
        """See `PairLoss.slope`."""
        of_true = cosines[rows, columns]
        hardest, places = _hardest(cosines, rows, columns, self.n_hardest)
        excess = (self.margin + hardest[rows] - of_true[:, None]).clamp_min_(0)
        violates = (excess > 0).float()  # (n_positives, n_hardest)
        n_violations = torch.zeros_like(hardest).index_add_(0, rows, violates)
        slope = cosines.zero_().scatter_(1, places, n_violations)
        slope[rows, columns] = -violates.sum(dim=1)
        return float(excess.sum()) / len(cosines), slope


@dataclass(frozen=True, kw_only=True)
class DecoupledSoftmax:
    """Each true label against all false ones of the pool.

    ``sum_p -log(e^z_p / (e^z_p + sum_n e^z_n))`` for a point, with ``z = scale * cos``: other true
    labels do not count against p (DEXML: Gupta et al., "Dual-encoders for extreme multi-label
    classification", ICLR 2024).

    Parameters
    ----------
    scale : float
        The inverse of the softmax's temperature.

    Examples
    --------
    >>> import torch
    >>> from longtail.siamese.pair_losses import DecoupledSoftmax
    >>> cosines, first = torch.tensor([[0.5, 0.5]]), torch.tensor([0])
    >>> DecoupledSoftmax(scale=10.0).slope(cosines, first, first)[1]
    tensor([[-5.,  5.]])
    """

    scale: float = 20.0

    def slope(self, cosines: Tensor, rows: Tensor, columns: Tensor) -> tuple[float, Tensor]:
        """See `PairLoss.slope`."""
        logits = cosines.mul_(self.scale)
        loss, slope = decoupled_softmax(logits, rows, columns, self.scale)
        return loss, slope.mul_(self.scale)


@dataclass(frozen=True, kw_only=True)
class ProbabilisticContrast:
    """True labels and the hardest false ones, each by itself, as a probability.

    SiameseXML (Dahiya et al., ICML 2021, section 3) takes ``P = c exp(d (cos - 1))`` for the
    probability that a label is true. A true label costs ``-log P``, here without the constant
    ``-log c``, and a false one ``-log(1 - P)``.

    Parameters
    ----------
    largest_chance : float
        c, above 0 and below 1: the probability where the cosine is 1.
    steepness : float
        d, above 0: how fast it falls with the cosine.
    n_hardest : int
        Negatives that count: labels of a point, or points of a label.
    of_labels : bool
        Whether each label of the pool has its hardest points of the batch for negatives, as in the
        paper's Module I, whose batches are drawn over labels; otherwise each point has its hardest
        labels.

    Raises
    ------
    InputError
        If `largest_chance` or `steepness` is out of its range.

    Examples
    --------
    >>> import torch
    >>> from longtail.siamese.pair_losses import ProbabilisticContrast
    >>> cosines, first = torch.tensor([[0.5, 0.4, -0.9]]), torch.tensor([0])
    >>> ProbabilisticContrast(n_hardest=1).slope(cosines, first, first)[1].round(decimals=1)
    tensor([[-1.5000,  0.9000,  0.0000]])
    >>> cosines = torch.tensor([[0.9, 0.8, 0.1], [0.2, 0.3, 0.9]])
    >>> rows, columns = torch.tensor([0, 1]), torch.tensor([0, 2])
    >>> loss = ProbabilisticContrast(n_hardest=1, of_labels=True)
    >>> loss.slope(cosines, rows, columns)[1].round(decimals=1)
    tensor([[-1.5000,  3.0000,  0.5000],
            [ 0.6000,  0.0000, -1.5000]])
    """

    largest_chance: float = 0.9
    steepness: float = 1.5
    n_hardest: int = 2
    of_labels: bool = False

    def __post_init__(self) -> None:
        if not (0 < self.largest_chance < 1 and self.steepness > 0):
            raise InputError(
                "largest_chance must be above 0 and below 1, and steepness above 0, got "
                f"{self.largest_chance} and {self.steepness}."
            )

    def slope(self, cosines: Tensor, rows: Tensor, columns: Tensor) -> tuple[float, Tensor]:
        """See `PairLoss.slope`."""
        n_points = len(cosines)
        if self.of_labels:
            loss, slope = self._summed(cosines.T, columns, rows)
            return loss / n_points, slope.T
        loss, slope = self._summed(cosines, rows, columns)
        return loss / n_points, slope

    def _summed(self, cosines: Tensor, rows: Tensor, columns: Tensor) -> tuple[float, Tensor]:
        """Return the loss of all rows, each against its hardest columns, and its slope."""
        of_true = cosines[rows, columns]
        hardest, places = _hardest(cosines, rows, columns, self.n_hardest)
        if self.of_labels:  # several processes have some of the points each
            hardest[~among_largest(hardest, self.n_hardest)] = -torch.inf
        steepness = self.steepness
        chances = self.largest_chance * (steepness * (hardest - 1)).exp()  # no negative, no chance
        loss = steepness * (1 - of_true).sum() - (-chances).log1p().sum()
        slope = cosines.zero_().scatter_(1, places, steepness * chances / (1 - chances))
        slope[rows, columns] = -steepness
        return float(loss), slope


def _hardest(
    cosines: Tensor, rows: Tensor, columns: Tensor, n_hardest: int
) -> tuple[Tensor, Tensor]:
    """Return the cosines and places of each point's nearest negatives; -inf where there are none.

    The cosines of the true labels are overwritten.
    """
    cosines[rows, columns] = -torch.inf
    hardest, places = cosines.topk(min(n_hardest, cosines.shape[1]), dim=1)
    return hardest, places
