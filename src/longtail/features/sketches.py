"""Vectors of tokens to start from, read off the training data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["sketched_vectors"]


def sketched_vectors(
    features: csr_array, targets: csr_array, dimension: int, seed: int, chunk: int = 65_536
) -> NDArray[np.float32]:
    """Return unit sums, over the points of each token, of random vectors of their targets.

    By blocks of points: the sketches of all of them at once may not fit in memory.
    """
    random = np.random.default_rng(seed)
    sketches = random.standard_normal((targets.shape[1], dimension), np.float32)
    vectors = np.zeros((features.shape[1], dimension), np.float32)
    for start in range(0, features.shape[0], chunk):
        some = targets[start : start + chunk]
        of_points = some @ sketches
        of_points /= np.maximum(np.diff(some.indptr), 1)[:, None]
        vectors += features[start : start + chunk].T @ of_points
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = vectors / lengths.astype(np.float32, copy=False)
    return unit
