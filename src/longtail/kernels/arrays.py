"""Arrays as kernels take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["read_only"]

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only(array: ArrayLike, dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return a read-only C-ordered view, or a copy where the type differs.

    Kernels are compiled anew for writable arrays; so all are handed over as a memory map is.
    """
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view
