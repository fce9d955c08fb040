"""DEXA's auxiliary vectors, found again in a trained model: what labels added to it are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.data.rows import unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.rows import Rows

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]

__all__ = ["TrainedLabels", "auxiliary_vectors"]

N_NEAREST = 64  # trained labels whose clusters a new label may fall into
# Lines of one cluster meet, but for rounding: on debian-depends to 0.001 of a text's length, and to
# 0.08 where vectors are kept in 8 bits. Those of two clusters pass each other by 0.1 or more.
STILL_MEETS = 0.09
LEAST_ANGLE = 1e-3  # squared sine below which lines pass for parallel: rounding is larger
MOST_MEMBERS = 512  # of a cluster that its vector is computed from
LONGEST = 1.0  # as in training; see `LONGEST_AUXILIARY`
RANK_TOLERANCE = 1e-6
SEEDS_AT_ONCE, NEW_AT_ONCE = 32, 256


@dataclass(frozen=True)
class TrainedLabels:
    """What a trained DEXA model keeps of its labels, one row each.

    Parameters
    ----------
    texts : float32 (n_labels, dimension)
        t, unit vectors of the texts by the encoder; zeros where there is none.
    corrected : float32 (n_labels, dimension)
        ``h = unit(t + a_k)``, by the auxiliary vector of each label's cluster k.
    alike : csr_array or float32 ndarray (n_labels, any)
        What labels are clustered by.
    """

    texts: Floats
    corrected: Floats
    alike: Rows


def auxiliary_vectors(trained: TrainedLabels, texts: Floats, alike: Rows) -> Floats:
    """Return the auxiliary vector of the cluster that each new label falls into.

    A model keeps neither clusters nor their vectors, but both follow from what it keeps. The
    auxiliary vector of a label lies on the line ``c h - t``, whatever c is. All lines of a cluster
    meet in its vector, and those of different clusters, in so many dimensions, do not. So which
    labels share a cluster is seen from any one of them. A new label falls into the cluster with
    the nearest centre, among those of its nearest trained labels.

    Parameters
    ----------
    trained : TrainedLabels
    texts : float32 (n, dimension)
        Unit vectors of the new labels' texts.
    alike : csr_array or float32 ndarray (n, any)
        What clusters are found by, of the new labels, of the same kind as `trained` has.

    Returns
    -------
    float32 (n, dimension)
        Zeros for a label without text, and where all near labels have a vector of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.blend.auxiliary_vectors import TrainedLabels, auxiliary_vectors
    >>> texts = np.eye(4, dtype=np.float32)[:3]
    >>> corrected = texts + np.array([0, 0, 0, 0.75], np.float32)
    >>> corrected /= 1.25
    >>> trained = TrainedLabels(texts, corrected, texts)
    >>> new = np.array([[0.8, 0.6, 0, 0]], np.float32)
    >>> auxiliary_vectors(trained, new, new).round(3).tolist()
    [[0.0, 0.0, 0.0, 0.75]]
    """
    known = np.flatnonzero(trained.texts.any(axis=1) & trained.corrected.any(axis=1))
    found = np.zeros_like(texts)
    if not len(known):
        return found
    lines = _Lines(trained.texts[known], trained.corrected[known])
    nearest = _nearest(lines.texts, texts)
    cluster_of = lines.clusters_of(np.unique(nearest))
    clusters = np.unique(cluster_of[cluster_of >= 0])
    centres = _centres(trained.alike[known], cluster_of, len(clusters))
    vectors = np.array([lines.meeting_point(np.flatnonzero(cluster_of == k)) for k in clusters])
    for row in np.flatnonzero(texts.any(axis=1)):
        candidates = np.unique(cluster_of[nearest[row]])
        candidates = candidates[candidates >= 0]
        if len(candidates):
            products = centres[candidates] @ alike[[row]].T
            similarities = products.toarray() if isinstance(products, csr_array) else products
            found[row] = vectors[candidates[similarities.argmax()]]
    return found


@dataclass(frozen=True)
class _Lines:
    """The line ``c h - t`` of each trained label, on which its auxiliary vector lies."""

    texts: Floats
    corrected: Floats

    def clusters_of(self, seeds: Ids) -> Ids:
        """Return the clusters of some labels, with all their members; -1 for all other labels.

        Also for labels that share their vector with none. Clusters are numbered from 0.
        """
        clusters = np.full(len(self.texts), -1)
        n_clusters, is_done = 0, np.zeros(len(self.texts), bool)
        for start in range(0, len(seeds), SEEDS_AT_ONCE):
            some = seeds[start : start + SEEDS_AT_ONCE]
            some = some[~is_done[some]]
            meets = self._distances(some) < STILL_MEETS
            for seed, meeting in zip(some, meets, strict=True):
                members = np.flatnonzero(meeting & ~is_done)
                if is_done[seed] or len(members) < 2:
                    continue
                is_done[members] = True
                clusters[members] = n_clusters
                n_clusters += 1
        return clusters

    def _distances(self, seeds: Ids) -> Floats:
        """Return how far each line passes from those of some labels, (n_seeds, n_labels)."""
        texts, corrected = self.texts[seeds], self.corrected[seeds]
        lengths = np.einsum("ij,ij->i", self.texts, self.texts)
        apart = lengths[seeds, None] + lengths - 2 * (texts @ self.texts.T)
        own = np.einsum("ij,ij->i", self.texts, self.corrected)
        cosines = corrected @ self.corrected.T
        along = corrected @ self.texts.T - own[seeds, None]  # of what is between, on the seed's
        across = own - texts @ self.corrected.T - cosines * along  # and on the rest of the other's
        sines = np.maximum(1 - cosines**2, LEAST_ANGLE)
        squared: Floats = apart - along**2 - across**2 / sines
        return np.sqrt(np.maximum(squared, 0))

    def meeting_point(self, members: Ids) -> Floats:
        """Return the point nearest to the lines of some labels, by least squares."""
        some = members[:MOST_MEMBERS]
        texts, corrected = (rows[some].astype(np.float64) for rows in (self.texts, self.corrected))
        along = np.einsum("ij,ij->i", texts, corrected)
        matrix = len(some) * np.eye(texts.shape[1]) - corrected.T @ corrected
        target = corrected.T @ along - texts.sum(axis=0)
        point = np.linalg.lstsq(matrix, target, rcond=RANK_TOLERANCE)[0]
        point /= max(float(np.linalg.norm(point)) / LONGEST, 1.0)
        vector: Floats = point.astype(np.float32)
        return vector


def _nearest(trained: Floats, texts: Floats) -> Ids:
    """Return the nearest trained labels of each new one, int64 (n, at most N_NEAREST)."""
    n_nearest = min(N_NEAREST, len(trained))
    nearest = np.empty((len(texts), n_nearest), np.int64)
    for start in range(0, len(texts), NEW_AT_ONCE):
        some = slice(start, start + NEW_AT_ONCE)
        similarities = texts[some] @ trained.T
        nearest[some] = np.argpartition(-similarities, n_nearest - 1)[:, :n_nearest]
    return nearest


def _centres(alike: Rows, cluster_of: Ids, n_clusters: int) -> Rows:
    """Return the direction of the mean of each cluster's members."""
    members = np.flatnonzero(cluster_of >= 0)
    ones = np.ones(len(members), np.float32)
    shape = (n_clusters, len(cluster_of))
    return unit_rows(csr_array((ones, (cluster_of[members], members)), shape) @ alike)
