"""A loss that ranks the true candidates of a point before its false ones."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ranking_loss"]


def ranking_loss(logits: Tensor, is_true: Tensor, log_counts: Tensor) -> Tensor:
    """Return the mean over points of the decoupled softmax over the root of a point's true labels.

    Each true candidate against all false ones (Gupta et al., "Dual-encoders for extreme multi-label
    classification", ICLR 2024). A point with four true candidates counts as two points with one.
    Its slope, without automatic differentiation, is `longtail.training.ranking_slope`.

    Parameters
    ----------
    logits : Tensor (n, size)
    is_true : Tensor of bool (n, size)
        Which candidates are true.
    log_counts : Tensor (n, size)
        The logarithm of how many false candidates each stands for: 0, unless some were drawn to
        stand for others (Bengio and Senécal, 2008); -inf for padding.

    Examples
    --------
    The true candidate is level with two false ones, and then with one that stands for two.

    >>> import torch
    >>> from longtail.training.ranking_loss import ranking_loss
    >>> is_true = torch.tensor([[True, False, False]])
    >>> round(ranking_loss(torch.zeros(1, 3), is_true, torch.zeros(1, 3)).item(), 3)
    1.099
    >>> log_counts = torch.tensor([[1.0, 2.0]]).log()
    >>> round(ranking_loss(torch.zeros(1, 2), is_true[:, :2], log_counts).item(), 3)
    1.099
    """
    is_left_out = is_true | log_counts.isneginf()  # so that no slope comes from them
    left = (logits + log_counts).masked_fill(is_left_out, -inf)
    of_false = left.logsumexp(dim=1, keepdim=True)
    losses = functional.softplus(of_false - logits) * is_true
    counts = is_true.sum(dim=1).sqrt()
    return (losses.sum(dim=1) / counts).mean()
