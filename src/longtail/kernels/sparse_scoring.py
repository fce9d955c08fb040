"""The margins of sparse linear classifiers for shortlisted labels of sparse points.

A row is computed the same way whatever batch it is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import fast_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Offsets = NDArray[np.int64]

__all__ = ["sparse_label_logits", "spread_out", "sweep"]

# Looking one entry of a point up among a label's weights costs about as much as so many weights.
_WEIGHTS_PER_LOOKUP = 32


@kernel
def sparse_label_logits(
    row_starts: Ids,
    columns: Ids,
    values: Floats,
    label_starts: Offsets,
    features: Ids,
    weights: Floats,
    bias: Floats,
    labels: Ids,
    start: int,
    stop: int,
    dense: Floats,
    logits: Floats,
) -> None:
    """Write ``logits[i, j] = w_l . x_i + b_l`` for the shortlisted labels l = ``labels[i, j]``.

    Padding (-1) is left as it is. `dense` is scratch, zero and left so, with room for every
    feature that a label has a weight for.
    """
    for i in range(start, stop):
        bag_columns = columns[row_starts[i] : row_starts[i + 1]]
        bag_values = values[row_starts[i] : row_starts[i + 1]]
        spread_out(bag_columns, bag_values, dense)
        for j in range(labels.shape[1]):
            label = labels[i, j]
            if label >= 0:
                own = slice(label_starts[label], label_starts[label + 1])
                margin = _margin(bag_columns, bag_values, features[own], weights[own], dense)
                logits[i, j] = margin + bias[label]
        sweep(bag_columns, dense)


@kernel
def spread_out(columns: Ids, values: Floats, dense: Floats) -> None:
    """Write a point into a dense vector, as far as that reaches."""
    for j in range(len(columns)):
        if columns[j] < len(dense):
            dense[columns[j]] = values[j]


@kernel
def sweep(columns: Ids, dense: Floats) -> None:
    """Make what `spread_out` wrote zero again."""
    for column in columns:
        if column < len(dense):
            dense[column] = 0


@kernel
def _margin(
    columns: Ids, values: Floats, features: Ids, weights: Floats, dense: Floats
) -> np.float32:
    """Multiply a point, which is also spread out in `dense`, with one label's weights."""
    if len(features) <= _WEIGHTS_PER_LOOKUP * len(columns):
        return _walk(features, weights, dense)
    margin = np.float32(0)
    for j in range(len(columns)):
        place = np.searchsorted(features, columns[j])
        if place < len(features) and features[place] == columns[j]:
            margin += values[j] * weights[place]
    return margin


@fast_kernel
def _walk(features: Ids, weights: Floats, dense: Floats) -> np.float32:
    """Multiply a label's weights with a point that is spread out."""
    margin = np.float32(0)
    for j in range(len(features)):
        margin += weights[j] * dense[np.uint32(features[j])]
    return margin
