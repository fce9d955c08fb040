"""Inner products of one sparse point with the weights of labels, few of which it meets.

A label has a hundred weights, a short text a dozen words. So the weights of a rare feature are kept
with the feature: they are added to the sums of its labels, whichever these are. The few features
that many labels have are kept with the labels, and looked at for those that are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.jit import lean_kernel
from longtail.kernels.packed_ids import id_at
from longtail.kernels.prefetch import prefetch_line, prefetch_pair
from longtail.kernels.sparse_lanes import add_scaled, add_to_slots, gathered_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Slots = NDArray[np.uint16]

__all__ = [
    "SparseRows",
    "SplitRows",
    "add_products",
    "add_rare_margins",
    "clear_sums",
    "common_margins",
    "span_of",
]

_AHEAD = 4  # rows
SUMS_PER_PRODUCT = 32  # looked at in a row in the time of one by its place


class SparseRows(NamedTuple):
    """Sparse rows, each of ascending columns.

    ``starts`` is (n_rows + 1,) integers, ``columns`` (n_entries,) int32 or of `pack_ids`, and
    ``weights`` (n_entries,) float32, uint16 (the bits of float16) or int8; ``scales`` as in
    `longtail.kernels.rows.Rows`.
    """

    starts: NDArray[Any]
    columns: NDArray[Any]
    weights: NDArray[Any]
    scales: Floats


class SplitRows(NamedTuple):
    """The weights of labels in two parts.

    ``rare`` are rows of features, whose columns are labels. ``common`` are rows of labels, whose
    columns count the features that many labels have; ``places``, (n_features,) of `pack_ids`, holds
    1 and more for them, and 0 for a rare feature.
    """

    rare: SparseRows
    common: SparseRows
    places: NDArray[np.uint8]


@lean_kernel
def span_of(starts: Any, row: int, n_entries: int) -> tuple[Any, Any]:
    """Return where the entries of a row begin and end: within bounds, whatever a file says."""
    most = np.int64(n_entries)
    first = min(max(np.int64(starts[row]), np.int64(0)), most)
    return first, min(max(np.int64(starts[row + 1]), first), most)


@lean_kernel
def add_products(columns: Ids, values: Floats, rows: SparseRows, sums: Floats) -> int:
    """Add what the labels of each column have of it to their sums; return how many products.

    Parameters
    ----------
    columns, values : int32, float32 (n,)
        A point.
    rows : SparseRows
        The labels of each feature.
    sums : float32 (n_labels,)
        Added to.
    """
    starts, labels, weights, scales = rows
    n_added = 0
    for j in range(len(columns)):
        if j + 2 * _AHEAD < len(columns):
            prefetch_line(starts, columns[j + 2 * _AHEAD])
        if j + _AHEAD < len(columns):
            coming = starts[columns[j + _AHEAD]]
            prefetch_pair(labels, coming)
            prefetch_pair(weights, coming)
        first, after = span_of(starts, columns[j], len(weights))
        scale = values[j] * scales[columns[j]] if len(scales) else values[j]
        n_added += after - first
        add_scaled(labels, weights, first, after, scale, sums)
    return n_added


@lean_kernel
def clear_sums(columns: Ids, rows: SparseRows, n_added: int, sums: Floats) -> None:
    """Set the sums that `add_products` added to, and may have made other than 0, to 0 again."""
    if n_added > len(sums) // SUMS_PER_PRODUCT:
        sums[:] = 0
        return
    labels, n_sums = rows.columns, np.uint32(len(sums))
    for column in columns:
        first, after = span_of(rows.starts, column, len(rows.weights))
        for place in range(np.uint64(first), np.uint64(after)):
            label = id_at(labels, place)
            if label < n_sums:
                sums[label] = 0


@lean_kernel
def common_margins(
    columns: Ids, values: Floats, rows: SplitRows, wanted: Ids, dense: Floats, margins: Floats
) -> None:
    """Write what the common features of a point add to its inner products with some labels.

    Parameters
    ----------
    columns, values : int32, float32 (n,)
        The point.
    rows : SplitRows
    wanted : int32 (n_wanted,)
        Labels.
    dense : float32 (n_common + 1,)
        Zeros, and so again on return.
    margins : float32 (n_wanted,)
        Written.
    """
    own, places, last = rows.common, rows.places, np.uint32(len(dense) - 1)
    starts, features, weights, scales = own
    for j in range(len(columns)):
        dense[min(id_at(places, columns[j]), last)] = values[j]
    dense[0] = 0  # where rare features went
    for c in range(len(wanted)):
        if c + 2 * _AHEAD < len(wanted):
            prefetch_line(starts, wanted[c + 2 * _AHEAD])
        if c + _AHEAD < len(wanted):
            coming = starts[wanted[c + _AHEAD]]
            prefetch_pair(features, coming)
            prefetch_pair(weights, coming)
        first, after = span_of(starts, wanted[c], len(weights))
        total = gathered_sum(features, weights, first, after, dense)
        margins[c] = total * (scales[wanted[c]] if len(scales) else np.float32(1))
    for column in columns:
        dense[min(id_at(places, column), last)] = 0


@lean_kernel
def add_rare_margins(
    columns: Ids, values: Floats, rare: SparseRows, wanted: Ids, slots: Slots, margins: Floats
) -> None:
    """Add what the rare features of a point add to its inner products with some labels.

    Parameters
    ----------
    columns, values : int32, float32 (n,)
        The point.
    rare : SparseRows
        The labels of each feature.
    wanted : int32 (n_wanted,)
        Distinct labels, less than 65,536 of them.
    slots : uint16 (n_labels + 2,)
        Zeros, and so again on return.
    margins : float32 (n_wanted,)
        Added to.
    """
    starts, labels, weights, scales = rare
    for c in range(len(wanted)):
        slots[wanted[c]] = c + 1
    for j in range(len(columns)):
        if j + _AHEAD < len(columns):
            coming = starts[columns[j + _AHEAD]]
            prefetch_pair(labels, coming)
            prefetch_pair(weights, coming)
        first, after = span_of(starts, columns[j], len(weights))
        scale = values[j] * scales[columns[j]] if len(scales) else values[j]
        add_to_slots(labels, weights, first, after, scale, slots, margins)
    for label in wanted:
        slots[label] = 0
