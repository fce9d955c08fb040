"""Label vectors on the unit sphere while they are trained: decoupled softmax over a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.jit import over_row_chunks
from longtail.kernels.softmax import decoupled_slopes
from longtail.named_parts import joined_parts
from longtail.training.row_adagrad import RowAdagrad
from longtail.training.scratch import Scratch, empty_array
from longtail.training.threads import n_training_threads
from longtail.training.units import (
    SMALLEST_LENGTH,
    DroppedUnits,
    PoolUnits,
    Units,
    random_bytes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.training.batches import Batch
    from longtail.training.products import Products
    from longtail.training.state import State

    Floats = NDArray[np.float32]

__all__ = ["UnitLabels", "trained_directions", "write_slopes"]

BLOCK = 4_096  # rows that are made unit ones at a time, as copies of millions would count


class UnitLabels:
    """One vector a label, compared with points by angle, in main memory.

    The label's vector is ``w_l = unit(u_l + unit(E(text of l)))``, the second part only where
    texts are given, and its logit ``scale * (w_l . x) + b_l``. The loss of a point is the decoupled
    softmax of DEXML (Gupta et al., ICLR 2024): each true label against all labels of the pool that
    are not true, ``-log(e^z_p / (e^z_p + sum_n e^z_n))``; other true labels do not count against
    it. Its gradient with respect to the logits is written by hand, and two products do the rest.

    Parameters
    ----------
    start : float32 array (n_labels, dimension)
        Vectors u to start from; they are changed.
    bias : float32 array (n_labels,)
        b to start from.
    scale : float
        The inverse of the softmax's temperature.
    products : Products
    dropout : float
        Of the points' sums.
    texts_alone : float
        Share of a pool's labels that are ``w_l = unit(E(text of l))`` in a step, drawn anew for
        each: as dropout does it, but of u_l as a whole.

    Attributes
    ----------
    vectors : float32 (n_labels, dimension)
        u as it is now.
    bias : float32 (n_labels, 1)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.batches import Batch
    >>> from longtail.training.products import Float32Products
    >>> from longtail.training.unit_labels import UnitLabels
    >>> start, bias = np.eye(2, dtype=np.float32), np.zeros(2, np.float32)
    >>> labels = UnitLabels(start, bias, scale=20, products=Float32Products())
    >>> batch = Batch(np.array([0]), np.array([0, 1]), np.array([0]), np.array([0]))
    >>> points = [np.array([[0, 1]], np.float32) for _ in range(3)]  # near 1, but it has label 0
    >>> losses = [labels.learn(point, None, batch, 0.5) for point in points]
    >>> losses[0] > losses[1] > losses[2]
    True
    """

    def __init__(
        self,
        start: Floats,
        bias: Floats,
        *,
        scale: float,
        products: Products,
        dropout: float = 0.0,
        texts_alone: float = 0.0,
    ) -> None:
        self.vectors = start
        self.bias = np.array(bias, np.float32)[:, np.newaxis]
        self._of_vectors, self._of_bias = RowAdagrad(len(start)), RowAdagrad(len(start))
        self._scale, self._products = scale, products
        self._dropout, self._texts_alone = dropout, texts_alone
        self._scratch = Scratch()
        self.draw_anew(0)

    def draw_anew(self, seed: int) -> None:
        """Draw what is left out from this seed on."""
        self._random = np.random.default_rng(seed)

    def learn(
        self, points: Floats, texts: Floats | None, batch: Batch, learning_rate: float
    ) -> float:
        """Step the labels of the batch's pool; return the mean over points of the loss.

        Parameters
        ----------
        points : float32 (n, dimension)
            Sums, written over with the gradient of the loss, summed over the points, by them.
        texts : float32 (n_pool, dimension) or None
            The same of the texts of the pool's labels.
        batch : Batch
            With a pool.
        learning_rate : float
        """
        dtype, pool = self._products.dtype, _pool_of(batch, len(self.vectors))
        drawn = random_bytes((len(points), points.shape[1]), self._dropout, self._random)
        x = DroppedUnits(points, *drawn, dtype)
        unit_texts = None if texts is None else Units.in_place(texts)
        w = PoolUnits(self.vectors, self._some_without_own(pool, unit_texts), unit_texts, dtype)

        slopes = self._product("slopes", x.unit, w.unit.T)
        bias, true = self.bias[pool, 0], (batch.positive_rows, batch.positive_columns)
        loss, to_bias = write_slopes(slopes, bias, self._scale, *true)

        to_points = self._product("to points", slopes, w.unit)
        to_labels = self._product("to labels", slopes.T, x.unit)
        w.step(self._of_vectors, to_labels, self._scale, learning_rate)
        self._of_bias.step(self.bias, pool, to_bias[:, np.newaxis], learning_rate)
        x.backward(to_points, self._scale)
        return loss

    def _some_without_own(self, pool: NDArray[np.int64], texts: Units | None) -> NDArray[np.int64]:
        """Return the pool with -1 for labels whose text stands alone in this step."""
        if texts is None or self._texts_alone == 0:
            return pool
        is_alone = self._random.random(len(pool), np.float32) < self._texts_alone
        return np.where(is_alone & (texts.lengths > SMALLEST_LENGTH), -1, pool)

    def _product(self, name: str, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Return the product of two matrices, in place of the last one of that name."""
        out = self._scratch.array(name, (left.shape[0], right.shape[1]), self._products.dtype)
        self._products.write(left, right, out)
        return out

    def state(self) -> State:
        """Return the live arrays that a checkpoint keeps."""
        parts = {"vectors": self._of_vectors.state(), "bias": self._of_bias.state()}
        return {"vectors": self.vectors, "bias": self.bias, **joined_parts(parts, ".")}


def _pool_of(batch: Batch, n_labels: int) -> NDArray[np.int64]:
    """Return the labels that a batch is scored against."""
    return np.arange(n_labels) if batch.pool is None else batch.pool


def write_slopes(
    products: NDArray[Any],
    bias: Floats,
    scale: float,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> tuple[float, Floats]:
    """Turn products of points and labels into slopes of the decoupled softmax, in one pass.

    With Z the sum of e^z over a point's negatives, a true label's slope is -Z / (e^z_p + Z), and a
    negative's is e^z times the sum over the true labels of 1 / (e^z_p + Z).

    Parameters
    ----------
    products : float32, or uint16 for the bits of bfloat16s, (n, n_pool)
        Written over.
    bias : float32 (n_pool,)
    scale : float
    rows, columns : int64 (n_positives,)
        The true labels, by ascending row.

    Returns
    -------
    loss : float
        Mean over the points.
    to_bias : float32 (n_pool,)
        The sum of the slopes over the points.

    Examples
    --------
    Of three labels that score alike, two are true: they do not push each other away.

    >>> import numpy as np
    >>> from longtail.training.unit_labels import write_slopes
    >>> products = np.zeros((1, 3), np.float32)
    >>> none, zeros, true = np.zeros(3, np.float32), np.array([0, 0]), np.array([0, 1])
    >>> loss, to_bias = write_slopes(products, none, 1.0, zeros, true)
    >>> round(loss, 2), products.round(2).tolist()
    (1.39, [[-0.5, -0.5, 1.0]])
    """
    n, n_threads = len(products), n_training_threads()
    starts = np.searchsorted(rows, np.arange(n + 1))
    chunk = max(1, -(-n // n_threads))
    sums = np.zeros((-(-n // chunk), len(bias)), np.float32)
    losses = np.zeros(len(sums))

    def work(start: int, stop: int) -> None:
        i = start // chunk
        arrays = (products, bias, scale, starts, columns)
        losses[i] = decoupled_slopes(*arrays, start, stop, sums[i])

    over_row_chunks(work, n, n_threads=n_threads, chunk=chunk)
    to_bias: Floats = sums.sum(axis=0)
    return float(losses.sum()) / n, to_bias


def trained_directions(
    own: Floats, texts: Floats | None, has_points: NDArray[np.bool_], *, in_place: bool = False
) -> Floats:
    """Return the unit vectors w of labels, texts added where there are any.

    A label without points was only ever a negative, so its own vector is left out: what is left is
    its text, or nothing.

    Parameters
    ----------
    own : float32 (n_labels, dimension)
        u, as it was trained.
    texts : float32 (n_labels, dimension) or None
        Unit rows.
    has_points : bool (n_labels,)
    in_place : bool
        Put them in the place of what was trained.

    Returns
    -------
    float32 (n_labels, dimension)
        A row of zeros for a label of which nothing is known.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.unit_labels import trained_directions
    >>> trained_directions(np.float32([[3, 4], [5, 5]]), None, np.array([True, False]))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    unit = own if in_place else empty_array(own.shape)
    for start in range(0, len(own), BLOCK):
        part = slice(start, start + BLOCK)
        sums = own[part] * has_points[part, np.newaxis]
        if texts is not None:
            sums += texts[part]
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        np.divide(sums, np.maximum(lengths, SMALLEST_LENGTH), out=unit[part])
    return unit
