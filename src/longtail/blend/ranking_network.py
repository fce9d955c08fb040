"""The network that blends scores while it is trained, its gradient by hand.

Small products, thousands of times: what is between them is as much work as they are, unless it is
done in one pass each, as `longtail.kernels.ranking_network` does.
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
        First the rows of the views that a candidate has for itself, then of those of the point.
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

    Views that are the same for all of them, two of five, are multiplied but once for a point.

    Dropout is of the same units for all candidates of a point: they are compared within it only,
    and to draw for each would cost more than the products.

    Parameters
    ----------
    n_views, n_hidden1, n_hidden2 : int
        Inputs of a candidate, those of its point included, and units of the layers.
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
    The third of three candidates is true; each has one view, and so has the point.

    >>> import numpy as np
    >>> from longtail.blend.ranking_network import RankingNetwork
    >>> network = RankingNetwork(2, 8, 8, 0.0, np.random.default_rng(0))
    >>> views, of_points = np.array([[[2], [1], [0]]], np.float32), np.ones((1, 1), np.float32)
    >>> is_true, even = np.array([[False, False, True]]), np.zeros((1, 3), np.float32)
    >>> for _ in range(100):
    ...     network.parameters -= 0.1 * network.gradient(views, of_points, is_true, even, even)
    >>> network.logits(views, of_points).argmax().item()
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

    def logits(self, views: Floats, of_points: Floats) -> Floats:
        """Return the score of each candidate, float32 (n, size), nothing dropped.

        Parameters
        ----------
        views : float32 (n, size, n_own)
            Of each candidate.
        of_points : float32 (n, n_views - n_own)
            The same for all candidates of a point.
        """
        n, size, n_own = views.shape
        layers = self.layers
        hidden1: Floats = views.reshape(n * size, n_own) @ layers.matrix1[:n_own]
        biases1 = of_points @ layers.matrix1[n_own:] + layers.bias1
        hidden1.reshape(n, size, -1)[...] += biases1[:, np.newaxis]
        np.maximum(hidden1, 0, out=hidden1)
        hidden2: Floats = hidden1 @ layers.matrix2
        hidden2 += layers.bias2
        np.maximum(hidden2, 0, out=hidden2)
        logits: Floats = (hidden2 @ layers.last).reshape(n, size)
        return logits

    def gradient(
        self, views: Floats, of_points: Floats, is_true: Flags, log_counts: Floats, said: Floats
    ) -> Floats:
        """Return the gradient of `ranking_loss`, float32 (n_parameters,); the next one replaces it.

        Parameters
        ----------
        views, of_points : float32 (n, size, n_own), (n, n_views - n_own)
            See `logits`.
        is_true : bool (n, size)
        log_counts : float32 (n, size)
            See `longtail.training.ranking_loss.ranking_loss`.
        said : float32 (n, size)
            What is said of each candidate already: the network learns what to add.
        """
        n, size, n_own = views.shape
        inputs, layers, to = views.reshape(n * size, n_own), self.layers, self._gradient_layers
        biases1 = self._product("biases1", of_points, layers.matrix1[n_own:])
        biases1 += layers.bias1
        biases2 = self._scratch.array("biases2", (n, len(layers.bias2)))
        biases2[:] = layers.bias2
        hidden1 = self._activated("hidden1", inputs, layers.matrix1[:n_own], biases1)
        hidden2 = self._activated("hidden2", hidden1, layers.matrix2, biases2)
        to_hidden2 = self._slope(hidden2, is_true, log_counts, said)
        to_hidden1 = self._product("to hidden1", to_hidden2, layers.matrix2.T)
        to_biases1 = self._scratch.array("to biases1", biases1.shape)
        pass_back(to_hidden1, hidden1, self._dropout, to_biases1)
        np.matmul(inputs.T, to_hidden1, out=to.matrix1[:n_own])
        np.matmul(of_points.T, to_biases1, out=to.matrix1[n_own:])
        np.sum(to_biases1, axis=0, out=to.bias1)
        np.matmul(hidden1.T, to_hidden2, out=to.matrix2)
        return self._gradient

    def _slope(self, hidden2: Floats, is_true: Flags, log_counts: Floats, said: Floats) -> Floats:
        """Return that of the loss with respect to `hidden2`, and note those of what comes after."""
        last, to = self.layers.last, self._gradient_layers
        logits = self._scratch.array("logits", is_true.shape)
        score(hidden2, last, logits.reshape(-1))
        logits += said
        slope = ranking_slope(logits, is_true, log_counts).reshape(-1)
        to_hidden2 = self._scratch.array("to hidden2", hidden2.shape)
        pass_back_last(slope, hidden2, last, self._dropout, to_hidden2, to.last, to.bias2)
        return to_hidden2

    def _activated(self, name: str, inputs: Floats, matrix: Floats, biases: Floats) -> Floats:
        """Return the units of a layer, some of them dropped."""
        units = self._product(name, inputs, matrix)
        activate(units, biases, self._drawn(*biases.shape), self._dropout)
        return units

    def _product(self, name: str, left: Floats, right: Floats) -> Floats:
        """Return the product of two matrices, in place of the last one of that name."""
        out = self._scratch.array(name, (left.shape[0], right.shape[1]))
        return np.matmul(left, right, out=out)

    def _drawn(self, n_points: int, n_units: int) -> Floats:
        """Draw what decides which units of each point are dropped, (n_points, n_units)."""
        drawn = self._scratch.array("drawn", (n_points, n_units))
        return self._random.random(dtype=np.float32, out=drawn)
