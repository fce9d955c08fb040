"""Rows of a table that is kept in 32, 16 or 8 bits a number, and their inner products.

Whatever the kind of storage, numbers are widened to float32 in registers; nothing is copied. A
table of float16 is held as the uint16 of its bits, since numba has no float16 on a processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import overload

from longtail.kernels.jit import fast_lean_kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["Rows", "quantise", "quantise_rows", "row_dot", "scale_of", "widen"]

_UP_BY_112 = np.float32(2.0**112)  # between the exponents' offsets of float16 and float32
_LARGEST_CODE = np.float32(127)


class Rows(NamedTuple):
    """A table of row vectors.

    ``values`` is (n_rows, d) float32, uint16 (the bits of float16) or int8. ``scales`` (n_rows,)
    float32 is what the int8 of each row are multiplied with; it has no entries for the others.
    """

    values: NDArray[Any]
    scales: Floats


def widen(value: Any) -> Any:
    """Return a stored number as float32."""
    if isinstance(value, np.uint16):
        return np.float32(value.view(np.float16))
    return np.float32(value)


@overload(widen, inline="always")  # type: ignore[untyped-decorator]  # numba has no types
def _widen_compiled(value: Any) -> Any:
    def widen_number(value: Any) -> Any:
        return np.float32(value)

    def widen_half(value: Any) -> Any:
        # The exponent is moved by a product, which gets the denormal ones right, too.
        bits = np.uint32(np.uint32(value & np.uint16(0x7FFF)) << np.uint32(13))
        magnitude = np.float32(bits.view(np.float32) * _UP_BY_112)
        sign = np.uint32(np.uint32(value & np.uint16(0x8000)) << np.uint32(16))
        return np.uint32(magnitude.view(np.uint32) | sign).view(np.float32)

    return widen_half if value == types.uint16 else widen_number


@lean_kernel
def scale_of(rows: Rows, row: int) -> np.float32:
    """Return what the stored numbers of a row are multiplied with."""
    return rows.scales[row] if len(rows.scales) else np.float32(1)


@fast_lean_kernel
def row_dot(query: Floats, rows: Rows, row: int) -> np.float32:
    """Return the inner product of `query` with one row."""
    total = np.float32(0)
    values = rows.values[row]
    for t in range(len(query)):
        total += query[t] * widen(values[t])
    return total * scale_of(rows, row)


@fast_lean_kernel
def _largest(vector: Floats) -> np.float32:
    """Return the largest size of a number; its order does not matter, so it is shared out."""
    largest = np.float32(0)
    for t in range(len(vector)):
        largest = max(largest, abs(vector[t]))
    return largest


@lean_kernel  # a fast one may divide or multiply, and rounds what lies between two codes by chance
def quantise(vector: Floats, codes: NDArray[np.int8]) -> np.float32:
    """Write the nearest multiples of a scale, -127 to 127 times, and return the scale."""
    largest = _largest(vector)
    if not largest > 0:
        codes[:] = 0
        return np.float32(0)
    inverse = _LARGEST_CODE / largest
    for t in range(len(vector)):
        codes[t] = np.int8(np.rint(vector[t] * inverse))
    return largest / _LARGEST_CODE


@lean_kernel
def quantise_rows(
    vectors: Floats, start: int, stop: int, codes: NDArray[np.int8], scales: Floats
) -> None:
    """Write the codes and the scale of each row from `start` to `stop`; see `quantise`."""
    for row in range(start, stop):
        scales[row] = quantise(vectors[row], codes[row])
