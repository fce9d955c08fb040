"""The decoupled softmax over a pool of labels: from products to a few slopes, a row at a time.

Step by step, on a whole batch at once, this is a dozen passes over a matrix that no cache holds.
Here a row of it is exponentiated, summed and sampled while it is near.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.exponential import fast_exp
from longtail.kernels.jit import fast_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["sample_slopes"]

_TINY = np.float32(1.1754943508222875e-38)  # keeps divisions and logarithms finite
_BLOCK = 8  # labels that are passed over at once where they add up to nothing worth keeping


@fast_kernel
def _exponents(products: Floats, bias: Floats, scale: np.float32, out: Floats) -> None:
    """Write ``e^(scale * (product - 1) + bias)`` for each place of a row."""
    for j in range(len(out)):
        out[j] = fast_exp(scale * products[j] + (bias[j] - scale))


@fast_kernel
def _multiply(exponents: Floats, factor: np.float32, sums: Floats) -> None:
    """Turn exponents of negatives into their slopes, in place, and add these to the sums."""
    for j in range(len(exponents)):
        exponents[j] *= factor
        sums[j] += exponents[j]


@fast_kernel
def _sum(numbers: Floats) -> np.float32:
    total = np.float32(0)
    for j in range(len(numbers)):  # by place: as an iterator, it would go one by one
        total += numbers[j]
    return total


@fast_kernel
def _sum_block(numbers: Floats, start: int) -> np.float32:
    """Return the sum of a block, whose length the compiler knows."""
    total = np.float32(0)
    for j in range(_BLOCK):
        total += numbers[start + j]
    return total


@kernel
def _sample(
    slopes: Floats,
    least: np.float32,
    carried: np.float32,
    columns: NDArray[np.int32],
    values: Floats,
    place: int,
    last: int,
) -> int:
    """Write the large slopes, and for small ones `least` wherever so much has come together.

    From `place` on, and before `last`; return the place after them.
    """
    j, n = 0, len(slopes)
    while j < n:
        if j + _BLOCK <= n:
            together = carried + _sum_block(slopes, j)
            if together < least:  # then each of them is smaller, too: none is negative
                carried = together
                j += _BLOCK
                continue
        end = min(j + _BLOCK, n)
        while j < end:
            value = slopes[j]
            if value < least:
                carried += value
                value = least if carried >= least else np.float32(0)
                carried -= value
            if value > np.float32(0) and place < last:
                columns[place], values[place] = j, value
                place += 1
            j += 1
    return place


@kernel
def sample_slopes(
    products: Floats,
    bias: Floats,
    scale: float,
    positive_starts: NDArray[np.int64],
    positive_columns: NDArray[np.int64],
    least: float,
    offsets: Floats,
    room_starts: NDArray[np.int64],
    start: int,
    stop: int,
    columns: NDArray[np.int32],
    values: Floats,
    counts: NDArray[np.int32],
    sums: Floats,
) -> float:
    """Turn the products of points and labels into a sample of slopes of the decoupled softmax.

    The logits are ``z = scale * product + bias``. With Z the sum of e^z over a point's negatives, a
    true label's slope is -Z / (e^z_p + Z), and a negative's is e^z times the sum over the true
    labels of 1 / (e^z_p + Z). All exponents are taken less `scale`, which is the largest that a
    product of unit vectors can make, and changes neither.

    Of a point's negatives, slopes of `least` and more are kept as they are. Of smaller ones, in the
    order of the labels, one is kept wherever their sum passes a multiple of `least`, and counts as
    that much: systematic sampling (Madow and Madow, "On the theory of systematic sampling", 1944),
    by which each is, on average over where the sums begin, what it was.

    Parameters
    ----------
    products : float32 (n, n_pool)
    bias : float32 (n_pool,)
    scale : float
    positive_starts : int64 (n + 1,)
    positive_columns : int64 (n_positives,)
        The places of point i's true labels are from ``positive_starts[i]`` on, each once.
    least : float
    offsets : float32 (n,)
        Where each point's sum begins, in units of `least`: uniform from 0 to 1, and below 1.
    room_starts : int64 (n + 1,)
        Point i may have ``room_starts[i + 1] - room_starts[i]`` entries.
    start, stop : int
        The rows to be done.
    columns, values : int32 and float32
        Written: the labels and slopes of these rows, one row after the other, from
        ``room_starts[start]`` on.
    counts : int32 (n,)
        Written: how many entries each of these rows has.
    sums : float32 (n_pool,)
        Added to: the slopes of these rows, before they are sampled.

    Returns
    -------
    float
        The sum of the losses ``-log(e^z_p / (e^z_p + Z))`` of these rows.
    """
    exponents, small = np.empty(len(bias), np.float32), np.float32(least)
    loss, place = 0.0, room_starts[start]
    for i in range(start, stop):
        true = positive_columns[positive_starts[i] : positive_starts[i + 1]]
        _exponents(products[i], bias, np.float32(scale), exponents)
        of_true = np.empty(len(true), np.float32)
        for t in range(len(true)):
            of_true[t] = exponents[true[t]]
        for column in true:
            exponents[column] = 0
        of_negatives, factor = _sum(exponents), np.float32(0)
        first = place
        for t in range(len(true)):
            total = max(of_true[t] + of_negatives, _TINY)
            factor += np.float32(1) / total
            columns[place], values[place] = true[t], -of_negatives / total
            sums[true[t]] += values[place]
            place += 1
            loss += np.log(total) - np.log(max(of_true[t], _TINY))
        _multiply(exponents, factor, sums)
        last = first + room_starts[i + 1] - room_starts[i]
        place = _sample(exponents, small, small * offsets[i], columns, values, place, last)
        counts[i] = place - first
    return loss
