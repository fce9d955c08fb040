"""Clusters of equal size: balanced 2-means, again and again, as Parabel and DeepXML have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.rows import as_rows, offsets_and_indices, row_norms, unit_rows
from longtail.errors import InputError, require_positive
from longtail.kernels.clusters import split_dense_nodes, split_sparse_nodes
from longtail.kernels.jit import over_row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.rows import Rows

__all__ = ["MAX_ITERATIONS", "TOLERANCE", "balanced_clusters", "n_halvings"]

TOLERANCE, MAX_ITERATIONS = 1e-4, 50


def balanced_clusters(
    vectors: Rows,
    n_clusters: int,
    *,
    seed: int,
    n_threads: int,
    plus_plus: bool = True,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> NDArray[np.int32]:
    """Cluster rows by cosine into equal parts: balanced 2-means, again and again.

    Each node of the tree is cut by spherical 2-means: rows are sorted by the difference of their
    cosines to the two centres, the sorted list is cut in the middle, centres become the mean
    directions of the halves, until the mean cosine gains less than `tolerance` (Prabhu et al.,
    "Parabel", WWW 2018, section 3.1). Sizes differ by at most 1. Rows of zeros, which have no
    direction, are dealt out evenly afterwards.

    Parameters
    ----------
    vectors : csr_array or ndarray, (n_rows, n_features)
        Need not have unit length; never made dense.
    n_clusters : int
        A power of two. More than there are rows leaves some clusters empty.
    seed : int
        Same seed, same clusters, whatever `n_threads` is.
    n_threads : int
        Threads to use.
    plus_plus : bool
        Choose the two first centres far apart (k-means++ on cosine distance: "2-means++");
        otherwise two random rows, as the authors of DeepXML do in their code.
    tolerance : float
        Least gain in mean cosine for which to go on.
    max_iterations : int
        Most iterations a node.

    Returns
    -------
    ndarray of int32, (n_rows,)
        Cluster numbers. Bit b, from the top, is the side taken at level b of the tree, so clusters
        2k and 2k + 1 are siblings.

    Raises
    ------
    InputError
        If `n_clusters` is not a power of two, or a value is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.clustering.balanced import balanced_clusters
    >>> vectors = np.array([[1, 0], [0, 1], [9, 1], [1, 9]], dtype=np.float32)
    >>> clusters = balanced_clusters(vectors, 2, seed=0, n_threads=1)
    >>> bool(clusters[0] == clusters[2] != clusters[1] == clusters[3])
    True
    """
    require_positive("n_clusters", n_clusters)
    require_positive("max_iterations", max_iterations)
    require_positive("n_threads", n_threads)
    if n_clusters & (n_clusters - 1):
        raise InputError(
            f"n_clusters must be a power of two, got {n_clusters}. "
            "`n_meta_labels(n_labels, requested)` chooses one."
        )
    rows = as_rows("vectors", vectors)
    has_direction = row_norms(rows) > 0.0
    order = np.flatnonzero(has_direction).astype(np.int32)
    units, settings = unit_rows(rows), (seed, plus_plus, tolerance, max_iterations)
    bounds = np.array([0, len(order)])
    while len(bounds) <= n_clusters:
        _split_level(units, order, bounds, settings, n_threads)
        bounds = _halved(bounds)
    clusters = np.empty(rows.shape[0], np.int32)
    clusters[order] = np.repeat(np.arange(n_clusters, dtype=np.int32), np.diff(bounds))
    smallest_first = np.argsort(np.diff(bounds), kind="stable").astype(np.int32)
    clusters[~has_direction] = np.resize(smallest_first, int(np.sum(~has_direction)))
    return clusters


def n_halvings(n_rows: int, most: int) -> int:
    """Return how often rows are halved until no cluster has more than `most` of them.

    Examples
    --------
    >>> from longtail.clustering.balanced import n_halvings
    >>> n_halvings(100, most=100), n_halvings(101, most=100), n_halvings(1_000, most=100)
    (0, 1, 4)
    """
    n_clusters = -(-n_rows // int(most))
    return max(n_clusters - 1, 0).bit_length()


def _split_level(
    rows: Rows,
    order: NDArray[np.int32],
    bounds: NDArray[np.int64],
    settings: tuple[int, bool, float, int],
    n_threads: int,
) -> None:
    """Cut all nodes of a level; threads take several nodes at a time, with one workspace."""
    n_nodes = len(bounds) - 1

    # The number of nodes doubles from level to level: it serves as the first random stream.
    def split(first: int, last: int) -> None:
        if isinstance(rows, np.ndarray):
            split_dense_nodes(rows, order, bounds, first, last, n_nodes, *settings)
        else:
            matrix = (*offsets_and_indices(rows), rows.data, rows.shape[1])
            split_sparse_nodes(*matrix, order, bounds, first, last, n_nodes, *settings)

    chunk = -(-n_nodes // (8 * n_threads))
    over_row_chunks(split, n_nodes, n_threads=n_threads, chunk=chunk)


def _halved(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Insert the middle of each node; the lower half is the larger one."""
    result = np.empty(2 * len(bounds) - 1, np.int64)
    result[::2] = bounds
    result[1::2] = (bounds[:-1] + bounds[1:] + 1) // 2
    return result
