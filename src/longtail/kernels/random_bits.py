"""Random numbers inside kernels, from a counter: the same for any number of threads."""

from __future__ import annotations

import numpy as np

from longtail.kernels.jit import fast_kernel, inner_kernel, kernel

__all__ = ["first_random", "mixed_bits", "next_random", "random_bits", "random_unit"]

# Splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MIX = np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11))
_TO_UNIT = 2.0**-53

# Wellons, "Prospecting for Hash Functions" (2018): lowbias32, less its last shift.
_STEP = np.uint32(0x9E3779B9)
_MIX1, _SHIFT1 = np.uint32(0x7FEB352D), np.uint32(16)
_MIX2, _SHIFT2 = np.uint32(0x846CA68B), np.uint32(15)


@inner_kernel
def mixed_bits(bits: np.uint64) -> np.uint64:
    """Scramble 64 bits (the output step of splitmix64)."""
    bits = (bits ^ (bits >> _SHIFTS[0])) * _FIRST_MIX
    bits = (bits ^ (bits >> _SHIFTS[1])) * _SECOND_MIX
    return bits ^ (bits >> _SHIFTS[2])


@kernel
def random_unit(seed: int, stream: int, counter: int) -> float:
    """Return number `counter` of the random stream `stream`, uniform in [0, 1).

    Examples
    --------
    >>> from longtail.kernels.random_bits import random_unit
    >>> random_unit(0, 7, 1) == random_unit(0, 7, 1) != random_unit(0, 8, 1)
    True
    """
    start = mixed_bits(mixed_bits(np.uint64(seed) + _GOLDEN_RATIO) + np.uint64(stream))
    bits = mixed_bits(start + np.uint64(counter) * _GOLDEN_RATIO)
    return np.float64(bits >> _SHIFTS[3]) * _TO_UNIT


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
