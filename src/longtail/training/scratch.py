"""Memory for what training reads and writes at every step."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["Scratch", "empty_tensor"]

LINE = 64  # bytes that a processor fetches at once, and that its widest instructions read


def empty_tensor(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    """Return numbers yet to be written, in main memory, from the start of a cache line on.

    Rows that begin in the middle of a line span one more, and their reads two: sums of token
    vectors would take a tenth longer. numpy asks for them, since it asks the system for large pages
    where torch does not.

    Examples
    --------
    >>> from longtail.training.scratch import empty_tensor
    >>> rows = empty_tensor((3, 5))
    >>> rows.shape, rows.data_ptr() % 64
    (torch.Size([3, 5]), 0)
    """
    size = prod(shape) * dtype.itemsize
    room = np.empty(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return torch.from_numpy(room[start : start + size]).view(dtype).view(shape)


class Scratch:
    """Tensors that each step writes anew, in memory that is asked for once.

    To ask the system for megabytes at each step costs a page fault for every 4,096 bytes.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.scratch import Scratch
    >>> scratch = Scratch()
    >>> first = scratch.tensor("logits", (2, 3), torch.float32)
    >>> scratch.tensor("logits", (3, 1), torch.float32).data_ptr() == first.data_ptr()
    True
    """

    def __init__(self) -> None:
        self._rooms: dict[str, Tensor] = {}

    def tensor(
        self, name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """Return a tensor yet to be written, in place of the last one of that name."""
        size = prod(shape) * dtype.itemsize
        if name not in self._rooms or len(self._rooms[name]) < size:
            self._rooms[name] = empty_tensor((size,), torch.uint8)
        return self._rooms[name][:size].view(dtype).view(shape)

    def array(self, name: str, size: int, dtype: torch.dtype) -> np.ndarray[Any, Any]:
        """Return the same as a flat array."""
        array: np.ndarray[Any, Any] = self.tensor(name, (size,), dtype).numpy()
        return array
