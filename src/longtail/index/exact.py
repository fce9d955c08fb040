"""Exact search: every vector is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import InputError, require_positive
from longtail.index.biased import as_bias
from longtail.index.protocol import OUT_OF_BOUNDS, as_queries, as_vectors, without_own
from longtail.kernels.exact import exact_topk
from longtail.kernels.jit import over_row_chunks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from longtail.index.protocol import VectorIndex

__all__ = ["EXACT_BELOW", "ExactIndex", "recall_against_exact"]

EXACT_BELOW = 2_000  # vectors; scanning so few is quicker than following a graph's edges


class ExactIndex:
    """Search by computing all inner products.

    Computed by a blocked kernel of our own, not by BLAS: as fast, and one row alone gives the
    same bits as in a batch, with any number of threads.

    Parameters
    ----------
    vectors : array (n_vectors, d)
        Held as float32, without a copy where they are so already; may be a memory map.
    bias : array (n_vectors,) or None
        What is added to the inner products with each.
    n_threads : int, default 1
        Threads for a query of many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import ExactIndex
    >>> index = ExactIndex(np.eye(3, dtype=np.float32))
    >>> ids, similarities = index.query(np.array([[0.6, 0.8, 0.0]], dtype=np.float32), k=2)
    >>> ids.tolist()
    [[1, 0]]
    """

    def __init__(
        self, vectors: ArrayLike, *, bias: ArrayLike | None = None, n_threads: int = 1
    ) -> None:
        self.vectors = as_vectors(vectors)
        self.bias = as_bias(bias, len(self.vectors))
        self.n_threads = n_threads

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> ExactIndex:
        """Make the index again from `to_arrays`."""
        return cls(arrays["vectors"], bias=arrays.get("bias"))

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the ``"vectors"``, float32 (n_vectors, d), and the ``"bias"``, if there is one."""
        own: dict[str, NDArray[np.generic]] = {"vectors": self.vectors}
        return own | ({"bias": self.bias} if len(self.bias) else {})

    def query(self, queries: ArrayLike, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return ids (n, k) and inner products (n, k); see `VectorIndex.query`.

        Raises
        ------
        InputError
            If the queries have another dimension, are not finite, or `k` is below 1.
        """
        require_positive("k", k)
        matrix = as_queries(queries, self.vectors.shape[1])
        ids = np.empty((len(matrix), k), np.int32)
        similarities = np.empty((len(matrix), k), np.float32)

        def work(start: int, stop: int) -> None:
            exact_topk(matrix, self.vectors, self.bias, start, stop, ids, similarities)

        over_row_chunks(work, len(matrix), n_threads=self.n_threads, chunk=128)
        # What is no number is never among the best: then there are too few. That is seen sooner
        # than all vectors are read.
        n_best = min(k, len(self.vectors))
        if (ids[:, :n_best] < 0).any() or not np.isfinite(similarities[:, :n_best]).all():
            raise InputError(f"The vectors of the index hold {OUT_OF_BOUNDS}")
        return ids, similarities

    def near_rows(self, n_near: int) -> NDArray[np.int32]:
        """See `VectorIndex.near_rows`.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.index import ExactIndex
        >>> rows = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
        >>> ExactIndex(rows).near_rows(1).tolist()
        [[1], [0], [1]]
        """
        n_rows = len(self.vectors)
        unbiased = ExactIndex(self.vectors, n_threads=self.n_threads)
        near, _ = unbiased.query(self.vectors, min(n_near + 1, n_rows))
        return without_own(near, near, np.arange(n_rows))


def recall_against_exact(
    index: VectorIndex, exact: ExactIndex, queries: ArrayLike, k: int
) -> float:
    """Return the mean part of the k best rows that `index` finds.

    A row counts as found if it is at least as similar as the exact k-th best (less 1e-6 for
    rounding), so that of equal vectors any will do.

    Parameters
    ----------
    index : VectorIndex
    exact : ExactIndex
        Over the same vectors.
    queries : array (n, d)
    k : int

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import ExactIndex, recall_against_exact
    >>> exact = ExactIndex(np.eye(3, dtype=np.float32))
    >>> recall_against_exact(exact, exact, np.eye(3, dtype=np.float32), k=2)
    1.0
    """
    _, best = exact.query(queries, k)
    ids, found = index.query(np.asarray(queries, dtype=np.float32), k)
    exists = np.isfinite(best)
    worst = np.where(exists, best, np.inf).min(axis=1, keepdims=True)
    is_hit = (ids >= 0) & (found >= worst - 1e-6)
    return float(is_hit.sum() / max(exists.sum(), 1))
