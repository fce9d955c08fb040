"""Sparse rows laid out anew, in no more memory than the result takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import lean_kernel
from longtail.kernels.rows import quantise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Flags = NDArray[np.bool_]
    Ids = NDArray[np.int32]
    Starts = NDArray[np.int64]

__all__ = [
    "count_ids",
    "keep_columns",
    "keep_weights",
    "place_rows",
    "place_weights",
    "quantise_entries",
]


@lean_kernel
def count_ids(ids: Ids, counts: Starts) -> None:
    """Add to ``counts[i]`` how often i is among the ids."""
    for i in range(len(ids)):
        counts[ids[i]] += 1


@lean_kernel
def place_rows(starts: Starts, columns: Ids, is_left: Flags, next_places: Starts, out: Ids) -> None:
    """Write the row of each entry to where its column's next one belongs: a transpose.

    Entries in columns with `is_left` are left out; `next_places` (n_columns,) ends where the next
    column begins.
    """
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            column = columns[i]
            if not is_left[column]:
                out[next_places[column]] = np.int32(row)
                next_places[column] += 1


@lean_kernel
def place_weights(
    columns: Ids, weights: Floats, is_left: Flags, next_places: Starts, out: Floats
) -> None:
    """Write the weight of each entry to where `place_rows` writes its row."""
    for i in range(len(columns)):
        column = columns[i]
        if not is_left[column]:
            out[next_places[column]] = weights[i]
            next_places[column] += 1


@lean_kernel
def keep_columns(
    starts: Starts,
    columns: Ids,
    is_kept: Flags,
    new_columns: Ids,
    kept_columns: Ids,
    kept_starts: Starts,
) -> None:
    """Write the columns of the entries that are kept, row by row, by their new ids."""
    n_kept = np.int64(0)
    kept_starts[0] = 0
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            column = columns[i]
            if is_kept[column]:
                kept_columns[n_kept] = new_columns[column]
                n_kept += 1
        kept_starts[row + 1] = n_kept


@lean_kernel
def keep_weights(columns: Ids, weights: Floats, is_kept: Flags, kept_weights: Floats) -> None:
    """Write the weight of each entry to where `keep_columns` writes its column."""
    n_kept = np.int64(0)
    for i in range(len(columns)):
        if is_kept[columns[i]]:
            kept_weights[n_kept] = weights[i]
            n_kept += 1


@lean_kernel
def quantise_entries(
    starts: Starts, weights: Floats, codes: NDArray[np.int8], scales: Floats
) -> None:
    """Write the codes and the scale of each sparse row; see `longtail.kernels.rows.quantise`."""
    for row in range(len(starts) - 1):
        own = slice(starts[row], starts[row + 1])
        scales[row] = quantise(weights[own], codes[own])
