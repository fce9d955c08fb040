"""Linear support vector machines over dense vectors, one a label, by dual coordinate descent.

The solver of `longtail.kernels.dual_coordinate`; but rows of a few hundred numbers are read where
they lie, and their products run in vector instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from longtail.kernels.dual_coordinate import points_of_label, solver
from longtail.kernels.exact import dot
from longtail.kernels.jit import fast_kernel, kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.kernels.dual_coordinate import Problems, Stopping

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["train_dense_machines"]


class DensePoints(NamedTuple):
    """Points as rows of a dense matrix, float32 (n_points, dimension), and their squared norms."""

    vectors: Floats
    squared_norms: Floats


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
    points = DensePoints(vectors, squared_norms)
    for label in range(first, last):
        rows, signs = points_of_label(problems, label)
        bias[label] = _solve(points, rows, signs, stopping, label, weights[label])


@fast_kernel
def _margin_of_row(points: DensePoints, row: int, weights: Floats) -> np.float32:
    """Multiply one of the points with a vector."""
    return dot(points.vectors[row], weights)


@fast_kernel
def _add_row(points: DensePoints, row: int, step: np.float32, weights: Floats) -> None:
    """Add a multiple of one of the points."""
    vector = points.vectors[row]
    for d in range(len(weights)):
        weights[d] += step * vector[d]


_solve = solver(_margin_of_row, _add_row)
