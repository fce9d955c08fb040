"""The vector of one bag: its tokens' rows, weighted and added, whatever they are stored in.

Tokens may be kept in four bits a number, two to a byte as in `longtail.kernels.packed_codes`, with
a scale a row: a text has a hundred of them, whose errors are small beside their sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types
from numba.extending import overload

from longtail.kernels.half_numbers import widened
from longtail.kernels.jit import fast_lean_kernel, kernel, lean_kernel, over_row_chunks
from longtail.kernels.packed_codes import MIDDLE, level_of, packed_width, put_codes, sum_packed
from longtail.kernels.prefetch import prefetch_row
from longtail.kernels.rows import Rows, scale_of, widen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Packed = NDArray[np.uint8]
    Bits = NDArray[np.uint16]

__all__ = ["pack_with_scales", "unit_bag_vector", "unit_bag_vectors"]

_AHEAD = 4  # tokens
# How much of a row's largest number the codes reach up to: what is beyond is cut.
_REACHES = (np.float32(1), np.float32(0.85), np.float32(0.75), np.float32(0.65), np.float32(0.55))


@fast_lean_kernel
def unit_bag_vector(columns: Ids, values: Floats, tokens: Rows, point: Floats) -> bool:
    """Write the unit vector of a bag; return False where that is zero.

    Parameters
    ----------
    columns, values : int32, float32 (n,)
    tokens : Rows
        float32, float16 or int8, or uint8 (n_tokens, packed_width(d)) of `pack_with_scales`.
    point : float32 (d,)
        Written.
    """
    point[:] = 0
    _add_rows(columns, values, tokens, point)
    square = np.float32(0)
    for d in range(len(point)):
        square += point[d] * point[d]
    if not 0 < square < np.inf:  # infinite in a damaged file
        return False
    length = np.float32(np.sqrt(square))
    for d in range(len(point)):
        point[d] /= length
    return True


@kernel
def unit_bag_vectors(
    row_starts: Ids,
    columns: Ids,
    values: Floats,
    tokens: Rows,
    start: int,
    stop: int,
    points: Floats,
) -> None:
    """Write the unit vectors of bags `start` to `stop`, zero where `unit_bag_vector` has none."""
    for i in range(start, stop):
        bag = slice(row_starts[i], row_starts[i + 1])
        if not unit_bag_vector(columns[bag], values[bag], tokens, points[i]):
            points[i] = 0


def _add_rows(columns: Ids, values: Floats, tokens: Rows, point: Floats) -> None:
    """Add the rows of a bag; compiled code only."""
    raise NotImplementedError


@overload(_add_rows)  # type: ignore[untyped-decorator]  # numba has no types
def _choose(
    columns: Any,  # noqa: ARG001  # numba wants the names of what is overloaded
    values: Any,  # noqa: ARG001
    tokens: Any,
    point: Any,  # noqa: ARG001
) -> Any:
    def packed(columns: Any, values: Any, tokens: Any, point: Any) -> None:
        _add_packed(columns, values, tokens, point)

    def plain(columns: Any, values: Any, tokens: Any, point: Any) -> None:
        _add_plain(columns, values, tokens, point)

    return packed if tokens.types[0].dtype == types.uint8 else plain


@fast_lean_kernel
def _add_plain(columns: Ids, values: Floats, tokens: Rows, point: Floats) -> None:
    """Add rows of a number a place, two at a time."""
    last = len(columns) - 1
    for j in range(min(_AHEAD, len(columns))):
        prefetch_row(tokens.values, columns[j])
    for j in range(0, len(columns), 2):
        for ahead in range(j + _AHEAD, min(j + _AHEAD + 2, len(columns))):
            prefetch_row(tokens.values, columns[ahead])
        second = min(j + 1, last)
        weight0 = values[j] * scale_of(tokens, columns[j])
        weight1 = values[second] * scale_of(tokens, columns[second])
        if second == j:
            weight1 = np.float32(0)
        row0, row1 = tokens.values[columns[j]], tokens.values[columns[second]]
        for d in range(len(point)):
            point[d] += weight0 * widen(row0[d]) + weight1 * widen(row1[d])


@lean_kernel
def _add_packed(columns: Ids, values: Floats, tokens: Rows, point: Floats) -> None:
    """Write the sum of rows of two numbers a byte."""
    sum_packed(tokens.values, columns, values, tokens.scales, point)


def pack_with_scales(vectors: Floats | Bits, n_threads: int = 1) -> tuple[Packed, Floats]:
    """Return codes, uint8 (n_rows, packed_width(d)), and the scale of each row.

    A number is its code less 7.5, times the scale: the one of five that errs least.

    Parameters
    ----------
    vectors : float32, or uint16 for the bits of bfloat16s, (n_rows, d)
    n_threads : int
    """
    codes = np.zeros((len(vectors), packed_width(vectors.shape[1])), np.uint8)
    scales = np.zeros(len(vectors), np.float32)

    def work(start: int, stop: int) -> None:
        write_scaled_codes(vectors, start, stop, codes, scales)

    over_row_chunks(work, len(vectors), n_threads=n_threads)
    return codes, scales


@fast_lean_kernel
def _error(vector: Floats, scale: np.float32) -> np.float32:
    """Return the squared length of what the codes of a vector miss."""
    total, inverse = np.float32(0), np.float32(1) / scale
    for t in range(len(vector)):
        miss = (level_of(vector[t], inverse) - MIDDLE) * scale - vector[t]
        total += miss * miss
    return total


@kernel
def write_scaled_codes(vectors: Any, start: int, stop: int, codes: Packed, scales: Floats) -> None:
    """Write codes into zeros, and scales, of the rows from `start` to `stop`."""
    vector = np.empty(vectors.shape[1], np.float32)
    for row in range(start, stop):
        least = np.float32(np.inf)
        for d in range(len(vector)):
            vector[d] = widened(vectors[row, d])
        largest = np.float32(np.abs(vector).max())
        if not largest > 0:
            continue
        for reach in _REACHES:
            scale = np.float32(reach * largest / MIDDLE)
            error = _error(vector, scale)
            if error < least:
                least, scales[row] = error, scale
        put_codes(vector, np.float32(1) / scales[row], codes[row])
