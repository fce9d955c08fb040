"""A loss that ranks the true candidates of a point before its false ones, and its slope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from longtail.kernels.ranking_network import write_ranking_slopes

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["log_counts_of", "ranking_loss", "ranking_slope"]


def log_counts_of(labels: Tensor) -> Tensor:
    """Return the `log_counts` of candidates padded with -1, each of which stands for itself.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.ranking_loss import log_counts_of
    >>> log_counts_of(torch.tensor([[7, 4, -1]])).tolist()
    [[0.0, 0.0, -inf]]
    """
    return torch.zeros(labels.shape).masked_fill_(labels < 0, -torch.inf)


def ranking_loss(logits: Tensor, is_true: Tensor, log_counts: Tensor) -> Tensor:
    """Return the mean over points of the decoupled softmax over the root of a point's true labels.

    Each true candidate against all false ones (Gupta et al., "Dual-encoders for extreme multi-label
    classification", ICLR 2024). A point with four true candidates counts as two points with one.

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
    of_false = _of_false(logits, is_true, log_counts).logsumexp(dim=1, keepdim=True)
    losses = functional.softplus(of_false - logits) * is_true
    counts = is_true.sum(dim=1).sqrt()
    return (losses.sum(dim=1) / counts).mean()


def ranking_slope(logits: Tensor, is_true: Tensor, log_counts: Tensor) -> Tensor:
    """Return the slope of `ranking_loss` with respect to the logits, float32 (n, size).

    Examples
    --------
    >>> import torch
    >>> from longtail.training.ranking_loss import ranking_slope
    >>> is_true = torch.tensor([[True, False, False]])
    >>> ranking_slope(torch.zeros(1, 3), is_true, torch.zeros(1, 3)).round(decimals=3)
    tensor([[-0.6670,  0.3330,  0.3330]])
    """
    slopes = torch.empty_like(logits)
    write_ranking_slopes(logits.numpy(), is_true.numpy(), log_counts.numpy(), slopes.numpy())
    return slopes


def _of_false(logits: Tensor, is_true: Tensor, log_counts: Tensor) -> Tensor:
    """Return the logits of the false candidates, each as that of all it stands for; else -inf."""
    is_left_out = is_true | log_counts.isneginf()  # so that no slope comes from them
    return (logits + log_counts).masked_fill(is_left_out, -torch.inf)
