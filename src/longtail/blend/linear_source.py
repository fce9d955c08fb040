"""The linear classifiers of a blend, trained against labels that are easily confused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from longtail.classifiers.listed_points import points_of_lists
from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.data.bags import Bags

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.candidates import CandidateSearch
    from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["Pieces", "linear_source"]

Pieces = Literal["no", "beginnings", "all"]


def linear_source(
    data: TrainingData,
    search: CandidateSearch,
    cost: float,
    run: TrainingRun,
    *,
    pieces: Pieces = "no",
) -> tuple[SparseLabelVectors, NDArray[np.bool_] | None]:
    """Train a linear classifier a label on words, against the labels that near points have.

    Parameters
    ----------
    data : TrainingData
    search : CandidateSearch
        That knows the training points.
    cost : float
        C; see `SparseOneVsRest`.
    run : TrainingRun
    pieces : {"no", "beginnings", "all"}
        Which pieces of words they look at, beside words: what a word has in common with others.

    Returns
    -------
    classifiers : SparseLabelVectors
    is_read : bool (n_features,) or None
        Which features they look at, in bags of unit length; None for all.

    Examples
    --------
    Points of label i have feature i, and a piece of a word that says nothing.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.candidates import CandidateSearch, SearchSizes
    >>> from longtail.blend.linear_source import linear_source
    >>> from longtail.training.run import TrainingData, TrainingRun
    >>> labels = csr_array(np.eye(2, dtype=np.float32)[[0, 1, 0, 1]])
    >>> points = np.array([[0.8, 0, 0.6], [0, 0.8, 0.6]], np.float32)[[0, 1, 0, 1]]
    >>> data = TrainingData(csr_array(points), labels, is_word=np.array([True, True, False]))
    >>> search = CandidateSearch.build(
    ...     points[:2], points, labels, sizes=SearchSizes(), seed=0, n_threads=1
    ... )
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> classifiers, is_read = linear_source(data, search, 1.0, run)
    >>> np.sign(classifiers.matrix(3).toarray()).tolist()
    [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]]
    >>> is_read.tolist()
    [True, True, False]
    """
    features, is_read = data.features, _features_read(data, pieces)
    if is_read is not None:
        features = Bags.of(features).kept(is_read).matrix(features.shape[1])
    classifiers = SparseOneVsRest(cost=cost).learn_among(
        features,
        data.labels,
        _confused_points(search, run),
        np.arange(data.labels.shape[1], dtype=np.int32),
        seed=run.seed_for("one versus rest"),
        n_threads=run.n_threads,
    )
    return classifiers, is_read


def _confused_points(search: CandidateSearch, run: TrainingRun) -> csr_array:
    """Return the points that each label is told apart from, bool (n_labels, n_points)."""
    confused = search.confused(run.n_threads, seed=run.seed_for("confused labels"))
    return points_of_lists(*confused, search.n_labels)


def _features_read(data: TrainingData, pieces: Pieces) -> NDArray[np.bool_] | None:
    """Return which features are words or pairs, or pieces that are wanted; None for all."""
    if pieces == "all":
        return None
    if data.is_word is None or data.is_beginning is None or pieces == "no":
        return data.is_word
    return data.is_word | data.is_beginning
