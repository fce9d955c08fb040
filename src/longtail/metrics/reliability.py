"""Whether answers are right as often as their probabilities say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import InputError, require_positive
from longtail.metrics.hits import as_binary_csr, check_ids, row_chunks, true_among

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.metrics.hits import Floats, Integers

__all__ = ["ProbabilityBin", "by_probability"]


@dataclass(frozen=True)
class ProbabilityBin:
    """Answers of about the same probability.

    Parameters
    ----------
    n_answers : int
        How many answers there are, of all points.
    probability : float
        How probable they were said to be, on average.
    share_right : float
        Which share of them is right.
    """

    n_answers: int
    probability: float
    share_right: float


def by_probability(
    ids: Integers, probabilities: Floats, truth: csr_array, n_bins: int = 10
) -> list[ProbabilityBin]:
    """Return how often answers are right, by how probable they were said to be.

    Probabilities can be trusted where both numbers of a bin agree: the reliability diagram of
    DeGroot and Fienberg, "The comparison and evaluation of forecasters", The Statistician 1983.

    Parameters
    ----------
    ids : ndarray of int, shape (n_points, k)
        Predicted labels, -1 where there is none.
    probabilities : ndarray of float, shape (n_points, k)
        Of these, from 0 to 1.
    truth : sparse matrix, shape (n_points, n_labels)
        True labels.
    n_bins : int
        Into how many equal parts 0 to 1 is cut.

    Returns
    -------
    list of ProbabilityBin
        The least probable first; parts without answers are left out.

    Raises
    ------
    InputError
        Where shapes disagree, or a probability is not from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import by_probability
    >>> ids, probabilities = np.array([[0, 1], [1, -1]]), np.array([[0.5, 0.25], [0.75, -np.inf]])
    >>> found = by_probability(ids, probabilities, csr_array([[1, 0], [1, 1]]), n_bins=2)
    >>> [(part.n_answers, part.probability, part.share_right) for part in found]
    [(1, 0.25, 0.0), (2, 0.625, 1.0)]
    """
    require_positive("n_bins", n_bins)
    truth = as_binary_csr(truth, "truth")
    ids, probabilities = check_ids(ids, truth.shape[0]), np.asarray(probabilities)
    if ids.shape != probabilities.shape:
        raise InputError(
            f"`ids` has shape {ids.shape} and `probabilities` {probabilities.shape}. Pass both as "
            "`predict_topk` returns them."
        )
    counted = [
        _count(ids[rows], probabilities[rows], truth[rows], n_bins) for rows in row_chunks(len(ids))
    ]
    n_answers, sums, n_right = np.sum(counted, axis=0)
    return [
        ProbabilityBin(int(n), float(sums[i] / n), float(n_right[i] / n))
        for i, n in enumerate(n_answers)
        if n
    ]


def _count(
    ids: Integers, probabilities: Floats, truth: csr_array, n_bins: int
) -> NDArray[np.float64]:
    """Return how many answers of some points are in each bin, their sum, and how many are right."""
    said = probabilities[ids >= 0].astype(np.float64)
    if not ((said >= 0) & (said <= 1)).all():
        raise InputError(
            f"Probabilities are from 0 to 1, and these from {said.min():g} to {said.max():g}. Pass "
            "what `predict_topk` of a model returns; scores of other systems are no probabilities."
        )
    is_right = true_among(ids, truth)[ids >= 0]
    bins = np.minimum((said * n_bins).astype(np.int64), n_bins - 1)
    return np.array(
        [np.bincount(bins, weights, n_bins) for weights in (None, said, is_right)], np.float64
    )
