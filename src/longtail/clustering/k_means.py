"""Spherical k-means on dense vectors: the several representatives of a head label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from longtail.data.rows import as_rows, row_norms, unit_rows
from longtail.errors import require_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["spherical_k_means"]

ROWS_AT_ONCE = 8192  # whose cosines to all centres are held in memory together


def spherical_k_means(
    vectors: NDArray[np.float32],
    n_centres: int,
    *,
    seed: int,
    tolerance: float = 1e-4,
    max_iterations: int = 50,
) -> NDArray[np.float32]:
    """Find centres of a dense set of vectors by cosine: the representatives of a head label.

    k-means++ seeding and Lloyd's iterations on the unit sphere, until the mean cosine gains less
    than `tolerance` (Dhillon and Modha, "Concept decompositions for large sparse text data using
    clustering", 2001). An empty cluster restarts at the vector that is farthest from its own
    centre. Used as in DeepXML, appendix A.4: 300 centres for each of the most frequent labels.

    Parameters
    ----------
    vectors : ndarray, (n, D)
        Need not have unit length; rows of zeros are left out.
    n_centres : int
        Centres wanted.
    seed : int
        Seed of the random choices.
    tolerance : float
        Least gain in mean cosine for which to go on.
    max_iterations : int
        Most iterations.

    Returns
    -------
    ndarray of float32, (k, D)
        Unit rows; k is `n_centres`, or the number of rows other than zero if that is smaller.

    Raises
    ------
    InputError
        If `vectors` is not a finite matrix, or a number is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.clustering.k_means import spherical_k_means
    >>> vectors = np.array([[2, 0], [3, 0], [0, 5], [0, 1]], dtype=np.float32)
    >>> sorted(spherical_k_means(vectors, 2, seed=0).tolist())
    [[0.0, 1.0], [1.0, 0.0]]
    """
    require_positive("n_centres", n_centres)
    require_positive("max_iterations", max_iterations)
    rows = as_rows("vectors", vectors)
    rows = unit_rows(rows[row_norms(rows) > 0.0])
    if len(rows) <= n_centres:
        return rows
    random = np.random.default_rng(seed)
    centres = rows[_spread_seeds(rows, n_centres, random)]
    previous = -np.inf
    for _ in range(max_iterations):
        nearest, cosine = _nearest_centre(rows, centres)
        mean_cosine = cosine.mean(dtype=np.float64)
        if mean_cosine - previous < tolerance:
            break
        previous = mean_cosine
        centres = _mean_directions(rows, nearest, cosine, n_centres)
    return centres


def _spread_seeds(
    rows: NDArray[np.float32], n_centres: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Choose rows one by one, likelier the farther they are from those chosen (k-means++)."""
    chosen = np.empty(n_centres, np.int64)
    distance = np.ones(len(rows))
    for i in range(n_centres):
        distance[chosen[:i]] = 0.0
        cumulated = np.cumsum(distance)
        # All zero: every row equals a chosen one, and any row serves.
        draw = random.random() * cumulated[-1]
        chosen[i] = min(np.searchsorted(cumulated, draw, side="right"), len(rows) - 1)
        distance = np.clip(1.0 - rows @ rows[chosen[i]], 0.0, distance)
    return chosen


def _nearest_centre(
    rows: NDArray[np.float32], centres: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find each row's nearest centre and its cosine."""
    nearest = np.empty(len(rows), np.int64)
    cosine = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        similarity = rows[some] @ centres.T
        nearest[some] = similarity.argmax(axis=1)
        cosine[some] = similarity.max(axis=1)
    return nearest, cosine


def _mean_directions(
    rows: NDArray[np.float32],
    nearest: NDArray[np.int64],
    cosine: NDArray[np.float32],
    n_centres: int,
) -> NDArray[np.float32]:
    """Average each cluster's rows; empty clusters, or sums of zero, take the farthest rows."""
    one_hot = sp.csr_array(
        (np.ones(len(rows), np.float32), nearest, np.arange(len(rows) + 1)),
        shape=(len(rows), n_centres),
    )
    centres: NDArray[np.float32] = unit_rows(one_hot.T @ rows)
    lost = np.flatnonzero(row_norms(centres) == 0.0)
    centres[lost] = rows[np.argsort(cosine, kind="stable")[: len(lost)]]
    return centres
