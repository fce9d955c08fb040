"""The network that blends scores while it is trained, its gradient by hand.

Small products, thousands of times: automatic differentiation would take as long as they do, and so
would numpy's own functions for what is between them.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.ranking_network import (
    activate,
    pass_back,
    pass_back_last,
    score,
)
from longtail.training.ranking_slope import ranking_slope
from longtail.training.scratch import Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float32]

__all__ = ["Layers", "RankingNetwork"]


class Layers(NamedTuple):
    """What a network is made of, or its gradient, named as in the `ScoreNetwork` that it becomes.

    Attributes
    ----------
    matrix1, bias1 : float32 (n_views, n_hidden1), (n_hidden1,)
    matrix2, bias2 : float32 (n_hidden1, n_hidden2), (n_hidden2,)
    last : float32 (n_hidden2,)
    """

    matrix1: Floats
    bias1: Floats
    matrix2: Floats
    bias2: Floats
    last: Floats


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
    random : np.random.Generator
        Of the start, uniform up to one over the root of a layer's inputs, and of the dropout.

    Attributes
    ----------
    parameters : float32 (n_parameters,)
    layers : Layers
        Views of them.

    Examples
    --------
    The third of three candidates is true; each has one view.

    >>> import numpy as np
    >>> from longtail.blend.ranking_network import RankingNetwork
    >>> network = RankingNetwork(1, 8, 8, 0.0, np.random.default_rng(0))
    >>> views = np.array([[[2], [1], [0]]], np.float32)
    >>> is_true, even = np.array([[False, False, True]]), np.zeros((1, 3), np.float32)
    >>> for _ in range(100):
    ...     network.parameters -= 0.1 * network.gradient(views, is_true, even)
    >>> network.logits(views).argmax().item()
    2
    """

    def __init__(
        self,
        n_views: int,
        n_hidden1: int,
        n_hidden2: int,
        dropout: float,
        random: np.random.Generator,
    ) -> None:
        self._dropout, self._random = dropout, random
        self._scratch = Scratch()
        self._shapes = {
            "matrix1": (n_views, n_hidden1),
            "bias1": (n_hidden1,),
            "matrix2": (n_hidden1, n_hidden2),
            "bias2": (n_hidden2,),
            "last": (n_hidden2,),
        }
        fans = (n_views, n_views, n_hidden1, n_hidden1, n_hidden2)
        self.parameters = np.empty(sum(map(prod, self._shapes.values())), np.float32)
        self.layers = self._as_layers(self.parameters)
        self._gradient = np.empty_like(self.parameters)
        self._gradient_layers = self._as_layers(self._gradient)
        for part, fan in zip(self.layers, fans, strict=True):
            part[...] = random.uniform(-(fan**-0.5), fan**-0.5, part.shape)

    def _as_layers(self, numbers: Floats) -> Layers:
        """Return views of a vector of as many numbers as there are parameters."""
        ends = np.cumsum([prod(shape) for shape in self._shapes.values()])
        named = zip(self._shapes.items(), np.split(numbers, ends[:-1]), strict=True)
        return Layers(**{name: part.reshape(shape) for (name, shape), part in named})

    def logits(self, views: Floats) -> Floats:
        """Return the score of each candidate, float32 (n, size), nothing dropped.

        Parameters
        ----------
        views : float32 (n, size, n_views)
        """
        n, size, n_views = views.shape
        units, layers = views.reshape(n * size, n_views), self.layers
        for matrix, bias in ((layers.matrix1, layers.bias1), (layers.matrix2, layers.bias2)):
            units = units @ matrix
            units += bias
            np.maximum(units, 0, out=units)
        logits: Floats = (units @ layers.last).reshape(n, size)
        return logits

    def gradient(self, views: Floats, is_true: Flags, log_counts: Floats) -> Floats:
        """Return the gradient of `ranking_loss`, float32 (n_parameters,); the next one replaces it.

        Parameters
        ----------
        views : float32 (n, size, n_views)
        is_true : bool (n, size)
        log_counts : float32 (n, size)
            See `longtail.training.ranking_loss.ranking_loss`.
        """
        n, size, n_views = views.shape
        inputs, layers, to = views.reshape(n * size, n_views), self.layers, self._gradient_layers
        logits = self._scratch.array("logits", (n, size))
        hidden1 = self._activated("hidden1", inputs, layers.matrix1, layers.bias1, size)
        hidden2 = self._activated("hidden2", hidden1, layers.matrix2, layers.bias2, size)
        score(hidden2, layers.last, logits.reshape(-1))
        slope = ranking_slope(logits, is_true, log_counts).reshape(-1)
        to_hidden2 = self._scratch.array("to hidden2", hidden2.shape)
        pass_back_last(slope, hidden2, layers.last, self._dropout, to_hidden2, to.last, to.bias2)
        to_hidden1 = self._product("to hidden1", to_hidden2, layers.matrix2.T)
        pass_back(to_hidden1, hidden1, self._dropout, to.bias1)
        np.matmul(inputs.T, to_hidden1, out=to.matrix1)
        np.matmul(hidden1.T, to_hidden2, out=to.matrix2)
        return self._gradient

    def _activated(
        self, name: str, inputs: Floats, matrix: Floats, bias: Floats, size: int
    ) -> Floats:
        """Return the units of a layer, some of them dropped."""
        units = self._product(name, inputs, matrix)
        drawn = self._drawn(len(inputs) // size, len(bias))
        activate(units, bias, drawn, self._dropout, size)
        return units

    def _product(self, name: str, left: Floats, right: Floats) -> Floats:
        """Return the product of two matrices, in place of the last one of that name."""
        out = self._scratch.array(name, (left.shape[0], right.shape[1]))
        return np.matmul(left, right, out=out)

    def _drawn(self, n_points: int, n_units: int) -> Floats:
        """Draw what decides which units of each point are dropped, (n_points, n_units)."""
        drawn = self._scratch.array("drawn", (n_points, n_units))
        return self._random.random(dtype=np.float32, out=drawn)
