"""The network that blends scores while it is trained: its loss, and the gradient by hand.

Tens of small products a step: torch's automatic differentiation would take as long as they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Layers", "RankingNetwork", "log_counts_of", "ranking_loss", "ranking_slope"]

SMALLEST_LOGIT = -1e30  # of no label at all; unlike -inf it can be subtracted from itself


def log_counts_of(labels: Tensor) -> Tensor:
    """Return the `log_counts` of candidates padded with -1, each of which stands for itself."""
    return torch.zeros(labels.shape).masked_fill_(labels < 0, -torch.inf)


def ranking_loss(logits: Tensor, is_true: Tensor, log_counts: Tensor) -> Tensor:
    """Return the mean over points of the decoupled softmax.

    Parameters
    ----------
    logits : Tensor (n, size)
    is_true : Tensor of bool (n, size)
        Which candidates are true.
    log_counts : Tensor (n, size)
        The logarithm of how many false candidates each stands for: 0, unless some were drawn to
        stand for others (Bengio and Senécal, 2008); -inf for padding.
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
    >>> from longtail.blend.ranking_network import ranking_slope
    >>> is_true = torch.tensor([[True, False, False]])
    >>> ranking_slope(torch.zeros(1, 3), is_true, torch.zeros(1, 3)).round(decimals=3)
    tensor([[-0.6670,  0.3330,  0.3330]])
    """
    false = _of_false(logits, is_true, log_counts)
    of_false = false.logsumexp(dim=1, keepdim=True).clamp_min_(SMALLEST_LOGIT)
    weights = is_true / is_true.sum(dim=1, keepdim=True).clamp_min(1).sqrt().mul_(len(logits))
    of_true = torch.sigmoid(of_false - logits).mul_(weights)
    return (false - of_false).exp_().mul_(of_true.sum(dim=1, keepdim=True)).sub_(of_true)


def _of_false(logits: Tensor, is_true: Tensor, log_counts: Tensor) -> Tensor:
    """Return the logits of the false candidates, each as that of all it stands for; else -inf."""
    is_left_out = is_true | log_counts.isneginf()  # so that no slope comes from them
    return (logits + log_counts).masked_fill(is_left_out, -torch.inf)


class Layers(NamedTuple):
    """What a network is made of, or its gradient.

    Attributes
    ----------
    first, first_bias : Tensor (n_views, n_first), (n_first,)
    second, second_bias : Tensor (n_first, n_second), (n_second,)
    last : Tensor (n_second,)
    """

    first: Tensor
    first_bias: Tensor
    second: Tensor
    second_bias: Tensor
    last: Tensor


class RankingNetwork:
    """Two layers of ReLU and a sum, the same for each candidate of a point.

    Dropout is of the same units for all candidates of a point: they are compared within it only,
    and to draw for each would cost more than the products.

    Parameters
    ----------
    n_views, n_first, n_second : int
        Inputs of a candidate, and units of the layers.
    dropout : float
        After each layer.
    random : torch.Generator
        Of the start, uniform as torch's linear layers have it, and of the dropout.

    Attributes
    ----------
    parameters : float32 Tensor (n_parameters,)
    layers : Layers
        Views of them.
    """

    def __init__(
        self, n_views: int, n_first: int, n_second: int, dropout: float, random: torch.Generator
    ) -> None:
        self._dropout, self._random = dropout, random
        shapes = ((n_views, n_first), (n_first,), (n_first, n_second), (n_second,), (n_second,))
        fans = (n_views, n_views, n_first, n_first, n_second)
        self._shapes = tuple(torch.Size(shape) for shape in shapes)
        self.parameters = torch.empty(sum(shape.numel() for shape in self._shapes))
        self.layers = self._as_layers(self.parameters)
        for part, fan in zip(self.layers, fans, strict=True):
            part.uniform_(-(fan**-0.5), fan**-0.5, generator=random)

    def _as_layers(self, numbers: Tensor) -> Layers:
        """Return views of a vector of as many numbers as there are parameters."""
        parts = torch.split(numbers, [shape.numel() for shape in self._shapes])
        return Layers(*(part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)))

    def logits(self, views: Tensor) -> Tensor:
        """Return the score of each candidate, float32 (n, size), nothing dropped.

        Parameters
        ----------
        views : Tensor (n, size, n_views)
            Its dtype is that of the products.
        """
        n, size, n_views = views.shape
        first, first_bias, second, second_bias, last = self._layers_as(views.dtype)
        after_first = torch.addmm(first_bias, views.view(-1, n_views), first).relu_()
        after_second = torch.addmm(second_bias, after_first, second).relu_()
        return torch.mv(after_second, last).float().view(n, size)

    def gradient(self, views: Tensor, is_true: Tensor, log_counts: Tensor) -> Tensor:
        """Return the gradient of `ranking_loss`, float32 (n_parameters,).

        Parameters
        ----------
        views : Tensor (n, size, n_views)
            Its dtype is that of the products.
        is_true, log_counts : Tensor (n, size)
            See `ranking_loss`.
        """
        n, size, _ = views.shape
        first, first_bias, second, second_bias, last = self._layers_as(views.dtype)
        kept_first, kept_second = (self._kept(n, bias) for bias in (first_bias, second_bias))

        def by_point(units: Tensor, factors: Tensor) -> Tensor:
            units.view(n, size, -1).mul_(factors)
            return units

        inputs = views.view(n * size, -1)
        after_first = by_point(torch.addmm(first_bias, inputs, first).relu_(), kept_first)
        after_second = by_point(torch.addmm(second_bias, after_first, second).relu_(), kept_second)
        logits = torch.mv(after_second, last).float().view(n, size)

        slope = ranking_slope(logits, is_true, log_counts).to(views.dtype)
        to_second = (slope[:, :, None] * (kept_second * last)).view(after_second.shape)
        to_second = _passed(to_second, after_second)
        to_first = _passed(by_point(to_second @ second.T, kept_first), after_first)
        parts = Layers(
            inputs.T @ to_first,
            to_first.sum(dim=0),
            after_first.T @ to_second,
            to_second.sum(dim=0),
            after_second.T @ slope.view(-1),
        )
        return torch.cat([part.reshape(-1) for part in parts]).float()

    def _layers_as(self, dtype: torch.dtype) -> Layers:
        """Return the layers as numbers of a type."""
        return self._as_layers(self.parameters.to(dtype))

    def _kept(self, n_points: int, bias: Tensor) -> Tensor:
        """Draw factors for the units of a layer of each point, (n_points, 1, n_units)."""
        drawn = torch.rand(n_points, 1, len(bias), generator=self._random)
        return (drawn >= self._dropout).to(bias.dtype).div_(1 - self._dropout)


def _passed(slopes: Tensor, units: Tensor) -> Tensor:
    """Return the slopes of those units that a ReLU let through, and 0 for others."""
    passed: Tensor = torch.ops.aten.threshold_backward(slopes, units, 0)
    return passed
