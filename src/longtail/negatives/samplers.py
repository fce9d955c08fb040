"""Other ways to find negatives than Astec's two structures.

Uniform and frequent labels and Slice's are those of table 6d of the DeepXML paper; in-batch
negatives and trees are named in its section 3.2.

Each is a `NegativeSampler` of `longtail.recipes.deepxml`: `mine` returns the negatives that
training sees, and only they differ. Predictions need labels near the point whatever training saw,
so `build` makes Astec's structure for all but `NearestCentroids`, which leaves the points out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from longtail.clustering.members import members_of
from longtail.data.rows import binary
from longtail.data.weighted_draws import WeightedDraws
from longtail.errors import require_positive
from longtail.negatives.nearest_labels import NearestLabels
from longtail.surrogates.label_clusters import label_centroids
from longtail.surrogates.label_tree import balanced_tree

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.negatives.nearest_labels import LabelShortlister

    Shortlists = NDArray[np.int32]

__all__ = ["FrequentLabels", "InBatch", "NearestCentroids", "TreeLeaves", "UniformLabels"]


@dataclass(frozen=True, kw_only=True)
class NearestCentroids(NearestLabels):
    """Slice's structure: the labels whose centroids are nearest, the labels of points left out.

    Jain et al., "Slice", WSDM 2019, section 3. Parameters as for `NearestLabels`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.negatives.samplers import NearestCentroids
    >>> points = np.eye(3, dtype=np.float32)
    >>> built = NearestCentroids(size=1).build(points, csr_array(points), seed=0, n_threads=1)
    >>> built.query(points)[0].ravel().tolist()
    [0, 1, 2]
    """

    n_near_points: int = 0
    size: int = 300


@dataclass(frozen=True, kw_only=True)
class _Sampled:
    """Base of what draws `size` negatives a point; predictions find labels as `prediction` does."""

    size: int = 500
    prediction: NearestLabels = field(default_factory=NearestLabels)

    def build(
        self, features: NDArray[np.float32], labels: csr_array, *, seed: int, n_threads: int
    ) -> LabelShortlister:
        """See `NearestLabels.build`."""
        require_positive("size", self.size)
        return self.prediction.build(features, labels, seed=seed, n_threads=n_threads)


@dataclass(frozen=True, kw_only=True)
class UniformLabels(_Sampled):
    """Any label is as likely a negative as any other.

    Parameters
    ----------
    size : int
        Draws a point.
    prediction : NearestLabels
        The structure that predictions use.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.negatives.samplers import UniformLabels
    >>> labels = csr_array(np.eye(2, 100))
    >>> UniformLabels(size=3).mine(None, np.eye(2), labels, seed=0, n_threads=1).shape
    (2, 3)
    """

    def mine(
        self,
        shortlister: LabelShortlister,  # noqa: ARG002 - chance does not ask it
        features: NDArray[np.float32],
        labels: csr_array,
        *,
        seed: int,
        n_threads: int,  # noqa: ARG002 - drawing is cheap
    ) -> Shortlists:
        """Return int32 (n_points, size), as they were drawn: a label may be there twice."""
        random = np.random.default_rng(seed)
        return random.integers(0, labels.shape[1], (len(features), self.size), np.int32)


@dataclass(frozen=True, kw_only=True)
class FrequentLabels(_Sampled):
    """Labels are drawn by their frequency to the power of three quarters.

    The noise of negative sampling: Mikolov et al., "Distributed representations of words and
    phrases and their compositionality", NIPS 2013, section 2.2.

    Parameters
    ----------
    size : int
        Draws a point. A label that was drawn twice is there twice, so that what a classifier takes
        of them in an epoch follows the same frequencies.
    prediction : NearestLabels
        The structure that predictions use.
    power : float

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.negatives.samplers import FrequentLabels
    >>> labels = csr_array(np.array([[1, 0, 1], [1, 0, 0]]))
    >>> drawn = FrequentLabels(size=2).mine(None, np.eye(2), labels, seed=0, n_threads=1)
    >>> 1 in drawn  # no point has it
    False
    """

    power: float = 0.75

    def mine(
        self,
        shortlister: LabelShortlister,  # noqa: ARG002 - chance does not ask it
        features: NDArray[np.float32],
        labels: csr_array,
        *,
        seed: int,
        n_threads: int,  # noqa: ARG002 - drawing is cheap
    ) -> Shortlists:
        """Return int32 (n_points, size), as they were drawn: a label may be there twice."""
        random = np.random.default_rng(seed)
        frequency = np.asarray(binary(labels).sum(axis=0)).ravel().astype(np.float64)
        weights = np.where(frequency > 0, frequency**self.power, 0.0)
        drawn = WeightedDraws(weights).take((len(features), self.size), random)
        return drawn.astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class InBatch:
    """No label but those of the other points of the batch: nothing is mined.

    With a classifier that draws no random labels either, ``n_random=0``.

    Parameters
    ----------
    prediction : NearestLabels
        The structure that predictions use.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.negatives.samplers import InBatch
    >>> InBatch().mine(None, np.eye(2), csr_array(np.eye(2)), seed=0, n_threads=1).shape
    (2, 0)
    """

    prediction: NearestLabels = field(default_factory=NearestLabels)

    def build(
        self, features: NDArray[np.float32], labels: csr_array, *, seed: int, n_threads: int
    ) -> LabelShortlister:
        """See `NearestLabels.build`."""
        return self.prediction.build(features, labels, seed=seed, n_threads=n_threads)

    def mine(
        self,
        shortlister: LabelShortlister,  # noqa: ARG002 - nothing is looked for
        features: NDArray[np.float32],
        labels: csr_array,  # noqa: ARG002 - the batches know them
        *,
        seed: int,  # noqa: ARG002 - nothing is drawn
        n_threads: int,  # noqa: ARG002 - takes no time
    ) -> Shortlists:
        """Return int32 (n_points, 0)."""
        return np.empty((len(features), 0), np.int32)


@dataclass(frozen=True, kw_only=True)
class TreeLeaves(_Sampled):
    """The labels that share a leaf of Parabel's tree with one of the point's own.

    Prabhu et al., "Parabel", WWW 2018, section 4: labels are halved by balanced 2-means over the
    means of their points, and a label is trained against the points of its leaf alone.

    Parameters
    ----------
    size : int
        Most negatives of a point; where its leaves have more labels, a random choice.
    prediction : NearestLabels
        The structure that predictions use.
    leaf_size : int
        Most labels of a leaf.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.negatives.samplers import TreeLeaves
    >>> points = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], np.float32)
    >>> labels = csr_array(np.eye(4))
    >>> mined = TreeLeaves(leaf_size=2).mine(None, points, labels, seed=0, n_threads=1)
    >>> [sorted(row[row >= 0].tolist()) for row in mined]  # its own, and the one like it
    [[0, 1], [0, 1], [2, 3], [2, 3]]
    """

    leaf_size: int = 100

    def mine(
        self,
        shortlister: LabelShortlister,  # noqa: ARG002 - the tree takes its place
        features: NDArray[np.float32],
        labels: csr_array,
        *,
        seed: int,
        n_threads: int,
    ) -> Shortlists:
        """Return int32 (n_points, at most size), true labels among them, padded with -1."""
        ones = binary(labels)
        centroids = label_centroids(features, ones, normalise_points=True)
        tree = balanced_tree(centroids, leaf_size=self.leaf_size, seed=seed, n_threads=n_threads)
        leaf = tree.nodes[-1]
        own = [np.unique(leaf[row]) for row in np.split(ones.indices, ones.indptr[1:-1])]
        members = members_of(leaf)
        random = np.random.default_rng(seed)
        mined = np.full((len(own), min(self.size, len(leaf))), -1, np.int32)
        for row, leaves in enumerate(own):
            near = np.concatenate([members[0][:0], *(members[one] for one in leaves)])
            chosen = random.permutation(near)[: mined.shape[1]]
            mined[row, : len(chosen)] = chosen
        return mined
