"""Vectors of tokens to start from, read off the training data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["sketched_vectors"]

POINTS_AT_ONCE = 65_536  # whose sketches are held in memory together


def sketched_vectors(
    features: csr_array, targets: csr_array, dimension: int, seed: int
) -> NDArray[np.float32]:
    """Return unit sums, over the points of each token, of random vectors of their targets.

    Examples
    --------
    Tokens 0 and 1 occur with the same target, so they start alike; token 2 does not occur.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.sketches import sketched_vectors
    >>> features = csr_array(np.array([[1, 0, 0], [0, 1, 0]], np.float32))
    >>> targets = csr_array(np.ones((2, 1), np.float32))
    >>> vectors = sketched_vectors(features, targets, dimension=4, seed=0)
    >>> (vectors @ vectors[0]).round().tolist()
    [1.0, 1.0, 0.0]
    """
    random = np.random.default_rng(seed)
    sketches = random.standard_normal((targets.shape[1], dimension), np.float32)
    vectors = np.zeros((features.shape[1], dimension), np.float32)
    for start in range(0, features.shape[0], POINTS_AT_ONCE):
        some = slice(start, start + POINTS_AT_ONCE)
        own = targets[some]
        of_points = own @ sketches
        of_points /= np.maximum(np.diff(own.indptr), 1)[:, None]
        vectors += features[some].T @ of_points
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = vectors / lengths.astype(np.float32, copy=False)
    return unit
