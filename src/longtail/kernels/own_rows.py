"""For each of some vectors, the nearest among rows that belong to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import fast_lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["nearest_own_rows"]


@fast_lean_kernel
def nearest_own_rows(
    vectors: Floats,
    starts: NDArray[np.int64],
    own: Ids,
    rows: Floats,
    n_most: int,
    nearest: Ids,
) -> None:
    """Write the one of its own rows that is nearest to each vector, by inner product.

    Parameters
    ----------
    vectors : float32 (n, d)
    starts, own : int64 (n + 1,), int32
        The rows of vector i are ``own[starts[i]:starts[i + 1]]``.
    rows : float32 (n_rows, d)
    n_most : int
        Of each vector, the first so many are looked at.
    nearest : int32 (n,)
        Written: the first of equally near rows; -1 where there are none.
    """
    for i in range(len(vectors)):
        best, nearest[i] = np.float32(-np.inf), -1
        for place in range(starts[i], min(starts[i + 1], starts[i] + n_most)):
            product = np.float32(0)
            for t in range(vectors.shape[1]):
                product += vectors[i, t] * rows[own[place], t]
            if product > best:
                best, nearest[i] = product, own[place]
