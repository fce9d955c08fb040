"""An example of ranked and true labels, and what makes more of them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

# Three points, five labels; label 4 has no test point.
#   point 0: true {0, 1}     predicted 1 (hit), 3, 0 (hit)
#   point 1: true {2}        predicted 0, 2 (hit), none
#   point 2: true {0, 1, 3}  predicted 4, 2, 3 (hit)
TRUTH = csr_array(np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 1, 0, 1, 0]], dtype=np.float32))
IDS = np.array([[1, 3, 0], [0, 2, -1], [4, 2, 3]])
SCORES = np.array([[0.9, 0.5, 0.4], [0.8, 0.7, -np.inf], [0.6, 0.5, 0.4]])
WEIGHTS = np.array([1.0, 2.0, 4.0, 3.0, 9.0])


def csr(true_labels, n_labels):
    lengths = [len(labels) for labels in true_labels]
    indices = np.array([label for labels in true_labels for label in labels], dtype=np.int32)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return csr_array((np.ones(len(indices)), indices, indptr), shape=(len(true_labels), n_labels))


def falling(ids):
    """Scores that keep the order of `ids`; padding last."""
    return np.where(ids < 0, -np.inf, -np.arange(ids.shape[1], dtype=float))
