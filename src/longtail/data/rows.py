"""Rows of features, dense or sparse: checked, chosen, scaled, multiplied and cut short."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.data.csr import with_entries
from longtail.errors import InputError
from longtail.kernels.clusters import keep_largest_entries
from longtail.kernels.jit import over_row_chunks

__all__ = [
    "Rows",
    "as_rows",
    "binary",
    "evenly_spaced",
    "offsets_and_indices",
    "row_norms",
    "unit_product",
    "unit_rows",
    "unit_vectors",
]

Rows: TypeAlias = sp.csr_array | NDArray[np.float32]


def as_rows(name: str, matrix: Rows) -> Rows:
    """Bring a matrix to the one form the kernels are compiled for: float32, CSR or C order.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.rows import as_rows
    >>> twice = csr_array(([1, 2], [1, 1], [0, 2]), shape=(1, 3))  # an entry in two parts
    >>> rows = as_rows("features", twice)
    >>> rows.dtype.name, rows.nnz, rows.toarray().tolist()
    ('float32', 1, [[0.0, 3.0, 0.0]])
    """
    if sp.issparse(matrix):
        result = sp.csr_array(matrix, dtype=np.float32)
        if not result.has_canonical_format:
            result = result.copy()
            result.sum_duplicates()
        values = result.data
    else:
        values = result = np.ascontiguousarray(matrix, dtype=np.float32)
        if result.ndim != 2:
            raise InputError(f"`{name}` must be a matrix, got {result.ndim} dimension(s).")
    if not np.isfinite(values).all():
        raise InputError(f"`{name}` holds NaN or infinite values. Remove or replace them.")
    return result


def binary(labels: sp.csr_array) -> sp.csr_array:
    """Copy a label matrix as ones, without stored zeros and duplicates; the input stays as is.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.rows import binary
    >>> labels = csr_array(([0.5, 0.0], ([0, 0], [2, 1])), shape=(1, 3))  # stores a zero
    >>> binary(labels).toarray().tolist(), binary(labels).nnz
    ([[0.0, 0.0, 1.0]], 1)
    """
    result = sp.csr_array(labels, dtype=np.float32, copy=True)
    result.sum_duplicates()
    result.eliminate_zeros()
    result.data[:] = 1.0
    return result


def evenly_spaced(n_wanted: int, n_rows: int) -> NDArray[np.int64]:
    """Return so many of all rows, from all over: they may be in the order of what they are about.

    Examples
    --------
    >>> from longtail.data.rows import evenly_spaced
    >>> evenly_spaced(3, 10).tolist(), evenly_spaced(0, 10).tolist()
    ([0, 3, 6], [])
    """
    return np.arange(n_wanted) * n_rows // max(n_wanted, 1)


def row_norms(rows: Rows) -> NDArray[np.float32]:
    """Return the length of each row, whatever else is in the batch.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.rows import row_norms
    >>> row_norms(csr_array(np.array([[3, 4], [0, 0]], np.float32))).tolist()
    [5.0, 0.0]
    """
    if isinstance(rows, np.ndarray):
        squares = np.einsum("ij,ij->i", rows, rows)
    else:  # by a sparse matrix of squares, one row would take longer than an answer
        squares = np.zeros(rows.shape[0], np.float32)
        has_entries = rows.indptr[:-1] < rows.indptr[1:]
        starts = rows.indptr[:-1][has_entries]
        squares[has_entries] = np.add.reduceat(np.square(rows.data), starts)
    norms: NDArray[np.float32] = np.sqrt(squares)
    return norms


def unit_rows(rows: Rows) -> Rows:
    """Scale rows to unit length, but those of zeros; nothing is copied if all have it already.

    For training data; a prediction takes `unit_vectors`, which never depends on the other rows.

    Parameters
    ----------
    rows : float32 (n, dimension), or csr_array of float32

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.rows import unit_rows
    >>> unit_rows(csr_array([[3.0, 4.0], [0.0, 0.0]])).toarray().round(1).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    norms = row_norms(rows)
    norms[norms == 0.0] = 1.0
    if np.abs(norms - 1.0).max(initial=0.0) < 1e-6:
        return rows
    if isinstance(rows, np.ndarray):
        return rows / norms[:, np.newaxis]
    values = rows.data / np.repeat(norms, np.diff(rows.indptr))
    return sp.csr_array((values, rows.indices, rows.indptr), rows.shape)


def unit_vectors(
    vectors: NDArray[np.float32], out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Scale dense rows to unit length; rows of zeros stay so.

    Each row by itself, so that a point alone gets the numbers that it gets in a batch. `unit_rows`
    looks at all rows before it scales any.

    Parameters
    ----------
    vectors : float32 (n, dimension)
    out : float32 (n, dimension) or None
        Where to write them, such as `vectors` itself.

    Returns
    -------
    float32 (n, dimension)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.rows import unit_vectors
    >>> unit_vectors(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    # einsum sums each row in the same order however many rows there are; a norm over axis 1 too,
    # but with a temporary as large as the matrix.
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = np.divide(vectors, lengths[:, None], out=out)
    return unit


def offsets_and_indices(matrix: sp.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the index arrays in the types that the kernels are compiled for.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.rows import offsets_and_indices
    >>> offsets, indices = offsets_and_indices(csr_array([[0, 5, 7], [0, 0, 0]]))
    >>> offsets.tolist(), offsets.dtype.name, indices.tolist(), indices.dtype.name
    ([0, 2, 2], 'int64', [1, 2], 'int32')
    """
    return matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)


def unit_product(left: sp.csr_array, right: Rows, max_entries: int | None, n_threads: int) -> Rows:
    """Return ``left @ right`` with unit rows; a sparse one truncated.

    Examples
    --------
    Of a product (3, 1, 4), the two largest entries are kept.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.rows import unit_product
    >>> left = csr_array(np.ones((1, 2), np.float32))
    >>> right = csr_array(np.array([[3, 0, 4], [0, 1, 0]], np.float32))
    >>> unit_product(left, right, 2, n_threads=1).toarray().astype(float).round(1).tolist()
    [[0.6, 0.0, 0.8]]
    """
    if isinstance(right, np.ndarray):
        return unit_rows(left @ right)
    return unit_rows(truncated_product(left, right, max_entries, n_threads))


def truncated_product(
    left: sp.csr_array, right: sp.csr_array, max_entries: int | None, n_threads: int
) -> sp.csr_array:
    """Return ``left @ right`` with the largest entries of each row, by blocks, cut at once."""
    blocks: dict[int, sp.csr_array] = {}

    def multiply(start: int, stop: int) -> None:
        block = _truncated(left[start:stop] @ right, max_entries)
        block.sort_indices()
        blocks[start] = block

    # 256 rows a block: a product of frequent labels is nearly dense before it is truncated.
    over_row_chunks(multiply, left.shape[0], n_threads=n_threads, chunk=256)
    empty = sp.csr_array((0, right.shape[1]), dtype=np.float32)
    return sp.vstack([empty, *(blocks[start] for start in sorted(blocks))], format="csr")


def _truncated(rows: sp.csr_array, max_entries: int | None) -> sp.csr_array:
    """Keep the largest entries of each row."""
    if max_entries is None:
        return rows
    keep = np.zeros(rows.nnz, np.bool_)
    keep_largest_entries(rows.indptr.astype(np.int64), rows.data, max_entries, keep)
    return with_entries(rows, keep)
