"""Scores of hashed labels: the mean over hashes of the scores of a label's buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["best_hashed_labels"]


@kernel
def best_hashed_labels(
    bucket_scores: NDArray[np.float32],
    bucket_of_label: NDArray[np.int32],
    start: int,
    stop: int,
    ids: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:
    """Write the places of the k labels with the greatest mean bucket score, and those means.

    Parameters
    ----------
    bucket_scores : float32 (n_hashes, n, n_buckets)
    bucket_of_label : int32 (n_hashes, n_labels)
    start, stop : int
        The points to answer.
    ids, scores : int32 and float32 (n, k)
        Out: descending, ties by smaller id, padded with -1 and -inf.
    """
    n_hashes, n_labels = bucket_of_label.shape
    totals = np.empty(n_labels, np.float32)
    for i in range(start, stop):
        totals[:] = 0
        for h in range(n_hashes):
            own, buckets = bucket_scores[h, i], bucket_of_label[h]
            for label in range(n_labels):
                totals[label] += own[buckets[label]]
        ids[i] = -1
        scores[i] = -np.inf
        size = 0
        for label in range(n_labels):
            mean = totals[label] / np.float32(n_hashes)
            if size == ids.shape[1] and mean <= scores[i, size - 1]:
                continue
            insert_sorted(ids[i], scores[i], size, label, mean)
            size = min(size + 1, ids.shape[1])
