"""Label vectors that are a text plus a vector of the label's group: the way back.

The way there is `longtail.kernels.unit_rows.write_units`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import fast_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]

__all__ = ["add_up_groups", "shorten_rows"]


@fast_kernel
def add_up_groups(
    unit: Floats,
    lengths: Floats,
    slope: Floats,
    order: Ids,
    starts: Ids,
    totals: Floats,
    first: int,
    last: int,
) -> None:
    """Turn slopes of directions into those of sums, in place, and add up those of each group.

    The rows of group g are ``order[starts[g] : starts[g + 1]]``; its total is row g of `totals`.
    """
    dimension = unit.shape[1]
    for group in range(first, last):
        for d in range(dimension):
            totals[group, d] = np.float32(0)
        for place in range(starts[group], starts[group + 1]):
            row = order[place]
            along = np.float32(0)
            for d in range(dimension):
                along += unit[row, d] * slope[row, d]
            inverse = np.float32(1) / lengths[row, 0]
            for d in range(dimension):
                across = (slope[row, d] - unit[row, d] * along) * inverse
                slope[row, d] = across
                totals[group, d] += across


@fast_kernel
def shorten_rows(table: Floats, rows: Ids, longest: float, start: int, stop: int) -> None:
    """Cut ``table[rows[i]]`` to a length, where it is longer, for some i."""
    for i in range(start, stop):
        row = rows[i]
        square = np.float32(0)
        for d in range(table.shape[1]):
            square += table[row, d] * table[row, d]
        length = np.sqrt(square)
        if length > longest:
            shrink = np.float32(longest / length)
            for d in range(table.shape[1]):
                table[row, d] *= shrink
