"""Open-addressing tables of 64-bit keys: one that counts, one that says the column of a key.

The first has rows ``(key, payload)``. The second keeps half of a key, and is searched from where
the other half says, so that it takes an unknown key for a known one once in a few thousand million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HALF", "LOW_HALF", "NOTHING", "build_table", "column_of", "grown_table", "slot_of"]

# Numba turns uint64 mixed with a plain int into float64: every constant is typed.
HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
NOTHING = np.uint64(0)


@lean_kernel
def slot_of(table: NDArray[np.uint64], key: np.uint64) -> int:
    """Return the slot that holds `key`, or the free one where it would go."""
    mask = table.shape[0] - 1
    slot: int = np.int64(key >> HALF) & mask
    while table[slot, 0] not in (NOTHING, key):
        slot = (slot + 1) & mask
    return slot


@kernel
def grown_table(table: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the same entries in twice the slots."""
    larger = np.zeros((2 * table.shape[0], 2), np.uint64)
    for old in range(table.shape[0]):
        if table[old, 0] != NOTHING:
            slot = slot_of(larger, table[old, 0])
            larger[slot, 0] = table[old, 0]
            larger[slot, 1] = table[old, 1]
    return larger


@kernel
def build_table(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the table that maps each of the distinct `keys` to its position in them.

    It holds the low half of a key above its position, 0 where it is free, and has a power of two
    of slots, at least half as many again as keys.
    """
    n_slots = 2
    while 2 * n_slots < 3 * keys.shape[0]:
        n_slots *= 2
    mask = n_slots - 1
    table = np.zeros(n_slots, np.uint64)
    for column in range(keys.shape[0]):
        slot = np.int64(keys[column] >> HALF) & mask
        while table[slot] != NOTHING:
            slot = (slot + 1) & mask
        table[slot] = (keys[column] << HALF) | np.uint64(column)
    return table


@lean_kernel
def column_of(table: NDArray[np.uint64], key: np.uint64) -> int:
    """Return the column of a known key, or -1; see `build_table`."""
    mask = table.shape[0] - 1
    slot = np.int64(key >> HALF) & mask
    low = key & LOW_HALF
    while table[slot] != NOTHING:
        if table[slot] >> HALF == low:
            return int(np.int64(table[slot] & LOW_HALF))  # of an uint64, numba makes a float
        slot = (slot + 1) & mask
    return -1
