"""What is between the products in training a small network that ranks candidates.

Each is one pass over what the product before it has written, where functions of whole arrays take
several, each of which costs as much as the product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.exponential import fast_exp
from longtail.kernels.jit import fast_lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float32]

__all__ = ["activate", "pass_back", "pass_back_last", "score", "write_ranking_slopes"]

_LOWEST = np.float32(-1e30)  # a logit of no label at all, of which e^x is 0


@fast_lean_kernel
def activate(units: Floats, biases: Floats, drawn: Floats, dropout: float) -> None:
    """Add biases, cut what is negative, and drop units of whole points: ReLU and dropout.

    Parameters
    ----------
    units : float32 (n * size, n_units)
        Changed in place.
    biases : float32 (n, n_units)
        Of all of a point's candidates.
    drawn : float32 (n, n_units)
        Uniform from 0 to 1; a unit with less than `dropout` is dropped for all of a point's
        candidates.
    dropout : float
        Below 1; what is kept is divided by what that leaves.
    """
    least, factor = np.float32(dropout), np.float32(1 / (1 - dropout))
    n = biases.shape[0]
    size = units.shape[0] // max(n, 1)
    for row in range(n * size):
        point = row // size
        for unit in range(units.shape[1]):
            value = units[row, unit] + biases[point, unit]
            is_kept = (value > np.float32(0)) & (drawn[point, unit] >= least)
            units[row, unit] = value * factor if is_kept else np.float32(0)


@fast_lean_kernel
def score(units: Floats, last: Floats, logits: Floats) -> None:
    """Write the product of each row of units with the last weights.

    Parameters
    ----------
    units : float32 (n_rows, n_units)
    last : float32 (n_units,)
    logits : float32 (n_rows,)
        Written.
    """
    for row in range(units.shape[0]):
        total = np.float32(0)
        for unit in range(units.shape[1]):
            total += units[row, unit] * last[unit]
        logits[row] = total


@fast_lean_kernel
def write_ranking_slopes(
    logits: Floats, is_true: Flags, log_counts: Floats, slopes: Floats
) -> None:
    """Write the slopes of the decoupled softmax of some points.

    With Z the sum of e^z over a point's false candidates, a true one's slope is -Z / (e^z + Z), and
    a false one's is its share of Z times the sum of those of the true ones, less their sign. All
    are divided by the square root of the number of true candidates and by the number of points.

    Parameters
    ----------
    logits : float32 (n, size)
    is_true : bool (n, size)
    log_counts : float32 (n, size)
        The logarithm of how many each false candidate stands for, -inf for padding.
    slopes : float32 (n, size)
        Written.
    """
    n, size = logits.shape
    for point in range(n):
        n_true, largest = 0, _LOWEST
        for j in range(size):
            n_true += 1 if is_true[point, j] else 0
            own = _LOWEST if is_true[point, j] else logits[point, j] + log_counts[point, j]
            slopes[point, j] = max(own, _LOWEST)
            largest = max(largest, own)
        total = np.float32(0)
        for j in range(size):
            exponent = fast_exp(slopes[point, j] - largest)
            slopes[point, j] = exponent if slopes[point, j] > _LOWEST else np.float32(0)
            total += slopes[point, j]
        of_false = largest + np.log(total) if largest > _LOWEST else _LOWEST
        weight, of_true = np.float32(1 / (n * np.sqrt(max(n_true, 1)))), np.float32(0)
        for j in range(size):
            if is_true[point, j]:
                own = weight / (np.float32(1) + fast_exp(logits[point, j] - of_false))
                slopes[point, j] = -own
        for j in range(size):
            if is_true[point, j]:
                of_true -= slopes[point, j]
        share = of_true / total if largest > _LOWEST else np.float32(0)
        for j in range(size):
            if not is_true[point, j]:
                slopes[point, j] *= share


@fast_lean_kernel
def pass_back_last(
    slopes: Floats,
    units: Floats,
    last: Floats,
    dropout: float,
    to_units: Floats,
    to_last: Floats,
    to_bias: Floats,
) -> None:
    """Pass the slopes of logits back through the last weights and what `activate` did.

    Parameters
    ----------
    slopes : float32 (n_rows,)
    units : float32 (n_rows, n_units)
        As `activate` has left them: what is positive was neither cut nor dropped.
    last : float32 (n_units,)
    dropout : float
    to_units, to_last, to_bias : float32 (n_rows, n_units), (n_units,), (n_units,)
        Written: the slopes with respect to what `activate` was given, and to the weights.
    """
    factor = np.float32(1 / (1 - dropout))
    to_last[:] = 0
    to_bias[:] = 0
    for row in range(units.shape[0]):
        slope = slopes[row]
        for unit in range(units.shape[1]):
            own = units[row, unit]
            passed = slope * last[unit] * factor if own > np.float32(0) else np.float32(0)
            to_units[row, unit] = passed
            to_last[unit] += slope * own
            to_bias[unit] += passed


@fast_lean_kernel
def pass_back(slopes: Floats, units: Floats, dropout: float, to_biases: Floats) -> None:
    """Pass the slopes of units back through what `activate` did, in place.

    Parameters
    ----------
    slopes : float32 (n * size, n_units)
        Changed in place.
    units : float32 (n * size, n_units)
        See `pass_back_last`.
    dropout : float
    to_biases : float32 (n, n_units)
        Written: the sum over a point's candidates.
    """
    factor = np.float32(1 / (1 - dropout))
    n = to_biases.shape[0]
    size = units.shape[0] // max(n, 1)
    to_biases[:] = 0
    for row in range(n * size):
        point = row // size
        for unit in range(units.shape[1]):
            is_kept = units[row, unit] > np.float32(0)
            passed = slopes[row, unit] * factor if is_kept else np.float32(0)
            slopes[row, unit] = passed
            to_biases[point, unit] += passed
