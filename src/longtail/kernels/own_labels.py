"""What labels of points say of which labels are the points' own, and the links of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.sparse_lookup import SparseRows

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["carried_back", "keep_strongest"]


@kernel
def carried_back(
    ids: Ids,
    label_starts: NDArray[np.int64],
    label_ids: Ids,
    links: SparseRows,
    may_carry: bool,
    start: int,
    stop: int,
    evidence: Floats,
) -> None:
    """Sum the links of labels that may be a point's own to those that the point carries.

    Parameters
    ----------
    ids : int32 (n, k)
        Labels that may be own, padded with -1.
    label_starts, label_ids : int64 and int32
        The labels that points carry, sorted.
    links : SparseRows
        Of each label, to the own labels of the points that carry it, sorted.
    may_carry : bool
        Whether a point may carry its own label.
    start, stop : int
        The points to look at.
    evidence : float32 (n, k)
        Written; -1 for padding and, unless they may be own, for labels that the point carries.
    """
    for i in range(start, stop):
        carried = label_ids[label_starts[i] : label_starts[i + 1]]
        for j in range(ids.shape[1]):
            label = ids[i, j]
            if label < 0 or (not may_carry and _place_of(label, carried) >= 0):
                evidence[i, j] = -1
                continue
            linked = slice(links.starts[label], links.starts[label + 1])
            others, weights = links.columns[linked], links.weights[linked]
            total = np.float32(0)
            for other in carried:
                place = _place_of(other, others)
                if place >= 0:
                    total += weights[place]
            evidence[i, j] = total


@lean_kernel
def _place_of(wanted: int, ids: Ids) -> int:
    """Return where a label is among sorted ones; -1 if it is not."""
    low, after = 0, len(ids)
    while low < after:
        middle = (low + after) // 2
        if ids[middle] < wanted:
            low = middle + 1
        else:
            after = middle
    return low if low < len(ids) and ids[low] == wanted else -1


@lean_kernel
def keep_strongest(
    starts: NDArray[np.int64],
    labels: Ids,
    weights: Floats,
    kept_starts: NDArray[np.int64],
    kept_labels: Ids,
    kept_weights: Floats,
) -> None:
    """Write as many of each row's links as there is room for: the strongest, falling.

    Of equal ones the smaller label is ahead.

    Parameters
    ----------
    starts, labels, weights : int64 (n_rows + 1,), int32 and float32
        All links.
    kept_starts : int64 (n_rows + 1,)
        Where there is room for those of each row, at most for all of them.
    kept_labels, kept_weights : int32 and float32 (kept_starts[-1],)
    """
    for row in range(len(starts) - 1):
        room = slice(kept_starts[row], kept_starts[row + 1])
        best_labels, best_weights = kept_labels[room], kept_weights[room]
        n_kept = 0
        for i in range(starts[row], starts[row + 1]):
            place = insert_sorted(best_labels, best_weights, n_kept, labels[i], weights[i])
            if place >= 0 and n_kept < len(best_labels):
                n_kept += 1
