"""Rows of a table as unit vectors, and a step against the gradient of those: one pass each.

With one operation after the other, the rows of a pool are read and written a dozen times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.half_numbers import narrow_like, widened
from longtail.kernels.jit import fast_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["adagrad_of_units", "write_units"]


@fast_kernel
def _sum_row(row: Floats, text: Floats, out: Floats) -> np.float32:
    """Write the sum of a row and a text, which may have no numbers; return its square."""
    square = np.float32(0)
    if len(text) > 0:
        for d in range(len(out)):
            out[d] = row[d] + text[d]
            square += out[d] * out[d]
    else:
        for d in range(len(out)):
            out[d] = row[d]
            square += out[d] * out[d]
    return square


@fast_kernel
def write_units(
    table: Floats,
    rows: NDArray[np.int64],
    texts: Floats,
    smallest: float,
    start: int,
    stop: int,
    lengths: Floats,
    units: Any,
) -> None:
    """Write ``unit(table[rows[i]] + texts[i])``, and its length before.

    Parameters
    ----------
    table : float32 (n_rows, dimension)
    rows : int64 (n,)
    texts : float32 (n, dimension), or (n, 0) for none
    smallest : float
        Shorter sums are taken to be so long.
    start, stop : int
        Which of the n are done.
    lengths : float32 (n,)
        Written.
    units : float32, or the uint16 of bfloat16's bits, (n, dimension)
        Written.
    """
    dimension = table.shape[1]
    total = np.empty(dimension, np.float32)
    for i in range(start, stop):
        square = _sum_row(table[rows[i]], texts[i], total)
        lengths[i] = max(np.float32(np.sqrt(square)), np.float32(smallest))
        inverse, unit = np.float32(1) / lengths[i], units[i]
        for d in range(dimension):
            unit[d] = narrow_like(total[d] * inverse, unit[d])


@fast_kernel
def adagrad_of_units(
    table: Floats,
    sums: Floats,
    rows: NDArray[np.int64],
    texts: Floats,
    lengths: Floats,
    gradient: Any,
    scale: float,
    learning_rate: float,
    epsilon: float,
    start: int,
    stop: int,
    slopes: Floats,
) -> None:
    """Step ``table[rows[i]]`` against ``scale * gradient[i]``, which is by the unit vectors.

    Parameters
    ----------
    table, rows, texts, lengths
        As `write_units` has left them.
    sums : float32 (n_rows,)
        Of Adagrad: see `longtail.kernels.optimisers.adagrad_rows`.
    gradient : float32, or the uint16 of bfloat16's bits, (n, dimension)
    scale, learning_rate, epsilon : float
    start, stop : int
        Which of the n are done.
    slopes : float32 (n, dimension), or (n, 0) where they are not wanted
        Written: the gradient by the sums before they were scaled.
    """
    dimension = table.shape[1]
    unit, slope = np.empty(dimension, np.float32), np.empty(dimension, np.float32)
    for i in range(start, stop):
        row, own = rows[i], gradient[i]
        _sum_row(table[row], texts[i], unit)
        inverse, along = np.float32(1) / lengths[i], np.float32(0)
        factor = np.float32(scale)
        for d in range(dimension):
            unit[d] *= inverse
            slope[d] = factor * widened(own[d])
            along += unit[d] * slope[d]
        square = np.float32(0)
        for d in range(dimension):
            slope[d] = (slope[d] - unit[d] * along) * inverse
            square += slope[d] * slope[d]
        sums[row] += square / np.float32(dimension)
        step = np.float32(learning_rate / (np.sqrt(sums[row]) + epsilon))
        for d in range(dimension):
            table[row, d] -= step * slope[d]
        if slopes.shape[1] > 0:
            slopes[i, :] = slope
