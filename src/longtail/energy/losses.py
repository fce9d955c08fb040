"""What training asks of the labels that an inference finds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn

from longtail.energy.descent import Projected
from longtail.energy.terms import energy_of

if TYPE_CHECKING:
    from torch import Tensor

    from longtail.energy.descent import Descent
    from longtail.energy.terms import EnergyTerms

__all__ = ["CrossEntropy", "EnergyLoss", "SoftF1", "SquaredError", "StructuredHinge"]

EDGE = 1e-6  # how near to 0 and 1 a label is taken before its logarithm
LEAST_SIZE = 1e-6  # of two sets of labels together, before their F1 is divided by it


class EnergyLoss(Protocol):
    """How wrong an energy is at some points."""

    def value(self, terms: EnergyTerms, truth: Tensor, descent: Descent) -> Tensor:
        """Return the mean over points; `truth` is (n, L) of zeros and ones."""
        ...


@dataclass(frozen=True)
class SquaredError:
    """End to end: the squared distance of the inferred labels from the true ones.

    Differentiating through the steps of the inference is Belanger, Yang and McCallum, "End-to-end
    learning for structured prediction energy networks", ICML 2017, section 3.

    Examples
    --------
    Both labels are inferred, one is true: they are one label apart.

    >>> import torch
    >>> from longtail.energy.descent import Descent
    >>> from longtail.energy.losses import SquaredError
    >>> from longtail.energy.terms import EnergyTerms
    >>> zero = torch.zeros(1)
    >>> terms = EnergyTerms(torch.tensor([[9.0, 9.0]]), (torch.zeros(2, 1),), (zero,), (zero,))
    >>> loss = SquaredError().value(terms, torch.tensor([[1.0, 0.0]]), Descent())
    >>> round(loss.item(), 2)
    1.0
    """

    def value(self, terms: EnergyTerms, truth: Tensor, descent: Descent) -> Tensor:
        """See `EnergyLoss`."""
        return (descent.labels(terms) - truth).square().sum(dim=1).mean()


@dataclass(frozen=True)
class CrossEntropy:
    """End to end: the cross entropy of the inferred labels, summed over labels.

    Examples
    --------
    Two labels of which nothing is known cost log 2 each.

    >>> import torch
    >>> from longtail.energy.descent import Descent
    >>> from longtail.energy.losses import CrossEntropy
    >>> from longtail.energy.terms import EnergyTerms
    >>> zero = torch.zeros(1)
    >>> terms = EnergyTerms(torch.zeros(1, 2), (torch.zeros(2, 1),), (zero,), (zero,))
    >>> loss = CrossEntropy().value(terms, torch.tensor([[1.0, 0.0]]), Descent())
    >>> round(loss.item(), 3)
    1.386
    """

    def value(self, terms: EnergyTerms, truth: Tensor, descent: Descent) -> Tensor:
        """See `EnergyLoss`."""
        labels = descent.labels(terms).clamp(EDGE, 1 - EDGE)
        losses = nn.functional.binary_cross_entropy(labels, truth, reduction="none")
        return losses.sum(dim=1).mean()


@dataclass(frozen=True)
class SoftF1:
    """End to end: one less a point's F1, relaxed labels counting as shares of labels.

    ``1 - 2 y . t / (sum y + sum t)``. The other losses are sums over labels, so where labels are
    independent of each other, given the point, only this one can gain by an energy over all.

    Examples
    --------
    Both labels are inferred, one is true: F1 is 2/3.

    >>> import torch
    >>> from longtail.energy.descent import Descent
    >>> from longtail.energy.losses import SoftF1
    >>> from longtail.energy.terms import EnergyTerms
    >>> zero = torch.zeros(1)
    >>> terms = EnergyTerms(torch.tensor([[9.0, 9.0]]), (torch.zeros(2, 1),), (zero,), (zero,))
    >>> loss = SoftF1().value(terms, torch.tensor([[1.0, 0.0]]), Descent())
    >>> round(loss.item(), 2)
    0.33
    """

    def value(self, terms: EnergyTerms, truth: Tensor, descent: Descent) -> Tensor:
        """See `EnergyLoss`."""
        labels = descent.labels(terms)
        sizes = labels.sum(dim=1) + truth.sum(dim=1)
        shared = 2 * (labels * truth).sum(dim=1)
        return (1 - shared / sizes.clamp_min(LEAST_SIZE)).mean()


@dataclass(frozen=True)
class StructuredHinge:
    """Structured hinge (SSVM): the truth's energy a margin below that of any other labelling.

    ``max_y [Delta(y, t) - E(y) + E(t)]_+`` (Belanger and McCallum, 2016, section 5), with the loss
    of labels that differ, ``Delta = margin sum_l |y_l - t_l|``. On [0, 1] that is linear in y, so
    the loss-augmented inference is one with other unaries. Nothing looks through its steps.

    The y of the maximum is found by projected steps, whatever the descent's own: the entropy, or
    the slope of a sigmoid, would keep y off the corners, where labels that are right count against
    those that are not.

    Parameters
    ----------
    margin : float
        For each label that differs.

    Examples
    --------
    Unaries that tell the labels apart by more than the margin cost nothing, weaker ones do.

    >>> import torch
    >>> from longtail.energy.descent import Descent
    >>> from longtail.energy.losses import StructuredHinge
    >>> from longtail.energy.terms import EnergyTerms
    >>> none, truth = torch.zeros(1), torch.tensor([[1.0, 0.0]])
    >>> for unaries in (torch.tensor([[2.0, -2.0]]), torch.tensor([[0.5, -2.0]])):
    ...     terms = EnergyTerms(unaries, (torch.zeros(2, 1),), (none,), (none,))
    ...     round(StructuredHinge().value(terms, truth, Descent()).item(), 2)
    0.0
    0.5
    """

    margin: float = 1.0

    def value(self, terms: EnergyTerms, truth: Tensor, descent: Descent) -> Tensor:
        """See `EnergyLoss`."""
        with torch.no_grad():
            augmented = terms.unaries + self.margin * (1 - 2 * truth)
            projected = replace(descent, parametrisation=Projected())
            worst = projected.labels(terms.detached().with_unaries(augmented))
            apart = self.margin * (worst - truth).abs().sum(dim=1)
        gaps = apart - energy_of(worst, terms) + energy_of(truth, terms)
        return gaps.relu().mean()
