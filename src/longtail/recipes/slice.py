"""Slice: linear classifiers over fixed dense vectors, against the labels with near centroids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longtail.classifiers.dense_one_vs_rest import DenseOneVsRest
from longtail.data.bags import Bags
from longtail.estimators.estimator import LabelEstimator
from longtail.features.fixed_vectors import (
    AsGiven,
    FixedVectors,
    RandomProjection,
    TruncatedSVD,
    is_dense,
)
from longtail.negatives.samplers import NearestCentroids
from longtail.recipes.fusion_learning import fusion_learnt
from longtail.recipes.own_parts import check_fixed_vectors, check_part, checked_features
from longtail.scorers.fusion import ScoreFusion
from longtail.scorers.slice import SliceScorer

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["Slice"]

GRID = (0.2, 0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)  # weights of the classifiers


@dataclass(kw_only=True, eq=False, repr=False)
class Slice(LabelEstimator):
    """Slice (Jain et al., "Slice: Scalable linear extreme classifiers", WSDM 2019).

    Points are fixed dense vectors. A structure for nearest neighbours over label centroids finds
    the few labels that a point is like: in training those are its negatives, in prediction the
    only labels that are scored.

    Parameters
    ----------
    vectors : FixedVectors or None
        Where the vectors come from. None takes dense features, and features that are no more than
        `dimension`, as they are, and reduces sparse ones and texts by truncated SVD.
    dimension : int
        Length of the vectors that sparse features and texts are reduced to.
    shortlist_size : int
        Labels that a point is compared with; 300 in the paper.
    cost : float
        C of the classifiers: larger fits the training points more closely.
    **kwargs
        Those of `LabelEstimator`.

    Examples
    --------
    >>> from longtail.recipes.slice import Slice
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = Slice().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    vectors: FixedVectors | None = None
    dimension: int = TruncatedSVD.dimension
    shortlist_size: int = NearestCentroids.size
    cost: float = DenseOneVsRest.cost

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        if self.vectors is not None:
            check_part("vectors", self.vectors, ["learn"], RandomProjection)

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """See `LabelEstimator`."""
        with run.stage("vectors"):
            encoder = self._vectors_for(data.features).learn(data.features, run)
            check_fixed_vectors(encoder, data.features.shape[1])
            encoded = encoder.encode(Bags.of(data.features), run.n_threads)
            points = checked_features(encoded, data.features.shape[0], encoder.dimension)
        with run.stage("shortlists"):
            sampler = NearestCentroids(n_near_labels=self.shortlist_size, size=self.shortlist_size)
            seed = run.seed_for("shortlists")
            built = sampler.build(points, data.labels, seed=seed, n_threads=run.n_threads)
            shortlists, _ = built.query(points, run.n_threads)
        with run.stage("classifiers"):
            solver = DenseOneVsRest(cost=self.cost)
            classifier = solver.learn(points, data.labels, shortlists, run)
        scorer = SliceScorer(
            encoder=encoder, shortlister=built, classifier=classifier, fusion=ScoreFusion(alpha=0.8)
        )
        return replace(scorer, fusion=fusion_learnt(scorer, data, held_out, run, grid=GRID))

    def _vectors_for(self, features: csr_array) -> FixedVectors:
        """Return where vectors come from."""
        if self.vectors is not None:
            return self.vectors
        if is_dense(features) or features.shape[1] <= self.dimension:
            return AsGiven()
        return TruncatedSVD(dimension=self.dimension)
