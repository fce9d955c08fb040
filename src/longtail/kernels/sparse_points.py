"""Sparse points for kernels that pass over some of them many times, and the weights they learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.jit import fast_kernel, kernel
from longtail.kernels.prefetch import prefetch_pair
from longtail.kernels.sparse_lanes import gathered_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Columns = NDArray[np.uint32]
    Offsets = NDArray[np.int64]

__all__ = ["Points", "add_row", "copied", "margin_of", "margin_of_row", "take_weights"]

_AHEAD = 4  # points


class Points(NamedTuple):
    """All points, as CSR, in the types that the kernels are compiled for.

    Attributes
    ----------
    row_starts : int64 (n_points + 1,)
    columns : uint32 (nnz,)
        Each once in a row. Unsigned, because numba tests signed ones for being negative.
    values : float32 (nnz,)
    squared_norms : float32 (n_points,)
    n_features : int
    """

    row_starts: Offsets
    columns: Columns
    values: Floats
    squared_norms: Floats
    n_features: int


@kernel
def copied(points: Points, own: Ids, place_of_feature: Ids) -> tuple[Points, Ids]:
    """Copy some points side by side, with only the features that they have; return those, too.

    That is what makes the many passes fast: points and w then fit in the nearest cache.
    `place_of_feature` is scratch, -1 and left so.
    """
    n_entries = 0
    for point in own:
        n_entries += points.row_starts[point + 1] - points.row_starts[point]
    row_starts = np.zeros(len(own) + 1, np.int64)
    columns, values = np.empty(n_entries, np.uint32), np.empty(n_entries, np.float32)
    features = np.empty(min(n_entries, points.n_features) + 1, np.int32)
    n, one, n_features = np.uint64(0), np.uint64(1), 0
    for i in range(len(own)):
        if i + _AHEAD < len(own):
            coming = points.row_starts[own[i + _AHEAD]]
            prefetch_pair(points.columns, coming)
            prefetch_pair(points.values, coming)
        start, stop = points.row_starts[own[i]], points.row_starts[own[i] + 1]
        for j in range(np.uint64(start), np.uint64(stop)):
            feature = points.columns[j]
            place = place_of_feature[feature]
            # No branch: whether a feature is new cannot be guessed.
            is_new = place < 0
            features[np.uint64(n_features)] = feature
            place = np.int32(n_features) if is_new else place
            n_features += 1 if is_new else 0
            place_of_feature[feature] = place
            columns[n], values[n] = place, points.values[j]
            n += one
        row_starts[i + 1] = n
    features = features[:n_features]
    for feature in features:
        place_of_feature[np.uint32(feature)] = -1
    squared_norms = points.squared_norms[own]
    return Points(row_starts, columns, values, squared_norms, n_features), features


@fast_kernel
def margin_of(columns: Columns, values: Floats, start: int, stop: int, dense: Floats) -> np.float32:
    """Multiply a row with a dense vector."""
    total: np.float32 = gathered_sum(columns, values, start, stop, dense)
    return total


@fast_kernel
def margin_of_row(points: Points, row: int, dense: Floats) -> np.float32:
    """Multiply one of the points with a dense vector."""
    start, stop = points.row_starts[row], points.row_starts[row + 1]
    return margin_of(points.columns, points.values, start, stop, dense)


@kernel
def add_row(points: Points, row: int, step: np.float32, dense: Floats) -> None:
    """Add a multiple of one of the points to a dense vector."""
    columns, values = points.columns, points.values
    for j in range(np.uint64(points.row_starts[row]), np.uint64(points.row_starts[row + 1])):
        dense[columns[j]] += step * values[j]


@kernel
def take_weights(
    dense: Floats, features: Ids, prune: float, kept_features: Ids, kept_weights: Floats
) -> int:
    """Move the large weights of `dense` out, ascending by feature, and make it zero again."""
    n_kept = 0
    for place in range(len(dense)):
        weight = dense[place]
        dense[place] = 0
        if weight != 0 and abs(weight) >= prune:
            kept_features[n_kept], kept_weights[n_kept] = features[place], weight
            n_kept += 1
    order = np.argsort(kept_features[:n_kept])
    kept_features[:n_kept] = kept_features[:n_kept][order]
    kept_weights[:n_kept] = kept_weights[:n_kept][order]
    return n_kept
