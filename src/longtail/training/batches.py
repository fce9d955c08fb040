"""Which points make a step together, and which labels they are scored against.

Every heavy step is a matrix product: the points of a batch share one pool of labels, their true
ones, hard negatives mined for any of them, and some random ones. Batches are neighbourhoods of
similar points, so a label that is hard for one is hard for many (as in NGAME, Dahiya et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.state import State

    Ids = NDArray[np.int64]

__all__ = [
    "AllLabels",
    "Batch",
    "Batches",
    "LabelledBatches",
    "SharedPool",
    "fitting_batch_size",
    "label_chunks",
]

POOL_MULTIPLE = 64  # pools then have a dozen sizes and not hundreds
LEAST_POINTS = 32  # of a batch


def fitting_batch_size(n_points: int, *, n_batches: int, most: int) -> int:
    """Return the largest power of two that leaves about so many batches an epoch.

    Few points need many small steps. At least 32, and at most `most`.

    Examples
    --------
    >>> from longtail.training.batches import fitting_batch_size
    >>> [fitting_batch_size(n, n_batches=200, most=512) for n in (1_000, 20_000, 900_000)]
    [32, 64, 512]
    """
    fitting = 1 << max(n_points // n_batches, 1).bit_length() - 1
    return min(max(fitting, LEAST_POINTS), most)


@dataclass(frozen=True)
class Batch:
    """Points, the labels they are scored against, and where the true ones are.

    Parameters
    ----------
    points : int64 (n,)
        Rows of the training data.
    pool : int64 (n_pool,) or None
        Labels, ascending; None for all of them.
    positive_rows, positive_columns : int64 (n_positives,)
        The true labels, as places in the (n, n_pool) logits.
    in_loss : bool (n, n_pool) or None
        Which places count; None if all do.

    Examples
    --------
    The second point has two true labels; of its pool of labels, these are at places 0 and 2.

    >>> import numpy as np
    >>> from longtail.training.batches import Batch
    >>> rows, columns = np.array([0, 1, 1]), np.array([1, 0, 2])
    >>> batch = Batch(np.array([7, 9]), np.array([3, 40, 41]), rows, columns)
    >>> batch.points[batch.positive_rows].tolist(), batch.pool[batch.positive_columns].tolist()
    ([7, 9, 9], [40, 3, 41])
    """

    points: Ids
    pool: Ids | None
    positive_rows: Ids
    positive_columns: Ids
    in_loss: NDArray[np.bool_] | None = None


def label_chunks(batch: Batch, n_labels: int, size: int) -> Iterator[Batch]:
    """Cut a batch that is scored against all labels into ones of consecutive labels.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.batches import Batch, label_chunks
    >>> batch = Batch(np.arange(2), None, np.array([0, 1, 1]), np.array([4, 0, 3]))
    >>> for part in label_chunks(batch, 5, 3):
    ...     print(part.pool, part.positive_rows, part.positive_columns)
    [0 1 2] [1] [0]
    [3 4] [0 1] [1 0]
    """
    for first in range(0, n_labels, size):
        last = min(first + size, n_labels)
        is_inside = (batch.positive_columns >= first) & (batch.positive_columns < last)
        columns = batch.positive_columns[is_inside] - first
        yield Batch(batch.points, np.arange(first, last), batch.positive_rows[is_inside], columns)


class Batches(Protocol):
    """A source of batches for one epoch after another."""

    def n_batches(self) -> int:
        """Return how many batches an epoch has."""
        ...

    def epoch(self, random: np.random.Generator) -> Iterator[Batch]:
        """Yield the batches of one epoch; the same `random`, the same batches."""
        ...

    def state(self) -> State:
        """Return the live arrays by which later epochs differ, for checkpoints; most have none."""
        ...


class LabelledBatches(Batches, Protocol):
    """Batches of what labels' classifiers are trained on, which start from how frequent those are.

    Attributes
    ----------
    labels : csr_array (n_points, n_labels)
    """

    @property
    def labels(self) -> csr_array:
        """The labels of the training points."""
        ...


@dataclass(frozen=True)
class AllLabels:
    """Random batches scored against every label: full 1-vs-All, for the meta-labels of Module I.

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
    batch_size : int

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.batches import AllLabels
    >>> batches = AllLabels(csr_array([[1, 1], [0, 1], [1, 0]]), batch_size=2)
    >>> random = np.random.default_rng(0)
    >>> [batch.points.tolist() for batch in batches.epoch(random)]
    [[2, 0], [1]]
    """

    labels: csr_array
    batch_size: int

    def n_batches(self) -> int:
        """See `Batches.n_batches`."""
        return -(-int(self.labels.shape[0]) // self.batch_size)

    def epoch(self, random: np.random.Generator) -> Iterator[Batch]:
        """See `Batches.epoch`."""
        order = random.permutation(self.labels.shape[0])
        for start in range(0, len(order), self.batch_size):
            points = order[start : start + self.batch_size]
            rows, labels = _positives(self.labels, points)
            yield Batch(points, None, rows, labels)

    def state(self) -> State:
        """See `Batches.state`: there is none."""
        return {}


@dataclass(frozen=True, kw_only=True)
class SharedPool:
    """Batches scored against one pool of their true labels, hard negatives and random ones.

    Random labels fill a pool up to a multiple of 64: a library that multiplies matrices prepares
    itself for each new shape, which takes longer than the product and memory for good.

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
    shortlists : int32 (n_points, size)
        Hard negatives of each point, true labels among them, padded with -1.
    batch_size : int
    n_hard : int
        Hard negatives drawn anew from each point's shortlist in each epoch.
    n_random : int
        Random labels in the pool of a batch.
    groups : list of int64 arrays or None
        Neighbourhoods of points, which stay together; None for random batches.
    own_only : bool
        Count a label in a point's loss only if it is true, on the point's own shortlist, or one of
        the `n_random`: the objective to the letter. Otherwise the whole pool counts, all of a
        point's true labels as such: more negatives at the price of the same products.

    Examples
    --------
    Point 0 has label 3, and label 80 is easily taken for it; the rest of the pool is random.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.batches import SharedPool
    >>> labels = csr_array(([1], [3], [0, 1]), (1, 100))
    >>> shortlists = np.array([[80]], np.int32)
    >>> batches = SharedPool(
    ...     labels=labels, shortlists=shortlists, batch_size=1, n_hard=1, n_random=0
    ... )
    >>> batch = next(batches.epoch(np.random.default_rng(0)))
    >>> len(batch.pool), {3, 80} <= set(batch.pool.tolist())
    (64, True)
    >>> batch.pool[batch.positive_columns].tolist()
    [3]
    """

    labels: csr_array
    shortlists: NDArray[np.int32]
    batch_size: int
    n_hard: int
    n_random: int
    groups: list[Ids] | None = None
    own_only: bool = False

    @classmethod
    def in_batch(cls, labels: csr_array, *, batch_size: int, n_random: int = 0) -> SharedPool:
        """Return random batches whose negatives are each other's labels: nothing was mined.

        Examples
        --------
        Of 99 labels, a pool is filled up to 64 with random ones.

        >>> import numpy as np
        >>> from scipy.sparse import csr_array
        >>> from longtail.training.batches import SharedPool
        >>> labels = csr_array(([1, 1], [3, 80], [0, 1, 2]), (2, 99))
        >>> batch = next(SharedPool.in_batch(labels, batch_size=2).epoch(np.random.default_rng(0)))
        >>> len(batch.pool), {3, 80} <= set(batch.pool.tolist())
        (64, True)
        """
        none = np.zeros((labels.shape[0], 0), np.int32)
        return cls(
            labels=labels, shortlists=none, batch_size=batch_size, n_hard=0, n_random=n_random
        )

    def n_batches(self) -> int:
        """See `Batches.n_batches`."""
        return -(-int(self.labels.shape[0]) // self.batch_size)

    def epoch(self, random: np.random.Generator) -> Iterator[Batch]:
        """See `Batches.epoch`."""
        order = self._order(random)
        for start in range(0, len(order), self.batch_size):
            yield self._batch(order[start : start + self.batch_size], random)

    def state(self) -> State:
        """See `Batches.state`: there is none."""
        return {}

    def _order(self, random: np.random.Generator) -> Ids:
        """Return all points, neighbourhood after neighbourhood, these in random order."""
        if self.groups is None:
            return random.permutation(self.labels.shape[0])
        return np.concatenate([self.groups[i] for i in random.permutation(len(self.groups))])

    def _batch(self, points: Ids, random: np.random.Generator) -> Batch:
        """Collect the pool of some points."""
        rows, labels = _positives(self.labels, points)
        hard = self.shortlists[points]
        if self.n_hard < hard.shape[1]:
            hard = hard[:, random.permutation(hard.shape[1])[: self.n_hard]]
        extra = random.integers(0, self.labels.shape[1], self.n_random)
        pool = np.unique(np.concatenate([labels, hard.ravel(), extra]))
        pool = pool[np.searchsorted(pool, 0) :]  # without the padding
        pool = _filled(pool, int(self.labels.shape[1]), random)
        columns = np.searchsorted(pool, labels)
        if not self.own_only:
            return Batch(points, pool, rows, columns)
        in_loss = np.zeros((len(points), len(pool)), np.bool_)
        in_loss[:, np.searchsorted(pool, extra)] = True
        hard_rows, places = np.nonzero(hard >= 0)
        in_loss[hard_rows, np.searchsorted(pool, hard[hard_rows, places])] = True
        in_loss[rows, columns] = True
        return Batch(points, pool, rows, columns, in_loss)


def _filled(pool: Ids, n_labels: int, random: np.random.Generator) -> Ids:
    """Add random labels to a pool, ascending, until its size is a multiple of 64 or all are in."""
    size = -(-len(pool) // POOL_MULTIPLE) * POOL_MULTIPLE
    if size >= n_labels:
        return np.arange(n_labels)
    while len(pool) < size:
        more = np.setdiff1d(random.integers(0, n_labels, 2 * POOL_MULTIPLE), pool)
        more = random.permutation(more)[: size - len(pool)]
        pool = np.sort(np.concatenate([pool, more]))
    return pool


def _positives(labels: csr_array, points: Ids) -> tuple[Ids, Ids]:
    """Return places in the batch and labels of all true labels of some points."""
    some = labels[points]
    rows = np.repeat(np.arange(len(points)), np.diff(some.indptr))
    return rows, some.indices.astype(np.int64)
