"""The network that blends scores while it is trained, its gradient by hand.

Small products, thousands of times: torch's automatic differentiation would take as long as they do,
and so would torch's own functions for what is between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from longtail.kernels.ranking_network import (
    activate,
    pass_back,
    pass_back_last,
    score,
)
from longtail.training.ranking_loss import ranking_slope
from longtail.training.scratch import Scratch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Layers", "RankingNetwork"]


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

    Examples
    --------
    The third of three candidates is true; each has one view.

    >>> import torch
    >>> from longtail.blend.ranking_network import RankingNetwork
    >>> network = RankingNetwork(1, 8, 8, 0.0, torch.Generator().manual_seed(0))
    >>> views, is_true = torch.tensor([[[2.0], [1.0], [0.0]]]), torch.tensor([[False, False, True]])
    >>> for _ in range(100):
    ...     network.parameters -= 0.1 * network.gradient(views, is_true, torch.zeros(1, 3))
    >>> network.logits(views).argmax().item()
    2
    """

    def __init__(
        self, n_views: int, n_first: int, n_second: int, dropout: float, random: torch.Generator
    ) -> None:
        self._dropout, self._random = dropout, random
        self._scratch = Scratch()
        shapes = ((n_views, n_first), (n_first,), (n_first, n_second), (n_second,), (n_second,))
        fans = (n_views, n_views, n_first, n_first, n_second)
        self._shapes = tuple(torch.Size(shape) for shape in shapes)
        self.parameters = torch.empty(sum(shape.numel() for shape in self._shapes))
        self.layers = self._as_layers(self.parameters)
        self._gradient = torch.empty_like(self.parameters)
        self._gradient_layers = self._as_layers(self._gradient)
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
        views : float32 Tensor (n, size, n_views)
        """
        n, size, n_views = views.shape
        first, first_bias, second, second_bias, last = self.layers
        after_first = torch.addmm(first_bias, views.view(-1, n_views), first).relu_()
        after_second = torch.addmm(second_bias, after_first, second).relu_()
        return torch.mv(after_second, last).view(n, size)

    def gradient(self, views: Tensor, is_true: Tensor, log_counts: Tensor) -> Tensor:
        """Return the gradient of `ranking_loss`, float32 (n_parameters,); the next one replaces it.

        Parameters
        ----------
        views : float32 Tensor (n, size, n_views)
        is_true, log_counts : Tensor (n, size)
            See `ranking_loss`.
        """
        n, size, n_views = views.shape
        inputs, to = views.view(n * size, n_views), self._gradient_layers
        logits = self._scratch.tensor("logits", (n, size))
        after_first = self._activated("first", inputs, *self.layers[:2], size)
        after_second = self._activated("second", after_first, *self.layers[2:4], size)
        score(after_second.numpy(), self.layers.last.numpy(), logits.view(-1).numpy())
        slope = ranking_slope(logits, is_true, log_counts)
        to_second = self._scratch.tensor("to second", tuple(after_second.shape))
        pass_back_last(
            slope.view(-1).numpy(),
            after_second.numpy(),
            self.layers.last.numpy(),
            self._dropout,
            to_second.numpy(),
            to.last.numpy(),
            to.second_bias.numpy(),
        )
        to_first = self._product("to first", to_second, self.layers.second.T)
        pass_back(to_first.numpy(), after_first.numpy(), self._dropout, to.first_bias.numpy())
        torch.mm(inputs.T, to_first, out=to.first)
        torch.mm(after_first.T, to_second, out=to.second)
        return self._gradient

    def _activated(
        self, name: str, inputs: Tensor, weights: Tensor, bias: Tensor, size: int
    ) -> Tensor:
        """Return the units of a layer, some of them dropped."""
        units = self._product(name, inputs, weights)
        drawn = self._drawn(len(inputs) // size, len(bias))
        activate(units.numpy(), bias.numpy(), drawn.numpy(), self._dropout, size)
        return units

    def _product(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        """Return the product of two matrices, in place of the last one of that name."""
        out = self._scratch.tensor(name, (left.shape[0], right.shape[1]))
        return torch.mm(left, right, out=out)

    def _drawn(self, n_points: int, n_units: int) -> Tensor:
        """Draw what decides which units of each point are dropped, (n_points, n_units)."""
        return torch.rand(n_points, n_units, generator=self._random)
