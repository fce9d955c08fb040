"""A sort of whole numbers by their digits: no comparison, whose outcome could not be foreseen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]

__all__ = ["N_DIGITS", "sort_by_digits"]

_BITS = 8
N_DIGITS = 1 << _BITS


@lean_kernel
def _sort_by_one(numbers: Ids, n: int, shift: int, counts: Ids, out: Ids) -> None:
    """Write numbers in the order of one digit; equal ones stay in their own order."""
    counts[:] = 0
    last = N_DIGITS - 1
    for i in range(n):
        counts[(numbers[i] >> shift) & last] += 1
    first = np.int32(0)
    for digit in range(N_DIGITS):
        after = first + counts[digit]
        counts[digit] = first
        first = after
    for i in range(n):
        digit = (numbers[i] >> shift) & last
        out[counts[digit]] = numbers[i]
        counts[digit] += 1


@lean_kernel
def sort_by_digits(numbers: Ids, n: int, spare: Ids, counts: Ids) -> None:
    """Sort the first `n` numbers, ascending.

    Parameters
    ----------
    numbers : int32 (at least n,)
        None below 0.
    n : int
    spare : int32 (at least n,)
        Scratch.
    counts : int32 (N_DIGITS,)
        Scratch.
    """
    largest, shift = np.int32(0), 0
    for i in range(n):
        largest = max(largest, numbers[i])
    own, other = numbers, spare
    while shift < 32 and largest >> shift:
        _sort_by_one(own, n, shift, counts, other)
        own, other = other, own
        shift += _BITS
    if (shift // _BITS) & 1:
        for i in range(n):
            numbers[i] = spare[i]
