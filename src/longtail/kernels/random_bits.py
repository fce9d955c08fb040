"""Cheap random bits inside kernels, from a counter: the same for any number of threads."""

from __future__ import annotations

import numpy as np

from longtail.kernels.clusters import random_unit
from longtail.kernels.jit import kernel

__all__ = ["first_random", "next_random"]


@kernel
def first_random(seed: int, label: int) -> np.uint64:
    """Return a number from 1 to 2^32 - 1 that depends on the seed and the label."""
    return np.uint64(1 + random_unit(seed, label, 0) * (2**32 - 2))


@kernel
def next_random(state: np.uint64) -> np.uint64:
    """Return the next 32 random bits (Marsaglia, "Xorshift RNGs", 2003): cheap, as shuffling is."""
    state ^= (state << np.uint64(13)) & np.uint64(0xFFFFFFFF)
    state ^= state >> np.uint64(17)
    return state ^ ((state << np.uint64(5)) & np.uint64(0xFFFFFFFF))
