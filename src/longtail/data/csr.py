"""Sparse matrices from rows that were collected one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, sparray, spmatrix

from longtail.data.input_notes import InputNotes
from longtail.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MAX_IDS",
    "MOST_DIGITS",
    "TINY",
    "check_indices",
    "csr_from_rows",
    "csr_of_chosen",
    "csr_of_dense",
    "first_rows",
    "fits_rows",
    "is_within",
    "n_labels_of",
    "remark_on_tiny",
    "row_with_repeats",
    "rows_of_entries",
    "with_entries",
    "with_int32_indices",
]

MAX_IDS = 2**31 - 1  # column ids are kept as int32
MOST_DIGITS = 19  # of a number in a file: Python refuses to read one of thousands of digits
TINY = "points whose numbers are all nearer to 0 than 32 bits hold (taken for zeros: scale them up)"
# With more labels than this, most must occur: a model has a row of numbers for each of them.
_MANY_LABELS, _MOST_UNUSED = 10_000_000, 100
_ROWS_AT_ONCE = 4096


def n_labels_of(ids: NDArray[np.int32]) -> int:
    """Return how many labels there are if ids are row numbers: one more than the greatest.

    Parameters
    ----------
    ids : int32 (n,)
        Of all points.

    Raises
    ------
    InputError
        If they are plainly no row numbers but such as keys of a database.

    Examples
    --------
    >>> n_labels_of(np.array([4, 0, 4], np.int32))
    5
    """
    n_labels = int(ids.max()) + 1 if len(ids) else 0
    if n_labels > _MANY_LABELS and n_labels > _MOST_UNUSED * len(ids):
        raise InputError(
            f"The label ids run up to {n_labels - 1:,}, but points have {len(ids):,} labels in "
            "all. An id is a row number, and each row takes memory, used or not. Number the labels "
            "from 0, or write them as strings, which are names."
        )
    return n_labels


def csr_from_rows(
    indices: NDArray[np.int32],
    lengths: NDArray[np.int64],
    n_columns: int,
    values: NDArray[Any] | None = None,
) -> csr_array:
    """Make a CSR matrix of rows laid end to end.

    Parameters
    ----------
    indices : ndarray of int32, shape (nnz,)
        Column ids, row after row, sorted and without repeats within a row.
    lengths : ndarray of int64, shape (n_rows,)
        How many of them each row has.
    n_columns : int
        Width of the matrix.
    values : ndarray, shape (nnz,), optional
        Kept as they are; without them, ones of float32.

    Returns
    -------
    csr_array of shape (n_rows, n_columns)
        Both index arrays are int32; int64 only from 2**31 entries on.

    Examples
    --------
    >>> csr_from_rows(np.array([0, 2, 1], np.int32), np.array([2, 0, 1]), 3).toarray().tolist()
    [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if values is None:
        values = np.ones(len(indices), dtype=np.float32)
    row_starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=row_starts[1:])
    if row_starts[-1] <= MAX_IDS:
        # scipy would otherwise widen `indices` to match: twice the memory.
        row_starts = row_starts.astype(np.int32)
    return csr_array((values, indices, row_starts), shape=(len(lengths), n_columns))


def csr_of_dense(rows: NDArray[Any]) -> csr_array:
    """Return the numbers of an array other than 0, float32; scipy would take four times as much.

    Parameters
    ----------
    rows : array (n_rows, n_columns)
        Numbers that 32 bits do not hold become infinite, or zeros that are kept.

    Examples
    --------
    >>> from longtail.data.csr import csr_of_dense
    >>> csr_of_dense(np.array([[0, 2], [0, 0], [3, 1]])).indices.tolist()
    [1, 0, 1]
    """
    lengths = np.count_nonzero(rows, axis=1)
    columns, values = np.empty(lengths.sum(), np.int32), np.empty(lengths.sum(), np.float32)
    filled = 0
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE]
        places = np.nonzero(block)
        part = slice(filled, filled + len(places[1]))
        columns[part], values[part] = places[1], block[places]
        filled = part.stop
    return csr_from_rows(columns, lengths, rows.shape[1], values)


def csr_of_chosen(
    ids: NDArray[Any], values: NDArray[Any], is_chosen: NDArray[np.bool_], n_columns: int
) -> csr_array:
    """Make a CSR matrix of some of the columns that each row names, with sorted indices.

    Parameters
    ----------
    ids : int (n_rows, k)
        Column ids; of those that are not chosen anything, such as -1.
    values : array (n_rows, k)
    is_chosen : bool (n_rows, k)
    n_columns : int

    Examples
    --------
    >>> from longtail.data.csr import csr_of_chosen
    >>> ids, values = np.array([[1, -1], [1, 0]]), np.array([[0.5, 0.0], [0.25, 2.0]])
    >>> csr_of_chosen(ids, values, ids >= 0, 2).toarray().tolist()
    [[0.0, 0.5], [2.0, 0.25]]
    """
    starts = np.concatenate([[0], np.cumsum(is_chosen.sum(axis=1))])
    matrix = csr_array((values[is_chosen], ids[is_chosen], starts), (len(ids), n_columns))
    matrix.sort_indices()
    return matrix


def rows_of_entries(matrix: csr_array) -> NDArray[np.int64]:
    """Return the row of each stored entry, int64 (nnz,).

    Examples
    --------
    >>> from longtail.data.csr import rows_of_entries
    >>> rows_of_entries(csr_array([[1, 1], [0, 0], [0, 1]])).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def with_entries(matrix: csr_array, is_kept: NDArray[np.bool_]) -> csr_array:
    """Return a matrix of the same shape with some of the entries.

    Parameters
    ----------
    matrix : csr_array
    is_kept : bool (nnz,)
        Which of the stored entries.

    Examples
    --------
    >>> from longtail.data.csr import with_entries
    >>> matrix = csr_array([[3, 0, 4], [0, 5, 0]])
    >>> with_entries(matrix, matrix.data > 3).toarray().tolist()
    [[0, 0, 4], [0, 5, 0]]
    """
    n_before = np.concatenate([[0], np.cumsum(is_kept)])
    lengths = np.diff(n_before[matrix.indptr])
    indices, values = matrix.indices[is_kept], matrix.data[is_kept]
    return csr_from_rows(indices, lengths, matrix.shape[1], values)


def first_rows(matrix: csr_array, n_rows: int) -> csr_array:
    """Return the first rows of a matrix, which share its memory.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.csr import first_rows
    >>> first_rows(csr_array([[1.0, 0.0], [0.0, 2.0]]), 1).toarray().tolist()
    [[1.0, 0.0]]
    """
    starts = matrix.indptr[: n_rows + 1]
    entries = matrix.data[: starts[-1]], matrix.indices[: starts[-1]], starts
    rows = csr_array(entries, shape=(n_rows, matrix.shape[1]))
    rows.has_canonical_format = matrix.has_canonical_format
    return rows


def with_int32_indices(matrix: csr_array) -> csr_array:
    """Return the matrix with int32 index arrays where they suffice, itself where it has them.

    Examples
    --------
    >>> wide = csr_array((np.ones(1), np.array([1]), np.array([0, 1])), shape=(1, 2))
    >>> with_int32_indices(wide).indices.dtype
    dtype('int32')
    """
    if matrix.indices.dtype == np.int32 or max(matrix.nnz, *matrix.shape) > MAX_IDS:
        return matrix
    indices, row_starts = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return csr_array((matrix.data, indices, row_starts), shape=matrix.shape)


def check_indices(name: str, matrix: sparray | spmatrix) -> None:
    """Raise InputError if the indices of a sparse matrix lie beyond it: scipy takes any.

    Examples
    --------
    >>> from longtail.data.csr import check_indices
    >>> matrix = csr_array(np.eye(2))
    >>> matrix.indices[1] = 7
    >>> check_indices("y", matrix)
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: y is a broken sparse matrix: its indices do not fit its shape ...
    """
    if matrix.ndim != 2 or matrix.format not in {"csr", "csc"}:
        return
    n_rows, n_columns = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    starts = matrix.indptr
    is_whole = len(starts) == n_rows + 1 and starts[-1] <= len(matrix.indices)
    if not is_whole or not fits_rows(starts, matrix.indices[: starts[-1]], n_columns):
        raise InputError(
            f"{name} is a broken sparse matrix: its indices do not fit its shape {matrix.shape}. "
            "Build it anew, such as by scipy.sparse.coo_array, which checks them."
        )


def row_with_repeats(matrix: csr_array) -> int | None:
    """Return the first row that has a column twice, in any order; None where none has.

    Examples
    --------
    >>> from longtail.data.csr import row_with_repeats
    >>> columns, starts = np.array([2, 1, 0, 1]), np.array([0, 1, 4])
    >>> row_with_repeats(csr_array((np.ones(4), columns, starts), shape=(2, 3)))
    1
    >>> row_with_repeats(csr_array(np.eye(3)))
    """
    if matrix.has_canonical_format:
        return None
    rows = rows_of_entries(matrix)
    order = np.lexsort((matrix.indices, rows))
    ids, rows = matrix.indices[order], rows[order]
    repeats = np.flatnonzero((np.diff(ids) == 0) & (np.diff(rows) == 0))
    return int(rows[repeats[0]]) if len(repeats) else None


def remark_on_tiny(given: Any, kept: csr_array) -> None:
    """Warn of points whose numbers all became 0 where they were made numbers of 32 bits.

    Parameters
    ----------
    given : array or sparse matrix
    kept : csr_array of float32
        The same in 32 bits, without zeros.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from longtail.data.csr import remark_on_tiny
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     remark_on_tiny(np.array([[0.0, 1.0], [1e-300, 0.0]]), csr_array([[0, 1], [0, 0]]))
    >>> str(caught[0].message).partition(" (")[2]
    'taken for zeros: scale them up): 1, first at row 1.'
    """
    is_given = csr_array(given != 0).astype(np.int32).sum(axis=1) > 0
    notes = InputNotes("features", unit="row")
    for row in np.flatnonzero(is_given & (np.diff(kept.indptr) == 0)).tolist():
        notes.add(TINY, line=row)
    notes.warn()


def fits_rows(starts: NDArray[np.integer], ids: NDArray[np.integer], n_ids: int) -> bool:
    """Tell whether a kernel may follow `starts` to `ids`, and these to `n_ids` places.

    Parameters
    ----------
    starts : int (n_rows + 1,)
        Row i has the ids ``ids[starts[i]:starts[i + 1]]``.
    ids : int (n,)
    n_ids : int

    Examples
    --------
    >>> from longtail.data.csr import fits_rows
    >>> fits_rows(np.array([0, 2, 2, 3]), np.array([0, 1, 1]), 2)
    True
    >>> fits_rows(np.array([0, 2, 4]), np.array([0, 1, 1]), 2)
    False
    """
    return bool(
        len(starts) > 0
        and starts[0] == 0
        and starts[-1] == len(ids)
        and (np.diff(starts) >= 0).all()
        and is_within(ids, 0, n_ids)
    )


def is_within(numbers: NDArray[np.integer], low: int, high: int) -> bool:
    """Tell whether all numbers are at least `low` and below `high`.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.csr import is_within
    >>> [is_within(np.array(ids, np.int32), 0, 3) for ids in ([0, 2], [0, 3], [-1], [])]
    [True, False, False, True]
    """
    return numbers.size == 0 or (int(numbers.min()) >= low and int(numbers.max()) < high)
