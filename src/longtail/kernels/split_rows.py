"""Rows of float32s whose halves lie apart: first all upper halves, then all lower ones.

An upper half is the nearest bfloat16. What only reads can do with these, which is half of the
memory traffic; what changes a number has all of its bits, in the cache lines that it had before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.half_numbers import narrow_like
from longtail.kernels.jit import fast_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["join_number", "join_rows", "round_rows", "split_number", "split_rows"]

_HALF = np.uint32(16)
_LAST_OF_LOWER = np.uint32(15)
_TIE = np.uint32(0x8000)
_LOWER = np.uint32(0xFFFF)


@fast_kernel
def split_number(number: np.float32) -> tuple[np.uint16, np.uint16]:
    """Return the upper half, rounded to the nearest, and the lower half."""
    bits = np.float32(number).view(np.uint32)
    upper = np.uint32(bits + _TIE) >> _HALF
    return np.uint16(upper), np.uint16(bits & _LOWER)


@fast_kernel
def join_number(upper: np.uint16, lower: np.uint16) -> np.float32:
    """Return the number again: the upper half was rounded up where the lower one is large."""
    low = np.uint32(lower)
    high = np.uint32(np.uint32(upper) - np.uint32(low >> _LAST_OF_LOWER))
    return np.uint32(np.uint32(high << _HALF) | low).view(np.float32)


@fast_kernel
def split_rows(
    numbers: NDArray[np.float32], halves: NDArray[np.uint16], start: int, stop: int
) -> None:
    """Split rows in place: `halves` (n, 2 * d) is the memory of `numbers` (n, d)."""
    dimension = numbers.shape[1]
    row = np.empty(dimension, np.float32)
    for i in range(start, stop):
        row[:] = numbers[i]
        for d in range(dimension):
            halves[i, d], halves[i, dimension + d] = split_number(row[d])


@fast_kernel
def join_rows(
    halves: NDArray[np.uint16], start: int, stop: int, numbers: NDArray[np.float32]
) -> None:
    """Write the numbers of rows; to where they are, or somewhere else."""
    dimension = halves.shape[1] // 2
    row = np.empty(dimension, np.float32)
    for i in range(start, stop):
        for d in range(dimension):
            row[d] = join_number(halves[i, d], halves[i, dimension + d])
        numbers[i] = row


@fast_kernel
def round_rows(
    numbers: NDArray[np.float32], start: int, stop: int, rounded: NDArray[np.uint16]
) -> None:
    """Write the bits of the nearest bfloat16s; both are (n, d)."""
    for i in range(start, stop):
        for d in range(numbers.shape[1]):
            rounded[i, d] = narrow_like(numbers[i, d], rounded[i, d])
