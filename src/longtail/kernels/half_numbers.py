"""Numbers as kernels read and write them where they may be bfloat16, which numpy does not have.

An array of uint16 holds the bits of bfloat16s, the upper halves of float32s; any other is float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload

__all__ = ["narrow_like", "widened"]


def widened(value: Any) -> Any:
    """Return a stored number as float32."""
    if isinstance(value, np.uint16):
        return np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)
    return np.float32(value)


@overload(widened, inline="always")  # type: ignore[untyped-decorator]  # numba has no types
def _widened_compiled(value: Any) -> Any:
    def widen_number(value: Any) -> Any:
        return np.float32(value)

    def widen_bits(value: Any) -> Any:
        return np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)

    return widen_bits if value == types.uint16 else widen_number


def narrow_like(value: Any, stored: Any) -> Any:
    """Return a float32 as the kind of number that `stored` is; ties are rounded to even."""
    if isinstance(stored, np.uint16):
        bits = np.float32(value).view(np.uint32)
        return np.uint16((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16)
    return np.float32(value)


@overload(narrow_like, inline="always")  # type: ignore[untyped-decorator]
def _narrow_like_compiled(value: Any, stored: Any) -> Any:  # noqa: ARG001 - their types matter
    def keep(value: Any, stored: Any) -> Any:  # noqa: ARG001 - taken by both
        return value

    def upper_half(value: Any, stored: Any) -> Any:  # noqa: ARG001
        bits = np.float32(value).view(np.uint32)
        even = np.uint32((bits >> np.uint32(16)) & np.uint32(1))
        return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + even) >> np.uint32(16))

    return upper_half if stored == types.uint16 else keep
