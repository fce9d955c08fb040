"""The decoupled softmax over a pool of labels: from logits to slopes in one pass over each row.

Step by step, on a whole batch at once, this is a dozen passes over a matrix that no cache holds.
Here a row of it is exponentiated, summed and scaled while it is near.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.exponential import fast_exp
from longtail.kernels.half_numbers import narrow_like, widened
from longtail.kernels.jit import fast_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["decoupled_slopes"]

_TINY = np.float32(1.1754943508222875e-38)  # keeps divisions and logarithms finite


@fast_kernel
def _exponents(products: Any, bias: Floats, scale: np.float32, out: Floats) -> None:
    """Write ``e^(scale * (product - 1) + bias)`` for each place of a row."""
    for j in range(len(out)):
        out[j] = fast_exp(scale * widened(products[j]) + (bias[j] - scale))


@fast_kernel
def _write_slopes(exponents: Floats, factor: np.float32, slopes: Any, sums: Floats) -> None:
    """Write a row of slopes of negatives, and add it to the sums over the rows."""
    for j in range(len(exponents)):
        slope = exponents[j] * factor
        sums[j] += slope
        slopes[j] = narrow_like(slope, slopes[j])


@fast_kernel
def _sum(numbers: Floats) -> np.float32:
    total = np.float32(0)
    for j in range(len(numbers)):  # by place: as an iterator, it would go one by one
        total += numbers[j]
    return total


@kernel
def decoupled_slopes(
    products: NDArray[Any],
    bias: Floats,
    scale: float,
    positive_starts: NDArray[np.int64],
    positive_columns: NDArray[np.int64],
    start: int,
    stop: int,
    sums: Floats,
) -> float:
    """Turn the products of points and labels into the slopes of the decoupled softmax.

    The logits are ``z = scale * product + bias``. With Z the sum of e^z over a point's negatives, a
    true label's slope is -Z / (e^z_p + Z), and a negative's is e^z times the sum over the true
    labels of 1 / (e^z_p + Z). All exponents are taken less `scale`, which is the largest that a
    product of unit vectors can make, and changes neither.

    Parameters
    ----------
    products : float32, or the uint16 of bfloat16's bits, (n, n_pool)
        Changed in place to the slopes.
    bias : float32 (n_pool,)
    scale : float
    positive_starts : int64 (n + 1,)
    positive_columns : int64 (n_positives,)
        The places of point i's true labels are from ``positive_starts[i]`` on, each once.
    start, stop : int
        The rows to be done.
    sums : float32 (n_pool,)
        Added to: the slopes of these rows, before they are rounded.

    Returns
    -------
    float
        The sum of the losses ``-log(e^z_p / (e^z_p + Z))`` of these rows.
    """
    exponents = np.empty(len(bias), np.float32)
    loss = 0.0
    for i in range(start, stop):
        row = products[i]
        columns = positive_columns[positive_starts[i] : positive_starts[i + 1]]
        _exponents(row, bias, np.float32(scale), exponents)
        of_true = np.empty(len(columns), np.float32)
        for t in range(len(columns)):
            of_true[t] = exponents[columns[t]]
        for column in columns:
            exponents[column] = 0
        of_negatives, factor = _sum(exponents), np.float32(0)
        for t in range(len(columns)):
            factor += np.float32(1) / max(of_true[t] + of_negatives, _TINY)
        _write_slopes(exponents, factor, row, sums)
        for t in range(len(columns)):
            total = max(of_true[t] + of_negatives, _TINY)
            slope = -of_negatives / total
            sums[columns[t]] += slope
            row[columns[t]] = narrow_like(slope, row[columns[t]])
            loss += np.log(total) - np.log(max(of_true[t], _TINY))
    return loss
