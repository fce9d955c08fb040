"""Sums of token vectors over bags, and their gradients: the two halves of every bag encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.kernels.jit import fast_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["sum_rows"]


@fast_kernel
def sum_rows(
    row_starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    table: NDArray[np.float32],
    start: int,
    stop: int,
    sums: NDArray[np.float32],
) -> None:
    """Write ``sums[i] = sum_j values[j] * table[columns[j]]`` over the entries j of row i.

    `table` is (n_columns, dimension) and `sums` (n_rows, dimension), both in C order.

    That is the product of a CSR matrix with a dense table, for rows `start` to `stop`. A bag is
    embedded so; and with the CSC arrays of the same bags and the gradient of the sums as the
    table, the very same loop gives the gradient of each token's vector.
    """
    dimension = table.shape[1]
    for row in range(start, stop):
        for d in range(dimension):
            sums[row, d] = 0
        for j in range(row_starts[row], row_starts[row + 1]):
            column, value = columns[j], values[j]
            for d in range(dimension):
                sums[row, d] += value * table[column, d]
