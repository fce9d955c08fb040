"""Batches whose points are neighbours as the encoder sees them now (NGAME)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.weighted_draws import WeightedDraws
from longtail.training.batches import Batch, SharedPool
from longtail.training.neighbourhoods import like_points, points_of_clusters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.state import State

__all__ = ["LabelBatches", "NeighbourhoodBatches", "RefreshedPool"]


class NeighbourhoodBatches:
    """In-batch negatives that are hard because a batch is a union of neighbourhoods.

    NGAME (Dahiya et al., WSDM 2023, section 3): every few epochs the points' embeddings are
    clustered anew, and a batch is filled with whole clusters, so that the true labels of a point's
    neighbours are its negatives. Clusters are small at first, when the encoder knows little, and
    grow with each clustering.

    Parameters
    ----------
    pool : SharedPool
        How a batch is made of points.
    encode : callable
        Returns the points' embeddings as they are now, float32 (n_points, dimension).
    refresh_every : int
        Epochs.
    cluster_size : int
        Points of a cluster, at most, at the end.
    seed, n_threads : int
    first_size : int
        Points of a cluster at first; with 1, batches are random.
    growth : int
        How many times larger clusters are after each clustering.

    Examples
    --------
    At first, batches are random; then each is made of two points that are alike.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.batches import SharedPool
    >>> from longtail.training.neighbourhood_batches import NeighbourhoodBatches
    >>> vectors = np.array([[1, 0], [0, 1], [0.9, 0.1], [0.1, 0.9]], np.float32)
    >>> pool = SharedPool.in_batch(csr_array(np.eye(4, dtype=np.float32)), batch_size=2)
    >>> batches = NeighbourhoodBatches(
    ...     pool, lambda: vectors, refresh_every=1, cluster_size=2, seed=0, n_threads=1
    ... )
    >>> _, second = (list(batches.epoch(np.random.default_rng(0))) for _ in range(2))
    >>> sorted(sorted(batch.points.tolist()) for batch in second)
    [[0, 2], [1, 3]]
    """

    def __init__(
        self,
        pool: SharedPool,
        encode: Callable[[], NDArray[np.float32]],
        *,
        refresh_every: int,
        cluster_size: int,
        seed: int,
        n_threads: int,
        first_size: int = 1,
        growth: int = 2,
    ) -> None:
        self._pool = pool
        self._encode = encode
        self._refresh_every = refresh_every
        self._cluster_size = cluster_size
        self._seed = seed
        self._n_threads = n_threads
        self._first_size = first_size
        self._growth = growth
        self._clusters = np.zeros(pool.labels.shape[0], np.int64)
        self._age = np.zeros(1, np.int64)  # epochs that have begun

    def n_batches(self) -> int:
        """See `Batches.n_batches`."""
        return self._pool.n_batches()

    def epoch(self, random: np.random.Generator) -> Iterator[Batch]:
        """See `Batches.epoch`."""
        age = int(self._age[0])
        if age % self._refresh_every == 0:
            self._refresh(age // self._refresh_every)
        self._age += 1
        each_alone = np.array_equal(self._clusters, np.arange(len(self._clusters)))
        groups = None if each_alone else points_of_clusters(self._clusters)
        yield from replace(self._pool, groups=groups).epoch(random)

    def state(self) -> State:
        """See `Batches.state`: a run that is resumed has the same batches."""
        return {"neighbourhoods": self._clusters, "neighbourhoods.age": self._age}

    def _refresh(self, n_before: int) -> None:
        """Cluster the points as the encoder sees them, after so many clusterings."""
        size = min(self._first_size * self._growth**n_before, self._cluster_size)
        if size == 1:
            self._clusters[:] = np.arange(len(self._clusters))
            return
        self._clusters[:] = like_points(
            self._encode(), size, seed=self._seed + n_before, n_threads=self._n_threads
        )


class RefreshedPool:
    """A `SharedPool` whose neighbourhoods and hard negatives are looked for anew now and then.

    Those of an encoder that is trained on would otherwise be what was hard for it long ago.

    Parameters
    ----------
    first : SharedPool
        With neighbourhoods: that of the first epochs.
    anew : callable
        Given how often it was asked before, counted from 1, returns the pool as it is now.
    refresh_every : int
        Epochs.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.batches import SharedPool
    >>> from longtail.training.neighbourhood_batches import RefreshedPool
    >>> labels, negative = csr_array(([1], [3], [0, 1]), (1, 9_999)), np.array([[80]], np.int32)
    >>> sizes = {"batch_size": 1, "n_hard": 1, "n_random": 0}
    >>> first = SharedPool(labels=labels, shortlists=negative, groups=[np.array([0])], **sizes)
    >>> later = replace(first, shortlists=negative + 10)
    >>> batches = RefreshedPool(first, lambda n_before: later, refresh_every=1)
    >>> epochs = [next(batches.epoch(np.random.default_rng(0))) for _ in range(2)]
    >>> [{80, 90}.intersection(batch.pool.tolist()) for batch in epochs]
    [{80}, {90}]
    """

    def __init__(
        self, first: SharedPool, anew: Callable[[int], SharedPool], *, refresh_every: int
    ) -> None:
        self._pool = first
        self._anew = anew
        self._refresh_every = refresh_every
        self._clusters = _clusters_of(first)
        self._shortlists = first.shortlists.copy()
        self._age = np.zeros(1, np.int64)  # epochs that have begun

    def n_batches(self) -> int:
        """See `Batches.n_batches`."""
        return self._pool.n_batches()

    def epoch(self, random: np.random.Generator) -> Iterator[Batch]:
        """See `Batches.epoch`."""
        age = int(self._age[0])
        if age and age % self._refresh_every == 0:
            mined = self._anew(age // self._refresh_every)
            self._clusters[:] = _clusters_of(mined)
            self._shortlists[:] = mined.shortlists
        self._age += 1
        groups = points_of_clusters(self._clusters)
        pool = replace(self._pool, groups=groups, shortlists=self._shortlists)
        yield from pool.epoch(random)

    def state(self) -> State:
        """See `Batches.state`: a run that is resumed has the same batches."""
        return {
            "pool.neighbourhoods": self._clusters,
            "pool.shortlists": self._shortlists,
            "pool.age": self._age,
        }


def _clusters_of(pool: SharedPool) -> NDArray[np.int64]:
    """Return the neighbourhood of each point, int64 (n_points,)."""
    clusters = np.zeros(pool.labels.shape[0], np.int64)
    for i, points in enumerate(pool.groups or []):
        clusters[points] = i
    return clusters


@dataclass(frozen=True, kw_only=True)
class LabelBatches:
    """Batches drawn over labels, one true point each (SiameseXML, ICML 2021, section 3).

    Labels are drawn by their number of points to a power, which lies between drawing points at
    random, when head labels fill every batch, and drawing all labels alike.

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
    batch_size : int
        Labels of a batch.
    power : float
        0 draws all labels alike, 1 by their number of points.

    Examples
    --------
    Label 0 has three points and label 1 has one: each comes with one. Label 2 has none.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.neighbourhood_batches import LabelBatches
    >>> labels = csr_array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]])
    >>> batches = LabelBatches(labels=labels, batch_size=50)
    >>> batch = next(batches.epoch(np.random.default_rng(0)))
    >>> batch.pool.tolist(), len(batch.points), batch.points[-1].item()
    ([0, 1], 2, 3)
    """

    labels: csr_array
    batch_size: int
    power: float = 0.45

    def n_batches(self) -> int:
        """See `Batches.n_batches`."""
        return -(-int(self.labels.shape[1]) // self.batch_size)

    def epoch(self, random: np.random.Generator) -> Iterator[Batch]:
        """See `Batches.epoch`."""
        by_label = self.labels.T.tocsr()
        counts = np.diff(by_label.indptr)
        weights = counts**self.power * (counts > 0)
        draws = WeightedDraws(weights)
        for _ in range(self.n_batches()):
            pool = np.unique(draws.take(self.batch_size, random))
            of_each = by_label.indptr[pool] + random.integers(0, counts[pool])
            points = np.unique(by_label.indices[of_each]).astype(np.int64)
            true = self.labels[points][:, pool].tocoo()
            yield Batch(points, pool, true.row.astype(np.int64), true.col.astype(np.int64))

    def state(self) -> State:
        """See `Batches.state`: there is none."""
        return {}
