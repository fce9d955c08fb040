"""Shortlists turned around: which points list each label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]

__all__ = ["points_of_listed"]


@kernel
def points_of_listed(
    row_starts: NDArray[np.int64], labels: Ids, n_labels: int
) -> tuple[NDArray[np.int64], Ids]:
    """Return the points that list each label, ascending, each once.

    Counted first and then written to their places: no pair of a point and a label is ever kept
    twice, of which there are a hundred times as many as points.

    Parameters
    ----------
    row_starts, labels : int64 (n_points + 1,) and int32
        Point i lists ``labels[row_starts[i]:row_starts[i + 1]]``, below `n_labels`; what is
        negative is none.
    n_labels : int

    Returns
    -------
    starts : int64 (n_labels + 1,)
    points : int32 (n_pairs,)
        Those of label i are ``points[starts[i]:starts[i + 1]]``.
    """
    latest = np.full(n_labels, -1, np.int32)  # point that was seen to list a label
    starts = np.zeros(n_labels + 1, np.int64)
    for point in range(len(row_starts) - 1):
        for label in labels[row_starts[point] : row_starts[point + 1]]:
            if label >= 0 and latest[label] != point:
                latest[label] = point
                starts[label + 1] += 1
    for label in range(n_labels):
        starts[label + 1] += starts[label]
    points = np.empty(starts[n_labels], np.int32)
    places = starts[:n_labels].copy()
    latest[:] = -1
    for point in range(len(row_starts) - 1):
        for label in labels[row_starts[point] : row_starts[point + 1]]:
            if label >= 0 and latest[label] != point:
                latest[label] = point
                points[places[label]] = point
                places[label] += 1
    return starts, points
