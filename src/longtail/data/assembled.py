"""Large arrays put together by several threads: fresh memory takes longer to write than to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy.sparse import csr_array

from longtail.data.csr import MAX_IDS
from longtail.kernels.jit import over_row_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["joined", "moved_up", "rows_of", "taken"]

Scalar = TypeVar("Scalar", bound=np.generic)
ROWS_MOVED = 4096


def joined(
    parts: Sequence[NDArray[Scalar]], dtype: type[Scalar], n_threads: int
) -> NDArray[Scalar]:
    """Lay arrays end to end.

    Parameters
    ----------
    parts : sequence of arrays (n_i,)
    dtype : type
        Theirs, and that of the result if there are none.
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.assembled import joined
    >>> joined([np.array([1, 2]), np.array([3])], np.int64, n_threads=1).tolist()
    [1, 2, 3]
    """
    starts = np.cumsum([0, *map(len, parts)])
    whole = np.empty(starts[-1], dtype)

    def copy(first: int, last: int) -> None:
        for i in range(first, last):
            whole[starts[i] : starts[i + 1]] = parts[i]

    over_row_chunks(copy, len(parts), n_threads=n_threads, chunk=1)
    return whole


def rows_of(matrix: csr_array, rows: NDArray[np.int64], n_threads: int) -> csr_array:
    """Return some rows of a matrix, as ``matrix[rows]`` does; runs of neighbours are copied whole.

    Parameters
    ----------
    matrix : csr_array (n_rows, n_columns)
    rows : int64 (n,)
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.assembled import rows_of
    >>> matrix = csr_array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    >>> rows_of(matrix, np.array([2, 0]), n_threads=1).toarray().tolist()
    [[3.0, 0.0], [1.0, 0.0]]
    """
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.diff(matrix.indptr)[rows], out=starts[1:])
    columns = np.empty(starts[-1], matrix.indices.dtype)
    values = np.empty(starts[-1], matrix.data.dtype)
    is_first = np.diff(rows, prepend=-2) != 1
    bounds = np.append(np.flatnonzero(is_first), len(rows))  # of the runs

    def copy(first: int, last: int) -> None:
        for start, stop in zip(bounds[first:last], bounds[first + 1 : last + 1], strict=True):
            there = slice(starts[start], starts[stop])
            here = slice(matrix.indptr[rows[start]], matrix.indptr[rows[stop - 1] + 1])
            columns[there], values[there] = matrix.indices[here], matrix.data[here]

    n_runs = len(bounds) - 1
    over_row_chunks(copy, n_runs, n_threads=n_threads, chunk=max(1, n_runs // (4 * n_threads)))
    if starts[-1] <= MAX_IDS:  # else scipy would widen the columns
        starts = starts.astype(matrix.indptr.dtype)
    some = csr_array((values, columns, starts), (len(rows), matrix.shape[1]))
    some.has_canonical_format = matrix.has_canonical_format
    return some


def taken(
    matrix: NDArray[np.float32], rows: NDArray[np.int32], n_threads: int
) -> NDArray[np.float32]:
    """Return some rows of a matrix, as ``matrix[rows]`` does.

    Parameters
    ----------
    matrix : float32 (n_rows, d)
    rows : int32 (n,)
        None of them negative.
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.assembled import taken
    >>> rows = np.array([2, 0], np.int32)
    >>> taken(np.eye(3, dtype=np.float32), rows, n_threads=1).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    some = np.empty((len(rows), matrix.shape[1]), np.float32)

    def copy(start: int, stop: int) -> None:
        np.take(matrix, rows[start:stop], axis=0, out=some[start:stop], mode="clip")

    over_row_chunks(copy, len(rows), n_threads=n_threads, chunk=4096)
    return some


def moved_up(matrix: NDArray[np.float32], rows: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return some rows of a matrix as `taken` does, but in its own memory: it is written over.

    Of millions of rows nearly all of which are wanted, a copy would be as large as the matrix.

    Parameters
    ----------
    matrix : float32 (n_rows, d)
    rows : int32 (n,)
        Ascending, none of them twice.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.assembled import moved_up
    >>> matrix = np.eye(3, dtype=np.float32)
    >>> moved_up(matrix, np.array([0, 2], np.int32)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    in_place = np.count_nonzero(rows == np.arange(len(rows)))  # ascending, so these come first
    for start in range(in_place, len(rows), ROWS_MOVED):
        stop = min(start + ROWS_MOVED, len(rows))
        matrix[start:stop] = matrix[rows[start:stop]]  # from where nothing was written yet
    return matrix[: len(rows)]
