"""What every index offers, and the checks that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from longtail.errors import InputError
from longtail.kernels.arrays import read_only

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "LARGEST_NUMBER",
    "OUT_OF_BOUNDS",
    "VectorIndex",
    "as_queries",
    "as_vectors",
    "check_bounds",
    "without_own",
]

Number = TypeVar("Number", bound=np.integer)

LARGEST_NUMBER = 1e15  # products of two such are finite in float32, and sums of 65,536 of those
OUT_OF_BOUNDS = (
    f"NaN, infinity or numbers beyond {LARGEST_NUMBER:g}. Pass smaller ones: vectors are compared "
    "by inner products, so scale all of them alike."
)


class VectorIndex(Protocol):
    """Finds the rows of a matrix with the largest inner products with a query.

    Each row may have a bias, which is added to its inner products.
    """

    def query(
        self, queries: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the k best rows of each query.

        Parameters
        ----------
        queries : array (n, d)
        k : int

        Returns
        -------
        ids : int32 (n, k)
            Best first, ties by smaller id, padded with -1.
        similarities : float32 (n, k)
            Inner products and bias, padded with -inf. Those of a row do not depend on the other
            rows.
        """
        ...

    def near_rows(self, n_near: int) -> NDArray[np.int32]:
        """Return rows near each row, int32 (n_rows, at most n_near), padded with -1.

        Not itself, not always the nearest, in no order: as good as the index knows at once.
        """
        ...

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays from which the index is made again."""
        ...


def as_vectors(vectors: ArrayLike) -> NDArray[np.float32]:
    """Return the vectors of an index as read-only float32 (n, d), or raise InputError.

    Examples
    --------
    >>> from longtail.index.protocol import as_vectors
    >>> vectors = as_vectors([[1, 2, 2], [0, 3, 4]])
    >>> vectors.shape, vectors.dtype.name, vectors.flags.writeable
    ((2, 3), 'float32', False)
    """
    matrix = np.asarray(vectors)
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"An index needs vectors of real numbers, got {matrix.dtype}.")
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        message = f"An index needs vectors of shape (n, d) with d > 0, got {matrix.shape}."
        raise InputError(message)
    if len(matrix) > np.iinfo(np.int32).max:
        raise InputError(f"An index holds at most 2**31 - 1 vectors, got {len(matrix)}.")
    return read_only(matrix, np.float32)


def check_bounds(vectors: NDArray[np.float32]) -> None:
    """Raise InputError if vectors of an index hold what cannot be compared.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index.protocol import check_bounds
    >>> check_bounds(np.eye(2, dtype=np.float32))
    """
    if len(vectors) and not max(-vectors.min(), vectors.max()) <= LARGEST_NUMBER:  # no mask: large
        raise InputError(f"The vectors hold {OUT_OF_BOUNDS}")


def as_queries(queries: ArrayLike, n_dimensions: int) -> NDArray[np.float32]:
    """Return queries as read-only finite float32 (n, d), or raise InputError.

    Examples
    --------
    >>> from longtail.index.protocol import as_queries
    >>> queries = as_queries([[1, 2]], n_dimensions=2)
    >>> queries.tolist(), queries.dtype.name
    ([[1.0, 2.0]], 'float32')
    """
    matrix = as_vectors(queries)
    if matrix.shape[1] != n_dimensions:
        raise InputError(
            f"The queries have {matrix.shape[1]} dimensions and the index {n_dimensions}. "
            "Encode both with the same model."
        )
    fits = np.abs(matrix) <= LARGEST_NUMBER  # NaN does not
    if not fits.all():
        row = int(np.flatnonzero(~fits.all(axis=1))[0])
        raise InputError(f"Query {row} holds {OUT_OF_BOUNDS}")
    return matrix


def without_own(
    lists: NDArray[Number], rows: NDArray[np.integer], own: NDArray[np.integer]
) -> NDArray[Number]:
    """Return lists of what is near some rows, less the rows themselves.

    All lists get shorter by one: one without its own row loses its last.

    Parameters
    ----------
    lists : int (n, size)
    rows : int (n, size)
        The row that each entry stands for.
    own : int (n,)
        The row that each list is of.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index.protocol import without_own
    >>> near = np.array([[7, 4], [3, 5]])
    >>> without_own(near, near, np.array([7, 8])).tolist()
    [[4], [3]]
    """
    is_other = rows != own[:, None]
    is_other[is_other.all(axis=1), -1] = False
    others: NDArray[Number] = lists[is_other].reshape(len(lists), -1)
    return others
