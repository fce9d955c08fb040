"""Keys of sparse rows, by which near-identical ones are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import kernel
from longtail.kernels.random_bits import mixed_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Ids = NDArray[np.int32]
    Weights = NDArray[np.float32]

__all__ = ["keys_of_heaviest"]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # mixed bits of few numbers differ: sums seldom collide


@kernel
def _is_heavier(
    columns: Ids, weights: Weights, n_rows_with: Counts, entry: int, other: int
) -> bool:
    """Return whether an entry comes before another: see `keys_of_heaviest`."""
    column, rival = columns[entry], columns[other]
    answer = column < rival
    if weights[entry] != weights[other]:
        answer = weights[entry] > weights[other]
    elif n_rows_with[column] != n_rows_with[rival]:
        answer = n_rows_with[column] < n_rows_with[rival]
    return bool(answer)


@kernel
def keys_of_heaviest(
    row_starts: NDArray[np.int64],
    columns: Ids,
    weights: Weights,
    n_rows_with: Counts,
    n_heaviest: int,
    keys: NDArray[np.uint64],
) -> None:
    """Write for each row the sum of the mixed numbers of its heaviest columns.

    Parameters
    ----------
    row_starts : int64 (n_rows + 1,)
    columns, weights : int32, float32 (n_entries,)
    n_rows_with : int64 (n_columns,)
        How many rows have each column: of equal weights, that of the rarer is the heavier, then
        that of the lower number.
    n_heaviest : int
    keys : uint64 (n_rows,)
        Output.
    """
    heaviest = np.empty(n_heaviest + 1, np.int64)  # entries, and room for one more
    for row in range(len(keys)):
        n = 0
        for entry in range(row_starts[row], row_starts[row + 1]):
            place = n
            while place > 0:
                other = heaviest[place - 1]
                if not _is_heavier(columns, weights, n_rows_with, entry, other):
                    break
                heaviest[place] = other
                place -= 1
            heaviest[place] = entry
            n = min(n + 1, n_heaviest)
        key = np.uint64(0)
        for i in range(n):
            key += mixed_bits(np.uint64(columns[heaviest[i]] + 1) * _SPREAD)
        keys[row] = key
