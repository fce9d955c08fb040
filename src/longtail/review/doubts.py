"""How much farther back a label ranks at a point than was to be expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["doubts"]

OF_LABEL, OF_POINT = 3.0, 1.0  # average pairs that count beside those of a label, or of a point
FIRST = 3  # the number of the first place, so that to be second or third is no cause for doubt
SHARE_OF_POINT = 0.5  # of what a point's other labels say: if all are wrong, none must excuse one


def doubts(
    places: NDArray[np.int32], points: NDArray[np.int64], labels: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return the doubt in each pair of a point and a label.

    That is the logarithm of the label's place, less its average at the other points of this label;
    and less half of how much the average of the other labels of this point is above that of all
    pairs. So a label that is hard to tell is not doubted for being far back, labels of a text that
    says little are doubted less, and one that is far behind others of its point the more.

    Parameters
    ----------
    places : int32 (n_pairs,)
        From 0.
    points, labels : int (n_pairs,)

    Returns
    -------
    float64 (n_pairs,)
        About 0 for most; log(10) for a label that is ten times as far back as expected.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.review.doubts import doubts
    >>> labels = np.repeat([0, 1], 20)  # the first is always first, and the other anywhere
    >>> places = np.where(labels == 0, 0, np.arange(40) * 7 % 50)
    >>> places[5] = 40
    >>> int(doubts(places, np.arange(40), labels).argmax())
    5
    """
    logs = np.log(places + float(FIRST))
    mean = float(logs.mean()) if len(logs) else 0.0
    of_label = _mean_of_others(logs, labels, mean, OF_LABEL)
    of_point = _mean_of_others(logs, points, mean, OF_POINT)
    expected = of_label + SHARE_OF_POINT * (of_point - mean)
    return np.asarray(logs - expected, np.float64)


def _mean_of_others(
    values: NDArray[np.float64],
    groups: NDArray[np.int64] | NDArray[np.int32],
    usual: float,
    n_usual: float,
) -> NDArray[np.float64]:
    """Return the mean of the other values of each one's group, drawn to what is usual."""
    sums, counts = np.bincount(groups, values), np.bincount(groups)
    others = sums[groups] - values + usual * n_usual
    return np.asarray(others / (counts[groups] - 1 + n_usual), np.float64)
