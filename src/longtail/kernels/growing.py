"""Arrays of which nobody knows beforehand how long they will be."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["grown"]

Scalar = TypeVar("Scalar", bound=np.generic)


@kernel
def grown(array: NDArray[Scalar], n_used: int, size: int) -> NDArray[Scalar]:
    """Return a longer array that begins with the used part of `array`."""
    longer = np.empty(size, array.dtype)
    longer[:n_used] = array[:n_used]
    return longer
