"""Sums of token vectors over bags, and their gradients: the two halves of every bag encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.half_numbers import widened
from longtail.kernels.instructions import LANES
from longtail.kernels.jit import fast_kernel, kernel
from longtail.kernels.lanes import sum_lanes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "count_columns",
    "keep_columns",
    "place_entries",
    "starts_of_columns",
    "sum_chosen_rows",
    "sum_entries",
    "sum_rows",
]


@fast_kernel
def sum_entries(
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    table: Any,
    first: int,
    last: int,
    total: NDArray[np.float32],
) -> None:
    """Write the sum of ``values[j] * table[columns[j]]`` over the entries j of one row.

    `table` is (n_columns, dimension), float32 or the uint16 of bfloat16's bits.
    """
    sum_lanes(columns, values, table, first, last, total)
    for d in range(len(total) // LANES * LANES, len(total)):
        rest = np.float32(0)
        for j in range(first, last):
            rest += values[j] * widened(table[columns[j], d])
        total[d] = rest


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
    for row in range(start, stop):
        sum_entries(columns, values, table, row_starts[row], row_starts[row + 1], sums[row])


@fast_kernel
def sum_chosen_rows(
    chosen: NDArray[np.int64],
    row_starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    table: Any,
    start: int,
    stop: int,
    sums: NDArray[np.float32],
) -> None:
    """Do what `sum_rows` does, where row i is ``chosen[i]`` of the matrix.

    `table` may hold the uint16 of bfloat16's bits too.
    """
    for i in range(start, stop):
        row = chosen[i]
        sum_entries(columns, values, table, row_starts[row], row_starts[row + 1], sums[i])


@kernel
def keep_columns(
    row_starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    is_kept: NDArray[np.bool_],
    kept_starts: NDArray[np.int32],
    kept_columns: NDArray[np.int32],
    kept_values: NDArray[np.float32],
) -> int:
    """Copy the entries of some columns, each row scaled to unit length, and return their number.

    Parameters
    ----------
    row_starts : int32 (n_rows + 1,)
    columns, values : int32 and float32 (nnz,)
    is_kept : bool (n_columns,)
    kept_starts : int32 (n_rows + 1,)
        Written.
    kept_columns, kept_values : int32 and float32 (nnz,)
        Written up to the number that is returned. A row of nothing but zeros is not scaled.
    """
    n_kept = 0
    for row in range(len(row_starts) - 1):
        first, square = n_kept, np.float32(0)
        kept_starts[row] = first
        for j in range(row_starts[row], row_starts[row + 1]):
            if is_kept[columns[j]]:
                kept_columns[n_kept] = columns[j]
                kept_values[n_kept] = values[j]
                square += values[j] * values[j]
                n_kept += 1
        if square > 0:
            length = np.float32(np.sqrt(square))
            for j in range(first, n_kept):
                kept_values[j] /= length
    kept_starts[len(row_starts) - 1] = n_kept
    return n_kept


@kernel
def count_columns(
    chosen: NDArray[np.int64],
    row_starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    room: NDArray[np.int32],
    touched: NDArray[np.int64],
    n_touched: int,
) -> int:
    """Count the entries of each column in some rows; return how many columns were ever met.

    Parameters
    ----------
    chosen : int64 (n,)
        Rows.
    row_starts, columns : int32 (n_rows + 1,) and (nnz,)
    room : int32 (n_columns,)
        Added to; zeros before the first rows.
    touched : int64
        Written from `n_touched` on: columns, in the order in which they are first met.
    n_touched : int
        What the count of the rows before has returned, or 0.
    """
    for row in chosen:
        for j in range(row_starts[row], row_starts[row + 1]):
            column = columns[j]
            if room[column] == 0:
                touched[n_touched] = column
                n_touched += 1
            room[column] += 1
    return n_touched


@kernel
def starts_of_columns(
    touched: NDArray[np.int64], room: NDArray[np.int32], column_starts: NDArray[np.int32]
) -> None:
    """Turn the counts of the touched columns into the places of their first entries.

    A few thousand columns of a million: nothing here takes a million steps. `column_starts` is
    int32 (n_touched + 1,) and written; `room` is left as `place_entries` needs it.
    """
    first = 0
    for t in range(len(touched)):
        column_starts[t] = first
        first += room[touched[t]]
        room[touched[t]] = column_starts[t]
    column_starts[len(touched)] = first


@kernel
def place_entries(
    chosen: NDArray[np.int64],
    row_starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    first_row: int,
    room: NDArray[np.int32],
    rows: NDArray[np.int32],
    weights: NDArray[np.float32],
) -> None:
    """Write the entries of some rows to where their columns' entries are.

    Parameters
    ----------
    chosen, row_starts, columns
        As in `count_columns`.
    values : float32 (nnz,)
    first_row : int
        What the first chosen row is called; those after it follow.
    room : int32 (n_columns,)
        Where the next entry of a column belongs.
    rows, weights : int32 and float32
        Written: the row and the value of each entry.
    """
    for i in range(len(chosen)):
        for j in range(row_starts[chosen[i]], row_starts[chosen[i] + 1]):
            place = room[columns[j]]
            rows[place], weights[place] = first_row + i, values[j]
            room[columns[j]] = place + 1
