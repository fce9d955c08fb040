"""What a node of a graph compares with its neighbours, where only some nodes get other edges.

Keys, and lists of them, are those of `longtail.kernels.nearest_codes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.best_keys import LOWEST
from longtail.kernels.byte_codes import (
    N_AT_ONCE,
    ByteCodes,
    new_queries,
    products_of_listed,
    write_query,
)
from longtail.kernels.jit import kernel
from longtail.kernels.nearest_codes import key_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]

__all__ = ["keys_of_listed"]


@kernel
def keys_of_listed(
    vectors: ByteCodes, rows: Ids, listed: Ids, start: int, stop: int, keys: Keys
) -> None:
    """Write the keys of the rows that are listed for each of some rows.

    Parameters
    ----------
    vectors : ByteCodes
    rows : int32 (n,)
    listed : int32 (n, n_listed)
        Rows, or -1.
    start, stop : int
        Which of `rows`.
    keys : int64 (n, n_listed)
        Written in the order of `listed`, `LOWEST` for each -1.
    """
    n_listed = listed.shape[1]
    query = new_queries(1, vectors.codes.shape[1])
    others, products = np.empty(n_listed, np.int32), np.empty(n_listed + N_AT_ONCE, np.int32)
    for i in range(start, stop):
        for place in range(n_listed):
            others[place] = max(listed[i, place], np.int32(0))
        write_query(vectors, rows[i], query, 0)
        products_of_listed(query, vectors, others, n_listed, products)
        for place in range(n_listed):
            other = listed[i, place]
            keys[i, place] = key_of(products[place], other) if other >= 0 else LOWEST
