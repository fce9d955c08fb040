"""AnnexML: embeddings in which points that share labels are near, and votes of near points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.bags import Bags
from longtail.data.rows import binary
from longtail.estimators.estimator import LabelEstimator
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.kernels.annexml import (
    Comparisons,
    embedding_epoch,
    partition_epoch,
    points_sharing_labels,
)
from longtail.kernels.jit import over_row_chunks
from longtail.scorers.annexml import AnnexLearner, AnnexMLScorer

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["AnnexML"]

PAIRS_A_POINT = 5_000  # that share a label: beyond, the most frequent labels are looked over


@dataclass(kw_only=True, eq=False, repr=False)
class AnnexML(LabelEstimator):
    """AnnexML: partitions, embeddings, nearest neighbours, several learners.

    Tagami, "AnnexML: approximate nearest neighbor search for extreme multi-label classification",
    KDD 2017.

    A learner parts the points so that those with shared labels stay together, and embeds the points
    of each part so that the ten with the most similar labels are nearer than random ones. The near
    training points of all learners vote for their labels. Nothing is learnt for a label, so labels
    cost nothing; the model holds the training points.

    Parameters
    ----------
    n_learners : int
        Models that vote, each with partitions and embeddings from its own random numbers.
    dimension : int
        Length of an embedding.
    n_neighbours : int
        Near points that a point is brought together with in training, and that vote in prediction.
    partition_size : int
        Points for which there is one partition.
    epochs : int
        Over the training points: of learning the partitions, and then of learning each embedding.
    learning_rate : float
        Of partitions and embeddings.
    gamma : float
        By which cosines are multiplied in the ranking loss.
    penalty : float
        L1 penalty of the weights by which partitions are found: a larger one keeps fewer of them.
    **kwargs
        Those of `LabelEstimator`; words and pairs of words by default, no character n-grams.

    Examples
    --------
    >>> from longtail.recipes.annexml import AnnexML
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = AnnexML().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    char_ngrams: tuple[int, int] | str | None = None
    held_out: float = 0.02  # for the calibration alone
    n_learners: int = 15
    dimension: int = 50
    n_neighbours: int = 10
    partition_size: int = 6_000
    epochs: int = 10
    learning_rate: float = 0.1
    gamma: float = 10.0
    penalty: float = 4.0

    def _learn(
        self,
        data: TrainingData,
        held_out: TrainingData,  # noqa: ARG002 - there is nothing to choose
        run: TrainingRun,
    ) -> Scorer:
        """See `LabelEstimator`."""
        labels = binary(data.labels)
        learners: dict[int, AnnexLearner] = {}

        def learn(number: int, _: int) -> None:
            random = np.random.default_rng(run.seed_for("learner", number))
            learners[number] = self._learner(data.features, labels, random)

        with run.stage("learners"):
            over_row_chunks(learn, self.n_learners, n_threads=run.n_threads, chunk=1)
        return AnnexMLScorer(
            learners=tuple(learners[number] for number in range(self.n_learners)),
            label_starts=labels.indptr,
            label_ids=labels.indices,
            n_labels=labels.shape[1],
            n_neighbours=min(self.n_neighbours, labels.shape[0]),
        )

    def _learner(
        self, features: csr_array, labels: csr_array, random: np.random.Generator
    ) -> AnnexLearner:
        """Part the points, and embed those of each part."""
        weights = self._partitions(features, labels, random)
        nearest = Bags.of(features).times(weights).argmax(axis=1)
        used, partitions = np.unique(nearest, return_inverse=True)  # some may have no points
        members = [np.flatnonzero(partitions == partition) for partition in range(len(used))]
        tokens, vectors, embedded = [], [], []
        for own in members:
            known, table = self._embedding(features[own], labels[own], random)
            tokens.append(known)
            vectors.append(table)
            embedded.append(UnitBagEncoder(table).encode(Bags.of(features[own][:, known])))
        return AnnexLearner(
            partition_weights=weights[:, used],
            token_starts=np.cumsum([0, *map(len, tokens)]),
            tokens=np.concatenate(tokens),
            token_vectors=np.concatenate(vectors),
            point_starts=np.cumsum([0, *map(len, members)]),
            points=np.concatenate(members),
            point_vectors=np.concatenate(embedded),
        )

    def _partitions(
        self, features: csr_array, labels: csr_array, random: np.random.Generator
    ) -> Floats:
        """Return the weights by which a point finds its partition (n_features, n_partitions)."""
        n_points, n_features = features.shape
        n_partitions = max(n_points // self.partition_size, 1)
        if n_partitions == 1:
            return np.zeros((n_features, 1), np.float32)
        start = random.choice(n_points, n_partitions, replace=False)
        weights = np.ascontiguousarray(features[start].toarray().T, np.float32)
        squares = np.ones_like(weights)
        # FTRL derives weights from sums: these are the sums from which it derives the start.
        sums = weights / np.float32(self.learning_rate)
        sums += np.sign(weights) * np.float32(self.penalty)
        bags, near = Bags.of(features), self._near(labels, random)
        for _ in range(self.epochs):
            compared = _drawn(near, random)
            partition_epoch(
                bags, compared, self.learning_rate, self.penalty, weights, squares, sums
            )
        return weights

    def _embedding(
        self, features: csr_array, labels: csr_array, random: np.random.Generator
    ) -> tuple[Ids, Floats]:
        """Return the tokens of some points, and their vectors."""
        tokens, columns = np.unique(features.indices, return_inverse=True)
        bags = Bags(features.indptr, columns.astype(np.int32), features.data)
        bound = max(len(columns) / features.shape[0], 1) ** -0.5
        table = random.uniform(-bound, bound, (len(tokens), self.dimension)).astype(np.float32)
        squares = np.ones(len(tokens), np.float32)
        near = self._near(labels, random)
        for _ in range(self.epochs):
            compared = _drawn(near, random)
            embedding_epoch(bags, compared, self.learning_rate, self.gamma, table, squares)
        return tokens.astype(np.int32), table

    def _near(self, labels: csr_array, random: np.random.Generator) -> Ids:
        """Return the points with the most similar labels (n_points, n_neighbours)."""
        points = labels.T.tocsr()
        n_points = labels.shape[0]
        near = np.empty((n_points, min(self.n_neighbours, n_points)), np.int32)
        points_sharing_labels(
            (labels.indptr, labels.indices),
            (points.indptr, points.indices),
            telling_labels(np.diff(points.indptr), n_points),
            random.uniform(1e-5, 1e-4, n_points).astype(np.float32),
            0,
            n_points,
            near,
        )
        return near


def telling_labels(counts: NDArray[np.int32], n_points: int) -> NDArray[np.bool_]:
    """Return which labels are rare enough that all pairs of their points can be gone through.

    Parameters
    ----------
    counts : int array (n_labels,)
        Points of each label.
    n_points : int

    Returns
    -------
    bool (n_labels,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.recipes.annexml import telling_labels
    >>> telling_labels(np.array([2, 900, 3]), 100).tolist()
    [True, False, True]
    """
    rarest_first = np.argsort(counts, kind="stable")
    n_pairs = np.cumsum(counts[rarest_first].astype(np.int64) ** 2)
    is_telling = np.zeros(len(counts), np.bool_)
    is_telling[rarest_first[n_pairs <= PAIRS_A_POINT * n_points]] = True
    return is_telling


def _drawn(near: Ids, random: np.random.Generator) -> Comparisons:
    """Draw the order of an epoch, and as many random points as there are near ones."""
    n_points = len(near)
    order = random.permutation(n_points).astype(np.int32)
    return Comparisons(order, near, random.integers(0, n_points, near.shape, np.int32))
