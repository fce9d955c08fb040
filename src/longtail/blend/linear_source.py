"""The linear classifiers of a blend, trained against labels that are easily confused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.data.bags import Bags

if TYPE_CHECKING:
    from longtail.blend.candidates import CandidateSearch
    from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["linear_source"]


def linear_source(
    data: TrainingData, search: CandidateSearch, cost: float, run: TrainingRun
) -> SparseLabelVectors:
    """Train a linear classifier a label on words, against the labels that near points have.

    Parameters
    ----------
    data : TrainingData
    search : CandidateSearch
        That knows the training points.
    cost : float
        C; see `SparseOneVsRest`.
    run : TrainingRun

    Returns
    -------
    SparseLabelVectors
        Of the features that ``data.is_word`` marks, where it marks any.
    """
    bags = Bags.of(data.features)
    words = bags if data.is_word is None else bags.kept(data.is_word)
    confused = search.confused(run.n_threads)
    features = words.matrix(data.features.shape[1])
    return SparseOneVsRest(cost=cost).learn(features, data.labels, confused, run)
