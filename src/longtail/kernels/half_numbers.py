"""Numbers as kernels read and write them where they may be bfloat16, which numpy does not have.

An array of uint16 holds the bits of bfloat16s, the upper halves of float32s; any other is float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types
from numba.extending import overload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["narrow_like", "of_bfloat16", "widened"]


def of_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the numbers whose bits these are, as float32.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.kernels.half_numbers import of_bfloat16
    >>> of_bfloat16(np.array([0x3F80, 0xC000], np.uint16)).tolist()
    [1.0, -2.0]
    """
    numbers = bits.astype(np.uint32)
    numbers <<= 16
    return numbers.view(np.float32)


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
