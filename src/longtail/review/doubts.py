"""How much less a model makes of a label at a point than was to be expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["doubts", "surprises"]

FEW_LABELS = 600  # of so many, it is told better by probabilities that one is wrong
LEAST_TOLD = 1e-3  # less probable labels are not told apart
FIRST = 3  # the number of the first place, so that to be second or third is no cause for doubt
OF_LABEL, OF_POINT = 3.0, 1.0  # average pairs that count beside those of a label, or of a point
SHARE_OF_POINT = 0.5  # of what a point's other labels say: if all are wrong, none must excuse one


def surprises(
    places: NDArray[np.int32], probabilities: NDArray[np.float32], n_labels: int
) -> Floats:
    """Return how surprising it is that points have their labels.

    Among many labels, most that are right are improbable; which is not far behind others tells
    more. So that is the logarithm of a label's place; of few labels that of their probability.

    Parameters
    ----------
    places : int32 (n_pairs,)
        From 0.
    probabilities : float32 (n_pairs,)
    n_labels : int

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.review.doubts import surprises
    >>> pairs = np.array([0, 27], np.int32), np.array([0.5, 0.05], np.float32)
    >>> [float(np.ptp(surprises(*pairs, n_labels=n)).round(2)) for n in (10, 10_000)]  # log(10)
    [2.3, 2.3]
    """
    if n_labels <= FEW_LABELS:
        return np.asarray(-np.log(np.maximum(probabilities, LEAST_TOLD)), np.float64)
    return np.asarray(np.log(places + float(FIRST)), np.float64)


def doubts(surprising: Floats, points: NDArray[np.int64], labels: NDArray[np.int32]) -> Floats:
    """Return the doubt in each pair of a point and a label.

    That is how surprising it is, less its average at the other points of this label; and less half
    of how much the average of the other labels of this point is above that of all pairs. So a label
    that is hard to tell is not doubted for being far back, labels of a text that says little are
    doubted less, and one that is far behind others of its point the more.

    Parameters
    ----------
    surprising : float64 (n_pairs,)
        See `surprises`.
    points, labels : int (n_pairs,)

    Returns
    -------
    float64 (n_pairs,)
        About 0 for most; log(10) for a label that is ten times as far back as expected, or a tenth
        as probable.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.review.doubts import doubts
    >>> labels = np.repeat([0, 1], 20)  # the first is always first, and the other anywhere
    >>> surprising = np.where(labels == 0, 0, np.log(1.0 + np.arange(40) * 7 % 50))
    >>> surprising[5] = np.log(40)
    >>> int(doubts(surprising, np.arange(40), labels).argmax())
    5
    """
    mean = float(surprising.mean()) if len(surprising) else 0.0
    of_label = _mean_of_others(surprising, labels, mean, OF_LABEL)
    of_point = _mean_of_others(surprising, points, mean, OF_POINT)
    return surprising - of_label - SHARE_OF_POINT * (of_point - mean)


def _mean_of_others(
    values: Floats,
    groups: NDArray[np.int64] | NDArray[np.int32],
    usual: float,
    n_usual: float,
) -> Floats:
    """Return the mean of the other values of each one's group, drawn to what is usual."""
    sums, counts = np.bincount(groups, values), np.bincount(groups)
    others = sums[groups] - values + usual * n_usual
    return np.asarray(others / (counts[groups] - 1 + n_usual), np.float64)
