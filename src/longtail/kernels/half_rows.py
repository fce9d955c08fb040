"""Rows of bfloat16s, half of the memory that float32s take: written by rounding.

What changes by steps is rounded at random. Rounded to the nearest, a step of less than half of the
last place would be none, however often it is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.half_numbers import narrow_like
from longtail.kernels.jit import fast_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["round_rows", "rounded_at_random"]

_HALF = np.uint32(16)


@fast_kernel
def rounded_at_random(number: np.float32, bits: np.uint32) -> np.uint16:
    """Return the bits of one of the two bfloat16s next to a number.

    The nearer it is, the likelier: on average, over `bits`, it is the number itself (stochastic
    rounding: Gupta et al., "Deep Learning with Limited Numerical Precision", ICML 2015). Of `bits`,
    the upper 16 count.
    """
    own = np.float32(number).view(np.uint32)
    return np.uint16(np.uint32(own + (bits >> _HALF)) >> _HALF)


@fast_kernel
def round_rows(
    numbers: NDArray[np.float32], start: int, stop: int, rounded: NDArray[np.uint16]
) -> None:
    """Write the bits of the nearest bfloat16s; both are (n, d)."""
    for i in range(start, stop):
        for d in range(numbers.shape[1]):
            rounded[i, d] = narrow_like(numbers[i, d], rounded[i, d])
