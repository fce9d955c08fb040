"""Memory for what training reads and writes at every step."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

__all__ = ["Scratch", "empty_array"]

LINE = 64  # bytes that a processor fetches at once, and that its widest instructions read


def empty_array(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Return numbers yet to be written, from the start of a cache line on.

    Rows that begin in the middle of a line span one more, and their reads two: sums of token
    vectors would take a tenth longer.

    Examples
    --------
    >>> from longtail.training.scratch import empty_array
    >>> rows = empty_array((3, 5))
    >>> rows.shape, rows.ctypes.data % 64
    ((3, 5), 0)
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size].view(dtype).reshape(shape)


class Scratch:
    """Arrays that each step writes anew, in memory that is asked for once.

    To ask the system for megabytes at each step costs a page fault for every 4,096 bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.scratch import Scratch
    >>> scratch = Scratch()
    >>> first = scratch.array("logits", (2, 3), np.float32)
    >>> np.shares_memory(scratch.array("logits", (3, 1), np.float32), first)
    True
    """

    def __init__(self) -> None:
        self._rooms: dict[str, NDArray[np.uint8]] = {}

    def array(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike = np.float32
    ) -> NDArray[Any]:
        """Return an array yet to be written, in place of the last one of that name."""
        size = prod(shape) * np.dtype(dtype).itemsize
        if name not in self._rooms or len(self._rooms[name]) < size:
            self._rooms[name] = empty_array((size,), np.uint8)
        return self._rooms[name][:size].view(dtype).reshape(shape)
