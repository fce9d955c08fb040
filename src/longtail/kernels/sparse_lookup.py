"""Inner products of one sparse point with the few weights of each of some labels.

A label has a hundred weights of which a short text meets one or two. So a small table of bytes, in
the first-level cache, says which features the text may have, and only these are looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.jit import kernel
from longtail.kernels.prefetch import prefetch_line, prefetch_row
from longtail.kernels.rows import widen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Bytes = NDArray[np.uint8]

__all__ = [
    "MarginScratch",
    "SparseRows",
    "new_margin_scratch",
    "span_of",
    "sparse_margins",
]

N_MARKS = 1 << 14  # a power of two; half of a first-level cache
_LAST_MARK = N_MARKS - 1
# Looking one entry of a point up among a label's weights costs about as much as so many weights.
_WEIGHTS_PER_LOOKUP = 16
_AHEAD = 4  # rows
_PARTS = 8
SEARCHED_TOGETHER = 8  # rows


class SparseRows(NamedTuple):
    """Sparse rows, each of ascending columns.

    ``starts`` is (n_rows + 1,) int64, ``columns`` (n_entries,) int32, and ``weights`` (n_entries,)
    float32, uint16 (the bits of float16) or int8; ``scales`` as in `longtail.kernels.rows.Rows`.
    """

    starts: NDArray[np.int64]
    columns: Ids
    weights: NDArray[Any]
    scales: Floats


class MarginScratch(NamedTuple):
    """Scratch of one thread for `sparse_margins`.

    ``marks`` (N_MARKS,) and ``dense``, which has room for each column of a point, are zeros, and so
    again afterwards. ``places`` has a row for each of `SEARCHED_TOGETHER`, of as many numbers as a
    point can have columns; the others have a number for each.
    """

    marks: Bytes
    dense: Floats
    places: NDArray[np.int64]
    firsts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    searched: NDArray[np.int64]


def new_margin_scratch(n_columns: int) -> MarginScratch:
    """Return scratch for points of so many columns."""
    places = np.zeros((SEARCHED_TOGETHER, n_columns), np.int64)
    others = (np.zeros(SEARCHED_TOGETHER, np.int64) for _ in range(3))
    return MarginScratch(
        np.zeros(N_MARKS, np.uint8), np.zeros(n_columns, np.float32), places, *others
    )


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
    scratch: MarginScratch,
    margins: Floats,
) -> None:
    """Write the inner product of a point with each of the `wanted` rows.

    A row that is not much longer than the point is read; longer ones are searched for what the
    point has, some rows together. See `MarginScratch` for `scratch`.
    """
    starts, features, weights, scales = rows
    marks, dense = scratch.marks, scratch.dense
    many, n_searched = _WEIGHTS_PER_LOOKUP * len(columns), 0
    _mark_bag(columns, values, marks, dense)
    for c in range(len(wanted)):
        if c + 2 * _AHEAD < len(wanted):
            prefetch_row(starts, wanted[c + 2 * _AHEAD])
        if c + _AHEAD < len(wanted):
            _fetch_row(features, weights, *span_of(starts, wanted[c + _AHEAD], len(features)), many)
        first, after = span_of(starts, wanted[c], len(features))
        if after - first > many:
            scratch.firsts[n_searched] = first
            scratch.sizes[n_searched] = after - first
            scratch.searched[n_searched] = c
            n_searched += 1
            if n_searched == SEARCHED_TOGETHER:
                _search_rows(columns, values, features, weights, n_searched, scratch, margins)
                n_searched = 0
            continue
        margins[c] = _read_row(features, weights, first, after, marks, dense)
    if n_searched:
        _search_rows(columns, values, features, weights, n_searched, scratch, margins)
    _unmark_bag(columns, marks, dense)
    if len(scales):
        for c in range(len(wanted)):
            margins[c] *= scales[wanted[c]]


@kernel
def _read_row(
    features: Ids, weights: NDArray[Any], first: int, after: int, marks: Bytes, dense: Floats
) -> np.float32:
    """Return the inner product of a point that is noted with a row."""
    total = np.float32(0)
    for place in range(np.uint64(first), np.uint64(after)):
        column = np.uint32(features[place])
        if marks[column & _LAST_MARK] and column < np.uint32(len(dense)):
            total += dense[column] * widen(weights[place])
    return total


@kernel
def _search_rows(
    columns: Ids,
    values: Floats,
    features: Ids,
    weights: NDArray[Any],
    n_rows: int,
    scratch: MarginScratch,
    margins: Floats,
) -> None:
    """Write the inner products of a point with the rows noted in `scratch`.

    All searches in all rows take a step before any takes the next, so their waits for memory
    overlap.
    """
    places, firsts, sizes, n_columns = scratch.places, scratch.firsts, scratch.sizes, len(columns)
    for row in range(n_rows):
        for j in range(n_columns):
            places[row, j] = firsts[row]
    longest = sizes[:n_rows].max()
    while longest > 1:
        longest -= longest // 2
        for row in range(n_rows):
            half = sizes[row] // 2
            sizes[row] -= half
            for j in range(n_columns if half else 0):
                there = np.uint64(places[row, j] + half)
                places[row, j] += half if features[there] <= columns[j] else 0
    for row in range(n_rows):
        total = np.float32(0)
        for j in range(n_columns):
            there = np.uint64(places[row, j])
            if features[there] == columns[j]:
                total += values[j] * widen(weights[there])
        margins[scratch.searched[row]] = total


@kernel
def _fetch_row(features: Ids, weights: NDArray[Any], first: int, after: int, many: int) -> None:
    """Have fetched what is looked at first of a row: all of it, or where searches of it begin."""
    size = after - first
    if size <= many:
        prefetch_row(features, first)
        prefetch_row(weights, first)
        return
    for part in range(1, _PARTS):
        prefetch_line(features, first + size * part // _PARTS)
