"""Steps of row-wise optimisers on the few rows of a table that a batch has touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.bags import sum_entries
from longtail.kernels.half_numbers import widened
from longtail.kernels.half_rows import rounded_at_random
from longtail.kernels.jit import fast_kernel
from longtail.kernels.prefetch import prefetch_whole
from longtail.kernels.random_bits import random_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["adagrad_of_sums", "adagrad_rows", "adam_rows", "adamw_step"]

_AHEAD = 2  # rows: what is changed next is fetched while the gradient of this one is summed up


@fast_kernel
def adagrad_rows(
    table: NDArray[np.float32],
    sums: NDArray[np.float32],
    rows: NDArray[np.int64],
    gradient: NDArray[np.float32],
    learning_rate: float,
    epsilon: float,
    start: int,
    stop: int,
) -> None:
    """Step ``table[rows[i]]`` against ``gradient[i]``, with one running sum of squares a row."""
    dimension = table.shape[1]
    for i in range(start, stop):
        row = rows[i]
        square = np.float32(0)
        for d in range(dimension):
            square += gradient[i, d] * gradient[i, d]
        sums[row] += square / np.float32(dimension)
        step = np.float32(learning_rate / (np.sqrt(sums[row]) + epsilon))
        for d in range(dimension):
            table[row, d] -= step * gradient[i, d]


@fast_kernel
def adagrad_of_sums(
    table: NDArray[np.uint16],
    sums: NDArray[np.float32],
    rows: NDArray[np.int64],
    starts: NDArray[np.int32],
    members: NDArray[np.int32],
    weights: NDArray[np.float32],
    slopes: Any,
    learning_rate: float,
    epsilon: float,
    seed: int,
    start: int,
    stop: int,
) -> None:
    """Do what `adagrad_rows` does to rows of bfloat16s, whose gradients are summed up on the way.

    That of row ``rows[i]`` is the sum of ``weights[j] * slopes[members[j]]`` over the entries j of
    ``starts[i]``, as `longtail.kernels.bags.sum_entries` has it, and never leaves the cache:
    written out for all rows of a batch, it would be larger than what it changes.

    What a row becomes is rounded at random, by bits that follow from the seed and its place: the
    same for any number of threads, and where the last digits of sums differ.

    Parameters
    ----------
    table : uint16 (n_rows, dimension)
        Changed: the bits of bfloat16s.
    sums : float32 (n_rows,)
        Changed: Adagrad's.
    rows : int64 (n,)
    starts, members, weights
        int32 (n + 1,), int32 and float32 (nnz,): bags of slopes.
    slopes : float32, or the uint16 of bfloat16's bits, (n_slopes, dimension)
    learning_rate, epsilon : float
    seed : int
        Another one for each step.
    start, stop : int
        Which of the n are done.
    """
    dimension = slopes.shape[1]
    gradient = np.empty(dimension, np.float32)
    for i in range(start, stop):
        if i + _AHEAD < stop:
            prefetch_whole(table, rows[i + _AHEAD])
        sum_entries(members, weights, slopes, starts[i], starts[i + 1], gradient)
        square = np.float32(0)
        for d in range(dimension):
            square += gradient[d] * gradient[d]
        row = rows[i]
        sums[row] += square / np.float32(dimension)
        step = np.float32(learning_rate / (np.sqrt(sums[row]) + epsilon))
        own = random_bits(np.uint32(seed), row)
        for d in range(dimension):
            number = widened(table[row, d]) - step * gradient[d]
            table[row, d] = rounded_at_random(number, random_bits(own, d))


@fast_kernel
def adam_rows(
    table: NDArray[np.float32],
    means: NDArray[np.float32],
    squares: NDArray[np.float32],
    rows: NDArray[np.int64],
    gradient: NDArray[np.float32],
    step_size: float,
    epsilon: float,
    start: int,
    stop: int,
) -> None:
    """Step ``table[rows[i]]`` as lazy Adam does; `step_size` holds the bias corrections.

    Moments of rows that the batch did not touch stay as they are (torch's SparseAdam).
    """
    size, floor = np.float32(step_size), np.float32(epsilon)  # one float64 would make all of it so
    for i in range(start, stop):
        row = rows[i]
        for d in range(table.shape[1]):
            slope = gradient[i, d]
            means[row, d] = np.float32(0.9) * means[row, d] + np.float32(0.1) * slope
            squares[row, d] = (
                np.float32(0.999) * squares[row, d] + np.float32(0.001) * slope * slope
            )
            table[row, d] -= size * means[row, d] / (np.sqrt(squares[row, d]) + floor)


@fast_kernel
def adamw_step(
    parameters: NDArray[np.float32],
    means: NDArray[np.float32],
    squares: NDArray[np.float32],
    gradient: NDArray[np.float32],
    learning_rate: float,
    weight_decay: float,
    n_steps: int,
) -> None:
    """Step against a gradient; see `longtail.training.adamw.AdamW`.

    Parameters
    ----------
    parameters, means, squares : float32 (n,)
        Changed in place: what is trained, and the running means of gradients and their squares.
    gradient : float32 (n,)
    learning_rate, weight_decay : float
    n_steps : int
        With this one.
    """
    size = np.float32(learning_rate / (1 - 0.9**n_steps))
    kept = np.float32(1 - learning_rate * weight_decay)
    of_squares = np.float32(1 / (1 - 0.999**n_steps))
    for i in range(len(parameters)):
        means[i] += np.float32(0.1) * (gradient[i] - means[i])
        squares[i] += np.float32(0.001) * (gradient[i] * gradient[i] - squares[i])
        length = np.sqrt(squares[i] * of_squares) + np.float32(1e-8)
        parameters[i] = kept * parameters[i] - size * means[i] / length
