"""Random numbers by counting: each is a hash of its place, so any thread can write any of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.kernels.half_numbers import narrow_like
from longtail.kernels.jit import fast_kernel

__all__ = ["uniform_rows"]

# SplitMix64 (Steele, Lea and Flood, OOPSLA 2014); constants typed, as uint64 and int make float.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _SHIFT1 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(30)
_MIX2, _SHIFT2 = np.uint64(0x94D049BB133111EB), np.uint64(27)
_TO_24_BITS = np.uint64(40)
_UNIT = np.float32(2.0**-24)


@fast_kernel
def uniform_rows(seed: np.uint64, largest: np.float32, start: int, stop: int, rows: Any) -> None:
    """Write numbers from ``-largest`` to ``largest``, all equally likely, into some rows.

    Parameters
    ----------
    seed : uint64
        The same seed, the same number in the same place.
    largest : float32
    start, stop : int
        Which rows are written.
    rows : float32, or uint16 for the bits of bfloat16s, (n_rows, dimension)
        Written.
    """
    dimension = rows.shape[1]
    for row in range(start, stop):
        for d in range(dimension):
            bits = seed + np.uint64(row * dimension + d) * _STEP
            bits = (bits ^ (bits >> _SHIFT1)) * _MIX1
            bits = (bits ^ (bits >> _SHIFT2)) * _MIX2
            share = np.float32(np.uint32(bits >> _TO_24_BITS)) * _UNIT
            number = (np.float32(2) * share - np.float32(1)) * largest
            rows[row, d] = narrow_like(number, rows[row, d])
