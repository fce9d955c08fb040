"""Rows of a table as unit vectors, and a step against the gradient of those: one pass each.

With one operation after the other, the rows of a pool are read and written a dozen times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.half_numbers import narrow_like, widened
from longtail.kernels.jit import fast_kernel
from longtail.kernels.prefetch import prefetch_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["adagrad_of_units", "slopes_of_dropped", "write_dropped", "write_units"]

_AHEAD = 2  # rows of a table that are fetched while another is worked on


@fast_kernel
def _sum_row(table: Floats, place: int, text: Floats, out: Floats) -> np.float32:
    """Write the sum of a row, if there is one, and a text, if it has numbers; return its square."""
    if place < 0:
        for d in range(len(out)):
            out[d] = text[d]
    elif len(text) > 0:
        row = table[place]
        for d in range(len(out)):
            out[d] = row[d] + text[d]
    else:
        row = table[place]
        for d in range(len(out)):
            out[d] = row[d]
    square = np.float32(0)
    for d in range(len(out)):
        square += out[d] * out[d]
    return square


@fast_kernel
def _turn_back(unit: Floats, slope: Floats, length: np.float32) -> None:
    """Change the gradient by a row scaled to length 1 to that by the row as it was."""
    along, inverse = np.float32(0), np.float32(1) / length
    for d in range(len(slope)):
        along += unit[d] * slope[d]
    for d in range(len(slope)):
        slope[d] = (slope[d] - unit[d] * along) * inverse


@fast_kernel
def write_units(
    table: Floats,
    rows: NDArray[np.int64],
    texts: Floats,
    smallest: float,
    start: int,
    stop: int,
    lengths: Floats,
    units: Floats,
) -> None:
    """Write ``unit(table[rows[i]] + texts[i])``, and its length before.

    Parameters
    ----------
    table : float32 (n_rows, dimension)
    rows : int64 (n,)
        -1 where the text stands alone.
    texts : float32 (n, dimension), or (n, 0) for none
    smallest : float
        Shorter sums are taken to be so long.
    start, stop : int
        Which of the n are done.
    lengths : float32 (n,)
        Written.
    units : float32 (n, dimension)
        Written.
    """
    dimension = table.shape[1]
    total = np.empty(dimension, np.float32)
    for i in range(start, stop):
        if i + _AHEAD < stop:
            prefetch_whole(table, max(rows[i + _AHEAD], 0))
        square = _sum_row(table, rows[i], texts[i], total)
        lengths[i] = max(np.float32(np.sqrt(square)), np.float32(smallest))
        inverse, unit = np.float32(1) / lengths[i], units[i]
        for d in range(dimension):
            unit[d] = total[d] * inverse


@fast_kernel
def adagrad_of_units(
    table: Floats,
    sums: Floats,
    rows: NDArray[np.int64],
    texts: Floats,
    lengths: Floats,
    gradient: Floats,
    scale: float,
    learning_rate: float,
    epsilon: float,
    text_lengths: Floats,
    start: int,
    stop: int,
    slopes: Floats,
) -> None:
    """Step ``table[rows[i]]`` against ``scale * gradient[i]``, which is by the unit vectors.

    Parameters
    ----------
    table : float32 (n_rows, dimension)
    sums : float32 (n_rows,)
        Of Adagrad: see `longtail.kernels.optimisers.adagrad_rows`.
    rows, texts, lengths
        As `write_units` has left them.
    gradient : float32 (n, dimension)
    scale, learning_rate, epsilon : float
    text_lengths : float32 (n,)
        Of the texts before they were scaled; not read where there are none.
    start, stop : int
        Which of the n are done.
    slopes : float32 (n, dimension), or (n, 0) where there are no texts
        Written: the gradient by the texts before they were scaled. May be `texts` itself.
    """
    dimension = table.shape[1]
    unit, slope = np.empty(dimension, np.float32), np.empty(dimension, np.float32)
    for i in range(start, stop):
        if i + _AHEAD < stop:
            prefetch_whole(table, max(rows[i + _AHEAD], 0))
        row, own = rows[i], gradient[i]
        _sum_row(table, row, texts[i], unit)
        inverse, factor = np.float32(1) / lengths[i], np.float32(scale)
        for d in range(dimension):
            unit[d] *= inverse
            slope[d] = factor * own[d]
        _turn_back(unit, slope, lengths[i])
        if row >= 0:
            square = np.float32(0)
            for d in range(dimension):
                square += slope[d] * slope[d]
            sums[row] += square / np.float32(dimension)
            step = np.float32(learning_rate / (np.sqrt(sums[row]) + epsilon))
            for d in range(dimension):
                table[row, d] -= step * slope[d]
        if slopes.shape[1] > 0:
            _turn_back(texts[i], slope, text_lengths[i])
            slopes[i, :] = slope


@fast_kernel
def _drop(row: Floats, drawn: NDArray[np.uint8], n_dropped: int) -> None:
    """Leave the units out whose byte is below `n_dropped`, and make the others larger."""
    larger = np.float32(256 / (256 - n_dropped))
    for d in range(len(row)):
        row[d] *= larger if drawn[d] >= n_dropped else np.float32(0)


@fast_kernel
def write_dropped(
    rows: Floats,
    drawn: NDArray[np.uint8],
    n_dropped: int,
    smallest: float,
    start: int,
    stop: int,
    lengths: Floats,
    narrow: Any,
) -> None:
    """Leave some units of rows out, and scale what is left to length 1, in place.

    Parameters
    ----------
    rows : float32 (n, dimension)
        Changed.
    drawn : uint8 (n, dimension), or (n, 0) where none is left out
        Random bytes.
    n_dropped : int
        Units with a byte below this are left out, and the others made larger for it.
    smallest : float
        Shorter rows are taken to be so long.
    start, stop : int
        Which of the n are done.
    lengths : float32 (n,)
        Written: the lengths before.
    narrow : uint16 (n, dimension), or (n, 0) where it is not wanted
        Written: the unit rows as the bits of bfloat16s.
    """
    dimension = rows.shape[1]
    for i in range(start, stop):
        row, square = rows[i], np.float32(0)
        if drawn.shape[1] > 0:
            _drop(row, drawn[i], n_dropped)
        for d in range(dimension):
            square += row[d] * row[d]
        lengths[i] = max(np.float32(np.sqrt(square)), np.float32(smallest))
        inverse = np.float32(1) / lengths[i]
        for d in range(dimension):
            row[d] *= inverse
        if narrow.shape[1] > 0:
            out = narrow[i]
            for d in range(dimension):
                out[d] = narrow_like(row[d], out[d])


@fast_kernel
def slopes_of_dropped(
    rows: Floats,
    drawn: NDArray[np.uint8],
    n_dropped: int,
    lengths: Floats,
    gradient: Any,
    scale: float,
    start: int,
    stop: int,
) -> None:
    """Write the gradient by what `write_dropped` was given over what it made of it.

    Parameters
    ----------
    rows, drawn, n_dropped, lengths
        As `write_dropped` has left them; the rows are changed.
    gradient : float32, or the uint16 of bfloat16's bits, (n, dimension)
        By the unit rows, less the factor `scale`.
    scale : float
    start, stop : int
        Which of the n are done.
    """
    dimension = rows.shape[1]
    slope, factor = np.empty(dimension, np.float32), np.float32(scale)
    for i in range(start, stop):
        own = gradient[i]
        for d in range(dimension):
            slope[d] = factor * widened(own[d])
        row = rows[i]
        _turn_back(row, slope, lengths[i])
        if drawn.shape[1] > 0:
            _drop(slope, drawn[i], n_dropped)
        row[:] = slope
