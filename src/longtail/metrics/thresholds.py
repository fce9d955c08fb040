"""What answers are worth that are cut at a probability, instead of after k labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import InputError
from longtail.metrics.at_k import ratio
from longtail.metrics.hits import find_hits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_array

    from longtail.metrics.hits import Floats, Integers

__all__ = ["THRESHOLDS", "AtThreshold", "at_thresholds"]

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class AtThreshold:
    """What the labels are worth that are at least so probable.

    Parameters
    ----------
    threshold : float
        The least probability.
    labels_per_point : float
        How many labels a point is answered with, on average.
    precision : float
        Which share of these is right, over all points.
    recall : float
        Which share of the true labels is among them, over all points.

    Examples
    --------
    >>> from longtail.metrics.thresholds import AtThreshold
    >>> found = AtThreshold(threshold=0.5, labels_per_point=2.0, precision=0.25, recall=0.75)
    >>> found.f1  # nearer to the lower of the two
    0.375
    """

    threshold: float
    labels_per_point: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: micro F1."""
        return ratio(2 * self.precision * self.recall, self.precision + self.recall)


def at_thresholds(
    ids: Integers,
    probabilities: Floats,
    truth: csr_array,
    thresholds: Sequence[float] = THRESHOLDS,
) -> list[AtThreshold]:
    """Return precision, recall and F1 of the labels that are at least so probable.

    Choose a threshold by them on points that are neither trained on nor tested with.

    Parameters
    ----------
    ids : ndarray of int, shape (n_points, k)
        Predicted labels, -1 where there is none. Labels behind the first k count as not answered.
    probabilities : ndarray of float, shape (n_points, k)
        Of these, -inf where there is none.
    truth : sparse matrix, shape (n_points, n_labels)
        True labels.
    thresholds : sequence of float
        Least probabilities.

    Raises
    ------
    InputError
        Where shapes disagree, or a row names a true label twice.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import at_thresholds
    >>> ids, probabilities = np.array([[2, 0], [0, 1]]), np.array([[0.9, 0.8], [0.7, 0.1]])
    >>> (found,) = at_thresholds(ids, probabilities, csr_array([[1, 0, 1], [0, 1, 0]]), [0.5])
    >>> found.labels_per_point, round(found.precision, 3), round(found.recall, 3)
    (1.5, 0.667, 0.667)
    """
    ids, probabilities = np.asarray(ids), np.asarray(probabilities)
    if ids.shape != probabilities.shape or ids.ndim != 2:
        raise InputError(
            f"`ids` has shape {ids.shape} and `probabilities` {probabilities.shape}. Pass both as "
            "`predict_topk` returns them."
        )
    hits = find_hits(ids, truth, ids.shape[1])
    of_hits, of_all = probabilities[hits.points, hits.ranks], probabilities[ids >= 0]
    n_true = int(hits.n_true.sum())
    found = []
    for threshold in thresholds:
        n_right, n_answered = (int((some >= threshold).sum()) for some in (of_hits, of_all))
        found.append(
            AtThreshold(
                threshold=threshold,
                labels_per_point=n_answered / len(ids),
                precision=ratio(n_right, n_answered),
                recall=ratio(n_right, n_true),
            )
        )
    return found
