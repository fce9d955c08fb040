"""Label vectors on the unit sphere while they are trained: decoupled softmax over a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from longtail.data.bags import Bags
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.softmax import sample_slopes
from longtail.named_parts import joined_parts
from longtail.training.products import write_product
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
    from longtail.training.state import State

    Floats = NDArray[np.float32]

__all__ = ["LEAST_SLOPE", "SampledSlopes", "UnitLabels", "trained_directions"]

LEAST_SLOPE = 1 / 16  # smaller ones are sampled: some thirty of a pool of thousands are left
BLOCK = 4_096  # rows that are made unit ones at a time, as copies of millions would count


class UnitLabels:
    """One vector a label, compared with points by angle, in main memory.

    The label's vector is ``w_l = unit(u_l + unit(E(text of l)))``, the second part only where
    texts are given, and its logit ``scale * (w_l . x) + b_l``. The loss of a point is the decoupled
    softmax of DEXML (Gupta et al., ICLR 2024): each true label against all labels of the pool that
    are not true, ``-log(e^z_p / (e^z_p + sum_n e^z_n))``; other true labels do not count against
    it. Its gradient with respect to the logits is written by hand. Nearly all of it lies on few
    labels of a pool, so that a sample takes the place of two products: see `SampledSlopes`.

    Parameters
    ----------
    start : float32 array (n_labels, dimension)
        Vectors u to start from; they are changed.
    bias : float32 array (n_labels,)
        b to start from.
    scale : float
        The inverse of the softmax's temperature.
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
    >>> from longtail.training.unit_labels import UnitLabels
    >>> start, bias = np.eye(2, dtype=np.float32), np.zeros(2, np.float32)
    >>> labels = UnitLabels(start, bias, scale=20)
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
        dropout: float = 0.0,
        texts_alone: float = 0.0,
    ) -> None:
        self.vectors = start
        self.bias = np.array(bias, np.float32)[:, np.newaxis]
        self._of_vectors, self._of_bias = RowAdagrad(len(start)), RowAdagrad(len(start))
        self._scale = scale
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
            Sums, written over with the gradient with respect to them of the loss, summed over the
            points.
        texts : float32 (n_pool, dimension) or None
            The same of the texts of the pool's labels.
        batch : Batch
            With a pool.
        learning_rate : float
        """
        pool, n_threads = np.asarray(batch.pool), n_training_threads()  # never None here
        drawn = random_bytes((len(points), points.shape[1]), self._dropout, self._random)
        x = DroppedUnits(points, *drawn, np.float32)
        unit_texts = None if texts is None else Units.in_place(texts)
        w = PoolUnits(self.vectors, self._some_without_own(pool, unit_texts), unit_texts)

        products = self._scratch.array("products", (len(points), len(pool)))
        write_product(x.unit, w.unit.T, products)
        true = (batch.positive_rows, batch.positive_columns)
        offsets = self._random.random(len(points), np.float32)
        slopes = SampledSlopes.of(products, self.bias[pool, 0], self._scale, *true, offsets)

        to_points = Bags.of(slopes.by_point).times(w.unit, n_threads)
        to_labels = Bags.of(slopes.by_point.T.tocsr()).times(x.unit, n_threads)
        w.step(self._of_vectors, to_labels, self._scale, learning_rate)
        self._of_bias.step(self.bias, pool, slopes.to_bias[:, np.newaxis], learning_rate)
        x.backward(to_points, self._scale)
        return slopes.loss

    def _some_without_own(self, pool: NDArray[np.int64], texts: Units | None) -> NDArray[np.int64]:
        """Return the pool with -1 for labels whose text stands alone in this step."""
        if texts is None or self._texts_alone == 0:
            return pool
        is_alone = self._random.random(len(pool), np.float32) < self._texts_alone
        return np.where(is_alone & (texts.lengths > SMALLEST_LENGTH), -1, pool)

    def state(self) -> State:
        """Return the live arrays that a checkpoint keeps."""
        parts = {"vectors": self._of_vectors.state(), "bias": self._of_bias.state()}
        return {"vectors": self.vectors, "bias": self.bias, **joined_parts(parts, ".")}


class SampledSlopes(NamedTuple):
    """Slopes of the decoupled softmax: see `longtail.kernels.softmax.sample_slopes`.

    Attributes
    ----------
    loss : float
        Mean over the points.
    by_point : csr_array of float32 (n, n_pool)
        A sample: those of true labels, large ones, and some that stand for the small ones.
    to_bias : float32 (n_pool,)
        The sum of all slopes over the points.

    Examples
    --------
    Of three labels that score alike, two are true: they do not push each other away.

    >>> import numpy as np
    >>> from longtail.training.unit_labels import SampledSlopes
    >>> products, none = np.zeros((1, 3), np.float32), np.zeros(3, np.float32)
    >>> true = np.array([0, 0]), np.array([0, 1])
    >>> slopes = SampledSlopes.of(products, none, 1.0, *true, none[:1])
    >>> round(slopes.loss, 2), slopes.by_point.toarray().round(2).tolist()
    (1.39, [[-0.5, -0.5, 1.0]])
    """

    loss: float
    by_point: csr_array
    to_bias: Floats

    @classmethod
    def of(
        cls,
        products: Floats,
        bias: Floats,
        scale: float,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        offsets: Floats,
    ) -> Self:
        """Sample them, each thread those of some points.

        Parameters
        ----------
        products : float32 (n, n_pool)
        bias : float32 (n_pool,)
        scale : float
        rows, columns : int64 (n_positives,)
            The true labels, by ascending row.
        offsets : float32 (n,)
            Uniform from 0 to 1, and below 1.
        """
        (n, n_pool), n_threads = products.shape, n_training_threads()
        starts = np.searchsorted(rows, np.arange(n + 1))
        room = _room_for(np.diff(starts), n_pool)
        labels, values = np.empty(room[-1], np.int32), np.empty(room[-1], np.float32)
        chunk = max(1, -(-n // n_threads))
        sums, counts = np.zeros((-(-n // chunk), n_pool), np.float32), np.zeros(n, np.int32)
        losses = np.zeros(len(sums))

        def work(start: int, stop: int) -> None:
            i = start // chunk
            read = (products, bias, scale, starts, columns, LEAST_SLOPE, offsets, room)
            losses[i] = sample_slopes(*read, start, stop, labels, values, counts, sums[i])

        over_row_chunks(work, n, n_threads=n_threads, chunk=chunk)
        ends = np.cumsum(counts, dtype=np.int32)
        firsts = range(0, n, chunk)
        used = [slice(room[i], room[i] + counts[i : i + chunk].sum()) for i in firsts]
        entries = (np.concatenate([part[filled] for filled in used]) for part in (values, labels))
        by_point = csr_array((*entries, np.append(np.int32(0), ends)), shape=products.shape)
        return cls(float(losses.sum()) / n, by_point, sums.sum(axis=0))


def _room_for(n_true: NDArray[np.int64], n_pool: int) -> NDArray[np.int64]:
    """Return from where to where entries of each point may be: slopes add up to its true labels."""
    most = np.ceil(n_true * (1 + 1 / LEAST_SLOPE)).astype(np.int64) + 2
    return np.append(0, np.cumsum(np.minimum(most, n_pool)))


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
