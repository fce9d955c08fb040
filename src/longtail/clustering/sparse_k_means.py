"""k-means on sparse unit rows: the children of a node of Bonsai's trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.bags import Bags
from longtail.kernels.bags import sum_rows
from longtail.kernels.jit import over_row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["sparse_k_means"]

MAX_ITERATIONS = 20
TOLERANCE = 1e-4


def sparse_k_means(
    rows: csr_array, n_clusters: int, *, random: np.random.Generator, n_threads: int
) -> NDArray[np.int32]:
    """Cluster sparse unit rows by cosine, from random rows on; a cluster may run empty.

    Parameters
    ----------
    rows : csr_array of float32 (n_rows, n_features)
        Unit rows.
    n_clusters : int
        Most clusters; there are no more than rows.
    random : Generator
        Draws the rows that are the first centres.
    n_threads : int

    Returns
    -------
    int32 (n_rows,)
        The cluster of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.clustering.sparse_k_means import sparse_k_means
    >>> angles = np.radians([0, 1, 2, 88, 89, 90])
    >>> rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    >>> random = np.random.default_rng(0)
    >>> clusters = sparse_k_means(csr_array(rows), 2, random=random, n_threads=1)
    >>> np.ptp(clusters.reshape(2, 3), axis=1).tolist()
    [0, 0]
    """
    # Only the columns in use: below the root that is what keeps dense centres small.
    used, columns = np.unique(rows.indices, return_inverse=True)
    bags = Bags(rows.indptr.astype(np.int32), columns.astype(np.int32), rows.data)
    n_clusters = min(n_clusters, rows.shape[0])
    nearest = np.full(rows.shape[0], -1, np.int32)
    chosen = random.choice(rows.shape[0], n_clusters, replace=False)
    nearest[chosen] = np.arange(n_clusters)
    previous = -np.inf
    for _ in range(MAX_ITERATIONS):
        centres = _centres(bags, nearest, len(used), n_clusters)
        nearest, cosine = _nearest(bags, centres, n_threads)
        if cosine - previous < TOLERANCE:
            break
        previous = cosine
    return nearest


def _centres(
    bags: Bags, nearest: NDArray[np.int32], n_columns: int, n_clusters: int
) -> NDArray[np.float32]:
    """Return unit sums of the rows of each cluster, (n_columns, n_clusters)."""
    cluster_of_entry = np.repeat(nearest, np.diff(bags.row_starts)).astype(np.int64)
    is_in = cluster_of_entry >= 0
    places = bags.columns[is_in].astype(np.int64) * n_clusters + cluster_of_entry[is_in]
    sums = np.bincount(places, bags.values[is_in], n_columns * n_clusters)
    centres = sums.reshape(n_columns, n_clusters).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->j", centres, centres))
    centres /= np.where(lengths == 0, np.float32(1), lengths)
    return centres


def _nearest(
    bags: Bags, centres: NDArray[np.float32], n_threads: int
) -> tuple[NDArray[np.int32], float]:
    """Return the nearest centre of each row, and the mean cosine."""
    cosines = np.empty((bags.n_rows, centres.shape[1]), np.float32)

    def multiply(start: int, stop: int) -> None:
        sum_rows(bags.row_starts, bags.columns, bags.values, centres, start, stop, cosines)

    over_row_chunks(multiply, bags.n_rows, n_threads=n_threads)
    return cosines.argmax(axis=1).astype(np.int32), float(cosines.max(axis=1).mean())
