"""Cheap random bits inside kernels, from a counter: the same for any number of threads."""

from __future__ import annotations

import numpy as np

from longtail.kernels.clusters import random_unit
from longtail.kernels.jit import fast_kernel, kernel

__all__ = ["first_random", "next_random", "random_bits"]

# Wellons, "Prospecting for Hash Functions" (2018): lowbias32, less its last shift.
_STEP = np.uint32(0x9E3779B9)
_MIX1, _SHIFT1 = np.uint32(0x7FEB352D), np.uint32(16)
_MIX2, _SHIFT2 = np.uint32(0x846CA68B), np.uint32(15)


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


@fast_kernel
def random_bits(seed: np.uint32, place: int) -> np.uint32:
    """Return 32 bits that are the same for the same seed and place, and else look random."""
    bits = np.uint32(seed + np.uint32(place) * _STEP)
    bits = np.uint32((bits ^ (bits >> _SHIFT1)) * _MIX1)
    return np.uint32((bits ^ (bits >> _SHIFT2)) * _MIX2)
