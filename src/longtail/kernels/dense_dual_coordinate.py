"""Linear support vector machines over dense vectors, one a label, by dual coordinate descent.

The algorithm of `longtail.kernels.dual_coordinate`, step for step; but rows of a few hundred
numbers are read where they lie, and their products run in vector instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.dual_coordinate import first_random, next_random, points_of_label
from longtail.kernels.exact import dot
from longtail.kernels.jit import fast_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.dual_coordinate import Problems, Stopping

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["train_dense_machines"]


@kernel
def train_dense_machines(
    vectors: Floats,
    squared_norms: Floats,
    problems: Problems,
    stopping: Stopping,
    first: int,
    last: int,
    weights: Floats,
    bias: Floats,
) -> None:
    """Train the machines of the labels `first` to `last`; see `train_machines`.

    Parameters
    ----------
    vectors : float32 (n_points, dimension)
    squared_norms : float32 (n_points,)
    problems : Problems
    stopping : Stopping
        Its `prune` is not used: nothing is gained by zeros in a dense vector.
    first, last : int
    weights, bias : float32 (n_labels, dimension), (n_labels,)
        Output, zero to begin with. A label without positives gets a bias of -1.
    """
    for label in range(first, last):
        rows, signs = points_of_label(problems, label)
        bias[label] = -1
        if len(rows):
            bias[label] = _solve(
                vectors, squared_norms, rows, signs, stopping, label, weights[label]
            )


@kernel
def _solve(
    vectors: Floats,
    squared_norms: Floats,
    rows: Ids,
    signs: Floats,
    stopping: Stopping,
    label: int,
    weights: Floats,
) -> float:
    """Leave w in `weights`, which must be zero, and return b."""
    diagonal = np.float32(0.5 / stopping.cost)
    active, n_active = np.arange(len(rows), dtype=np.int32), len(rows)
    alpha = np.zeros(len(rows), np.float32)
    bias, largest = np.float32(0), np.float32(np.inf)
    random = first_random(stopping.seed, label)
    for _ in range(stopping.max_passes):
        new_largest, new_smallest = np.float32(-np.inf), np.float32(np.inf)
        place = 0
        while place < n_active:
            random = next_random(random)
            other = place + np.int64((random * np.uint64(n_active - place)) >> np.uint64(32))
            i = active[other]
            active[other] = active[place]
            active[place] = i
            vector = vectors[rows[i]]
            margin = dot(vector, weights) + bias
            gradient = signs[i] * margin - np.float32(1) + diagonal * alpha[i]
            if alpha[i] == 0 and gradient > 0:
                if gradient > largest:  # shrink
                    n_active -= 1
                    active[place] = active[n_active]
                    active[n_active] = i
                    continue
                gradient = np.float32(0)
            place += 1
            new_largest, new_smallest = max(new_largest, gradient), min(new_smallest, gradient)
            if abs(gradient) > 1e-12:
                curvature = squared_norms[rows[i]] + np.float32(1) + diagonal
                previous = alpha[i]
                alpha[i] = max(previous - gradient / curvature, np.float32(0))
                step = (alpha[i] - previous) * signs[i]
                _add(vector, step, weights)
                bias += step
        if new_largest - new_smallest <= stopping.tolerance:
            if n_active == len(rows):
                break
            n_active, largest = len(rows), np.float32(np.inf)
        else:
            largest = new_largest if new_largest > 0 else np.float32(np.inf)
    return float(bias)


@fast_kernel
def _add(vector: Floats, step: np.float32, weights: Floats) -> None:
    """Add a multiple of a vector."""
    for d in range(len(weights)):
        weights[d] += step * vector[d]
