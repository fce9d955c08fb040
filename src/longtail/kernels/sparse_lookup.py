"""Inner products of one sparse point with the few weights of each of some labels.

A label has a hundred weights of which a short text meets one or two. So a small table of bytes, in
the first-level cache, says which features the text may have, and only these are looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.jit import kernel
from longtail.kernels.prefetch import prefetch_row
from longtail.kernels.rows import widen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Bytes = NDArray[np.uint8]

__all__ = ["N_MARKS", "SparseRows", "span_of", "sparse_margins"]

N_MARKS = 1 << 14  # a power of two; half of a first-level cache
_LAST_MARK = N_MARKS - 1
# Looking one entry of a point up among a label's weights costs about as much as so many weights.
_WEIGHTS_PER_LOOKUP = 16
_AHEAD = 4  # rows


class SparseRows(NamedTuple):
    """Sparse rows, each of ascending columns.

    ``starts`` is (n_rows + 1,) int64, ``columns`` (n_entries,) int32, and ``weights`` (n_entries,)
    float32, uint16 (the bits of float16) or int8; ``scales`` as in `longtail.kernels.rows.Rows`.
    """

    starts: NDArray[np.int64]
    columns: Ids
    weights: NDArray[Any]
    scales: Floats


@kernel
def span_of(starts: Any, row: int, n_entries: int) -> tuple[Any, Any]:
    """Return where the entries of a row begin and end: within bounds, whatever a file says."""
    most = np.int64(n_entries)
    first = min(max(np.int64(starts[row]), np.int64(0)), most)
    return first, min(max(np.int64(starts[row + 1]), first), most)


@kernel
def _mark_bag(columns: Ids, values: Floats, marks: Bytes, dense: Floats) -> None:
    """Note a point's columns; `dense` has room for each of them."""
    for j in range(len(columns)):
        marks[columns[j] & _LAST_MARK] = 1
        dense[columns[j]] = values[j]


@kernel
def _unmark_bag(columns: Ids, marks: Bytes, dense: Floats) -> None:
    """Take the notes of `_mark_bag` back."""
    for column in columns:
        marks[column & _LAST_MARK] = 0
        dense[column] = 0


@kernel
def sparse_margins(
    columns: Ids,
    values: Floats,
    rows: SparseRows,
    wanted: Ids,
    marks: Bytes,
    dense: Floats,
    places: NDArray[np.int64],
    margins: Floats,
) -> None:
    """Write the inner product of a point with each of the `wanted` rows.

    `marks` (N_MARKS,) and `dense`, which has room for each column of the point, are scratch: zeros,
    and so again on return. `places` is scratch of as many numbers as the point has columns.
    """
    starts, features, weights, scales = rows
    _mark_bag(columns, values, marks, dense)
    for c in range(len(wanted)):
        if c + 2 * _AHEAD < len(wanted):
            prefetch_row(starts, wanted[c + 2 * _AHEAD])
        if c + _AHEAD < len(wanted):
            coming = starts[wanted[c + _AHEAD]]
            prefetch_row(features, coming)
            prefetch_row(weights, coming)
        row = wanted[c]
        first, after = span_of(starts, row, len(features))
        total = np.float32(0)
        if after - first > _WEIGHTS_PER_LOOKUP * len(columns):
            _search_together(features, first, after - first, columns, places)
            for j in range(len(columns)):
                if features[places[j]] == columns[j]:
                    total += values[j] * widen(weights[places[j]])
        else:
            for place in range(first, after):
                column = features[place]
                if marks[column & _LAST_MARK] and 0 <= column < len(dense):
                    total += dense[column] * widen(weights[place])
        margins[c] = total * scales[row] if len(scales) else total
    _unmark_bag(columns, marks, dense)


@kernel
def _search_together(
    features: Ids, first: int, size: int, wanted: Ids, places: NDArray[np.int64]
) -> None:
    """Write the places among `size` ascending features where the wanted ones are, if anywhere.

    All searches take a step before any takes the next, so their waits for memory overlap.
    """
    for j in range(len(wanted)):
        places[j] = first
    while size > 1:
        half = size // 2
        for j in range(len(wanted)):
            places[j] += half if features[places[j] + half] <= wanted[j] else 0
        size -= half
