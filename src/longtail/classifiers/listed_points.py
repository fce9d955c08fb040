"""The points that a linear classifier of a label is trained on, and who trains which labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.csr import csr_from_rows
from longtail.data.rows import binary, offsets_and_indices, row_norms
from longtail.kernels.arrays import read_only
from longtail.kernels.dual_coordinate import Problems, Stopping
from longtail.kernels.shortlists import points_of_listed
from longtail.kernels.sparse_points import Points

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


__all__ = [
    "equal_parts",
    "for_solvers",
    "points_listing",
    "points_of_lists",
    "problems_of",
    "stopping_of",
]

N_PARTS = 64  # of the work, for the threads to take one by one; each copies its points


def for_solvers(features: csr_array) -> Points:
    """Return sparse points as the compiled solvers read them, without a copy of their entries.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.classifiers.listed_points import for_solvers
    >>> for_solvers(csr_array(np.array([[0, 3, 4]], np.float32))).squared_norms.tolist()
    [25.0]
    """
    row_starts, columns = offsets_and_indices(features)
    squared_norms = row_norms(features) ** 2
    return Points(
        row_starts, columns.view(np.uint32), features.data, squared_norms, features.shape[1]
    )


def points_listing(shortlists: NDArray[np.int32], n_labels: int) -> csr_array:
    """Return the points whose shortlists hold each label, bool (n_labels, n_points).

    Parameters
    ----------
    shortlists : int32 (n_points, size)
        Padded with -1.
    n_labels : int

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.classifiers.listed_points import points_listing
    >>> points_listing(np.array([[1, -1], [1, 0]], np.int32), n_labels=2).toarray().tolist()
    [[False, True], [True, True]]
    """
    n_points, size = shortlists.shape
    return points_of_lists(np.arange(n_points + 1) * size, shortlists.ravel(), n_labels)


def points_of_lists(
    row_starts: NDArray[np.int64], labels: NDArray[np.int32], n_labels: int
) -> csr_array:
    """Return the same of lists laid end to end, which differ in length.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.classifiers.listed_points import points_of_lists
    >>> points_of_lists(np.array([0, 1, 3]), np.array([1, 1, 0]), n_labels=2).toarray().tolist()
    [[False, True], [True, True]]
    """
    lists = read_only(row_starts, np.int64), read_only(labels, np.int32)
    starts, points = points_of_listed(*lists, n_labels)
    ones = np.ones(len(points), np.bool_)
    found = csr_from_rows(points, np.diff(starts), len(row_starts) - 1, ones)
    found.has_canonical_format = True
    return found


def problems_of(
    labels: csr_array, candidates: csr_array, group_of_label: NDArray[np.integer]
) -> Problems:
    """Return the points of each label and those that it is told apart from, as solvers read them.

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
    candidates : csr_array (n_groups, n_points)
        An entry makes the point a negative of those labels of the group that it does not carry.
    group_of_label : int (n_labels,)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.classifiers.listed_points import problems_of
    >>> labels, every_point = csr_array([[1, 0], [1, 1]]), csr_array([[1, 1]])
    >>> problems = problems_of(labels, every_point, np.zeros(2, int))
    >>> problems.positives.tolist(), problems.candidates.tolist()
    ([0, 1, 1], [0, 1])
    """
    groups = np.ascontiguousarray(group_of_label, np.int32)
    return Problems(*_lists(labels.T.tocsr()), *_lists(candidates), groups)


def stopping_of(
    cost: float, tolerance: float, max_passes: int, prune: float, seed: int
) -> Stopping:
    """Return what solvers stop by, of the types that they are compiled for.

    Examples
    --------
    >>> from longtail.classifiers.listed_points import stopping_of
    >>> stopping_of(1, 0.1, 10, 0, seed=3)
    Stopping(cost=1.0, tolerance=0.1, max_passes=10, prune=0.0, seed=3)
    """
    return Stopping(float(cost), float(tolerance), int(max_passes), float(prune), seed)


def _lists(rows: csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where each row's entries begin, and their columns; zeros and duplicates are none."""
    is_plain = rows.has_canonical_format and rows.data.all()
    return offsets_and_indices(rows if is_plain else binary(rows))


def equal_parts(problems: Problems) -> NDArray[np.int64]:
    """Cut the labels into ranges of about equally many points: bounds of at most `N_PARTS`.

    Examples
    --------
    The first of 101 labels has as many points as all others together: it is a part of its own.

    >>> import numpy as np
    >>> from longtail.classifiers.listed_points import equal_parts
    >>> from longtail.kernels.dual_coordinate import Problems
    >>> starts = np.array([0, 100, *[1] * 100]).cumsum()
    >>> no_candidates = np.zeros(2, int), np.zeros(0, int), np.zeros(101, int)
    >>> equal_parts(Problems(starts, np.arange(200), *no_candidates))[:4].tolist()
    [0, 1, 3, 5]
    """
    n_candidates = np.diff(problems.candidate_starts)[problems.group_of_label]
    n_points = np.diff(problems.positive_starts) + n_candidates
    before = np.concatenate([[0], np.cumsum(n_points + 1)])
    wanted = np.linspace(0, before[-1], N_PARTS + 1)
    return np.unique(np.searchsorted(before, wanted))
