"""Rows that are there several times over, as where rare labels have been made up for by copies.

A copy says nothing that its row has not said. But where one is held out and another learnt from,
all seems to be known, and a label whose one text comes ten times seems to have ten points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.input_notes import warn
from longtail.data.pair_table import joined_points, numbers_of_points

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.dataset import Dataset

    Rows = NDArray[np.int64]

__all__ = ["points_of_rows", "without_copies"]

LEAST_POINTS = 100  # different ones: with fewer, the data is a toy whose copies are wanted
LEAST_COPIES = 0.05  # of the rows: fewer may be chance
EVEN = 0.5  # share of the variance that chance would give to the number of rows of a point
OF_RARE = -0.4  # correlation: the rarer the rarest label of a point, the more rows the point has
SPREAD = np.int64(-7046029254386353131)  # odd, so that no two numbers of texts become the same
UNEVEN = 4.0  # times the variance of chance, within a label: copied points have as many rows each
MOST_SETS = 1.1  # sets of labels of a repeated text: a log, whose rows all count, has more


def points_of_rows(
    dataset: Dataset, pairs: csr_array | None = None
) -> tuple[Dataset, csr_array | None]:
    """Return the points of a table of pairs, or each of its points once, or the data set as it is.

    See `joined_points` and `without_copies`, of which at most one changes anything: a pair that a
    log has several times counts as often.

    Parameters
    ----------
    dataset : Dataset
    pairs : csr_array (n_points, n_labels), optional
        Further pairs of the same rows.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.data.copies import points_of_rows
    >>> dataset = Dataset.of(["rye", "spelt"], [["bread"], ["grain"]])
    >>> points_of_rows(dataset)[0] is dataset
    True
    """
    text_of = numbers_of_points(dataset)
    joined = joined_points(dataset, pairs, text_of)
    return joined if joined[0] is not dataset else without_copies(dataset, pairs, text_of)


def without_copies(
    dataset: Dataset, pairs: csr_array | None = None, text_of: Rows | None = None
) -> tuple[Dataset, csr_array | None]:
    """Return each point once, where many have been copied; it says so with an `InputWarning`.

    Copies have the text or features of another row, all its labels, and its `pairs`. In a log, too,
    rows repeat, but some much more often than others, whatever their labels are. So rows are copies
    if all points come about equally often; or if points with rare labels come more often, and those
    of one label about equally often.
    Other data is returned as is.

    Parameters
    ----------
    dataset : Dataset
    pairs : csr_array (n_points, n_labels), optional
        Further pairs of the same rows.
    text_of : int64 (n_points,), optional
        `numbers_of_points` of the data set, where they are known.

    Returns
    -------
    dataset : Dataset
        Points in the order of their first rows.
    pairs : csr_array or None

    Examples
    --------
    >>> import warnings
    >>> from longtail import Dataset
    >>> from longtail.data.copies import without_copies
    >>> texts = [f"text {number}" for number in range(100)]
    >>> copied = Dataset.of(texts * 5, [["bread"], ["grain"]] * 250)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     points, _ = without_copies(copied)
    >>> points.n_points
    100
    >>> print(caught[0].message)
    training data: of 500 rows 400 repeat another, labels and all, and are left out.
    """
    text_of = numbers_of_points(dataset) if text_of is None else text_of
    is_repeated = (np.bincount(text_of) > 1)[text_of]
    if np.count_nonzero(is_repeated) <= LEAST_COPIES * len(text_of):
        return dataset, pairs
    point_of = _points(text_of, is_repeated, dataset.labels, pairs)
    n_texts = len(np.unique(text_of[is_repeated]))
    n_sets = len(np.unique(point_of[is_repeated]))
    _, first_rows, n_rows_of = np.unique(point_of, return_index=True, return_counts=True)
    if n_sets > MOST_SETS * n_texts or not _are_copied(n_rows_of, dataset.labels[first_rows]):
        return dataset, pairs
    rows = np.sort(first_rows)
    warn(
        f"training data: of {len(text_of):,} rows {len(text_of) - len(rows):,} repeat another, "
        "labels and all, and are left out."
    )
    return dataset.take(rows), None if pairs is None else pairs[rows]


def _are_copied(n_rows_of: Rows, labels: csr_array) -> bool:
    """Return whether points come as often as they do because they were copied."""
    n_rows, n_points = n_rows_of.sum(), len(n_rows_of)
    if n_points < LEAST_POINTS or n_rows - n_points <= LEAST_COPIES * n_rows:
        return False
    if n_rows_of.var() < EVEN * (n_rows_of.mean() - 1):  # chance gives Poisson numbers
        return True
    n_points_of = np.bincount(labels.indices)
    has_labels = np.diff(labels.indptr) > 0
    starts = labels.indptr[:-1][has_labels]
    of_rarest = np.minimum.reduceat(n_points_of[labels.indices], starts)
    if not np.ptp(of_rarest) or not np.ptp(n_rows_of[has_labels]):
        return False
    together = np.corrcoef(np.log(n_rows_of[has_labels]), np.log(of_rarest))
    if together[0, 1] >= OF_RARE:
        return False
    is_rarest = n_points_of[labels.indices] == np.repeat(
        of_rarest, np.diff(labels.indptr)[has_labels]
    )
    places = np.flatnonzero(is_rarest)
    firsts = places[np.searchsorted(places, starts)]
    return _unevenness(n_rows_of[has_labels], labels.indices[firsts]) <= UNEVEN


def _unevenness(n_rows_of: Rows, labels: NDArray[np.int32]) -> float:
    """Return how much points of a label differ in how often they come, over what chance gives.

    In a log a few phrases come often and others once. The points of a label are copied about
    equally often: the variance of their numbers of copies is then about the mean.

    Parameters
    ----------
    n_rows_of : int64 (n_points,)
    labels : int32 (n_points,)
        The rarest label of each point.
    """
    _, group = np.unique(labels, return_inverse=True)
    n_points_of = np.bincount(group)
    means = np.bincount(group, n_rows_of) / n_points_of
    squares = np.bincount(group, (n_rows_of - means[group]) ** 2)
    are_several = (n_points_of > 1) & (means > 1)
    squares, sizes = squares[are_several], n_points_of[are_several]
    n_copies = np.sum((means[are_several] - 1) * sizes)
    return float(np.sum(squares * sizes / (sizes - 1)) / max(n_copies, 1.0))


def _points(
    text_of: Rows, is_repeated: NDArray[np.bool_], labels: csr_array, pairs: csr_array | None
) -> Rows:
    """Return the number of the text, labels and pairs of each row."""
    hashes = np.zeros(len(text_of), np.int64)  # of labels and pairs, where the text repeats
    for row in np.flatnonzero(is_repeated).tolist():
        matrices = [matrix for matrix in (labels, pairs) if matrix is not None]
        hashes[row] = hash(tuple(_entries(matrix, row) for matrix in matrices))
    # One number of text and hash; where no text repeats, that of the text is enough.
    _, numbers = np.unique(text_of * SPREAD ^ hashes, return_inverse=True)
    points: Rows = numbers.astype(np.int64)
    return points


def _entries(matrix: csr_array, row: int) -> bytes:
    """Return what tells the entries of a row apart."""
    start, stop = matrix.indptr[row : row + 2]
    entries: bytes = matrix.indices[start:stop].tobytes()
    return entries
