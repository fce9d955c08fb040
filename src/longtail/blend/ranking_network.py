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
    """What a network is made of, or its gradient, named as in the `ScoreNetwork` that it becomes.

    Attributes
    ----------
    matrix1, bias1 : Tensor (n_views, n_hidden1), (n_hidden1,)
    matrix2, bias2 : Tensor (n_hidden1, n_hidden2), (n_hidden2,)
    last : Tensor (n_hidden2,)
    """

    matrix1: Tensor
    bias1: Tensor
    matrix2: Tensor
    bias2: Tensor
    last: Tensor


class RankingNetwork:
    """Two layers of ReLU and a sum, the same for each candidate of a point.

    Dropout is of the same units for all candidates of a point: they are compared within it only,
    and to draw for each would cost more than the products.

    Parameters
    ----------
    n_views, n_hidden1, n_hidden2 : int
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
        self, n_views: int, n_hidden1: int, n_hidden2: int, dropout: float, random: torch.Generator
    ) -> None:
        self._dropout, self._random = dropout, random
        self._scratch = Scratch()
        self._shapes = {
            "matrix1": torch.Size((n_views, n_hidden1)),
            "bias1": torch.Size((n_hidden1,)),
            "matrix2": torch.Size((n_hidden1, n_hidden2)),
            "bias2": torch.Size((n_hidden2,)),
            "last": torch.Size((n_hidden2,)),
        }
        fans = (n_views, n_views, n_hidden1, n_hidden1, n_hidden2)
        self.parameters = torch.empty(sum(shape.numel() for shape in self._shapes.values()))
        self.layers = self._as_layers(self.parameters)
        self._gradient = torch.empty_like(self.parameters)
        self._gradient_layers = self._as_layers(self._gradient)
        for part, fan in zip(self.layers, fans, strict=True):
            part.uniform_(-(fan**-0.5), fan**-0.5, generator=random)

    def _as_layers(self, numbers: Tensor) -> Layers:
        """Return views of a vector of as many numbers as there are parameters."""
        parts = torch.split(numbers, [shape.numel() for shape in self._shapes.values()])
        named = zip(self._shapes.items(), parts, strict=True)
        return Layers(**{name: part.view(shape) for (name, shape), part in named})

    def logits(self, views: Tensor) -> Tensor:
        """Return the score of each candidate, float32 (n, size), nothing dropped.

        Parameters
        ----------
        views : float32 Tensor (n, size, n_views)
        """
        n, size, n_views = views.shape
        layers = self.layers
        hidden1 = torch.addmm(layers.bias1, views.view(-1, n_views), layers.matrix1).relu_()
        hidden2 = torch.addmm(layers.bias2, hidden1, layers.matrix2).relu_()
        return torch.mv(hidden2, layers.last).view(n, size)

    def gradient(self, views: Tensor, is_true: Tensor, log_counts: Tensor) -> Tensor:
        """Return the gradient of `ranking_loss`, float32 (n_parameters,); the next one replaces it.

        Parameters
        ----------
        views : float32 Tensor (n, size, n_views)
        is_true, log_counts : Tensor (n, size)
            See `ranking_loss`.
        """
        n, size, n_views = views.shape
        inputs, layers, to = views.view(n * size, n_views), self.layers, self._gradient_layers
        logits = self._scratch.tensor("logits", (n, size))
        hidden1 = self._activated("hidden1", inputs, layers.matrix1, layers.bias1, size)
        hidden2 = self._activated("hidden2", hidden1, layers.matrix2, layers.bias2, size)
        score(hidden2.numpy(), layers.last.numpy(), logits.view(-1).numpy())
        slope = ranking_slope(logits, is_true, log_counts)
        to_hidden2 = self._scratch.tensor("to hidden2", tuple(hidden2.shape))
        pass_back_last(
            slope.view(-1).numpy(),
            hidden2.numpy(),
            layers.last.numpy(),
            self._dropout,
            to_hidden2.numpy(),
            to.last.numpy(),
            to.bias2.numpy(),
        )
        to_hidden1 = self._product("to hidden1", to_hidden2, layers.matrix2.T)
        pass_back(to_hidden1.numpy(), hidden1.numpy(), self._dropout, to.bias1.numpy())
        torch.mm(inputs.T, to_hidden1, out=to.matrix1)
        torch.mm(hidden1.T, to_hidden2, out=to.matrix2)
        return self._gradient

    def _activated(
        self, name: str, inputs: Tensor, matrix: Tensor, bias: Tensor, size: int
    ) -> Tensor:
        """Return the units of a layer, some of them dropped."""
        units = self._product(name, inputs, matrix)
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
