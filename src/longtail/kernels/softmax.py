"""The decoupled softmax over a pool of labels: from logits to slopes in one pass over each row.

Step by step, on a whole batch at once, this is a dozen passes over a matrix that no cache holds.
Here a row of it is exponentiated, summed and scaled while it is near.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types
from numba.extending import overload

from longtail.kernels.exponential import fast_exp
from longtail.kernels.jit import fast_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["decoupled_slopes"]

_TINY = np.float32(1.1754943508222875e-38)  # keeps divisions and logarithms finite


def _widen_brain(value: Any) -> Any:
    """Return a stored number as float32; an uint16 is the bits of a bfloat16."""
    if isinstance(value, np.uint16):
        return np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)
    return np.float32(value)


@overload(_widen_brain, inline="always")  # type: ignore[untyped-decorator]  # numba has no types
def _widen_brain_compiled(value: Any) -> Any:
    def widen_number(value: Any) -> Any:
        return np.float32(value)

    def widen_bits(value: Any) -> Any:
        return np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)

    return widen_bits if value == types.uint16 else widen_number


def _narrow_like(value: Any, stored: Any) -> Any:
    """Return a float32 as the kind of number that `stored` is; ties are rounded to even."""
    if isinstance(stored, np.uint16):
        bits = np.float32(value).view(np.uint32)
        return np.uint16((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16)
    return np.float32(value)


@overload(_narrow_like, inline="always")  # type: ignore[untyped-decorator]
def _narrow_like_compiled(value: Any, stored: Any) -> Any:  # noqa: ARG001 - their types matter
    def keep(value: Any, stored: Any) -> Any:  # noqa: ARG001 - taken by both
        return value

    def upper_half(value: Any, stored: Any) -> Any:  # noqa: ARG001
        bits = np.float32(value).view(np.uint32)
        even = np.uint32((bits >> np.uint32(16)) & np.uint32(1))
        return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + even) >> np.uint32(16))

    return upper_half if stored == types.uint16 else keep


@fast_kernel
def _exponents(products: Any, bias: Floats, scale: np.float32, out: Floats) -> None:
    """Write ``e^(scale * (product - 1) + bias)`` for each place of a row."""
    for j in range(len(out)):
        out[j] = fast_exp(scale * _widen_brain(products[j]) + (bias[j] - scale))


@fast_kernel
def _write_slopes(exponents: Floats, factor: np.float32, slopes: Any, sums: Floats) -> None:
    """Write a row of slopes of negatives, and add it to the sums over the rows."""
    for j in range(len(exponents)):
        slope = exponents[j] * factor
        sums[j] += slope
        slopes[j] = _narrow_like(slope, slopes[j])


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
            row[columns[t]] = _narrow_like(slope, row[columns[t]])
            loss += np.log(total) - np.log(max(of_true[t], _TINY))
    return loss
