"""Some rows of large bags, as a batch needs them, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.data.bags import Bags
from longtail.kernels.arrays import read_only
from longtail.kernels.bags import count_columns, place_entries, starts_of_columns, sum_chosen_rows
from longtail.kernels.jit import over_row_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longtail.training.scratch import Scratch

__all__ = ["ByColumn", "ChosenBags", "by_column"]


class ChosenBags(NamedTuple):
    """Rows of bags.

    Attributes
    ----------
    bags : Bags
    chosen : int64 (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.training.chosen_bags import ChosenBags
    >>> bags = Bags.of(csr_array([[1.0, 0.0], [2.0, 3.0], [0.0, 0.0]]))
    >>> some = ChosenBags.of(bags, np.array([1, 2]))
    >>> len(some.chosen), some.n_entries
    (2, 2)
    """

    bags: Bags
    chosen: NDArray[np.int64]

    @classmethod
    def of(cls, bags: Bags, chosen: NDArray[np.int64] | None) -> ChosenBags:
        """Choose rows; None for all of them, as for the pool of a batch."""
        rows = np.arange(bags.n_rows) if chosen is None else chosen
        return cls(bags.for_kernels(), read_only(rows, np.int64))

    @property
    def n_entries(self) -> int:
        """Number of entries in the chosen rows."""
        starts = self.bags.row_starts
        return int((starts[self.chosen + 1] - starts[self.chosen]).sum(dtype=np.int64))

    def times(
        self,
        table: NDArray[np.float32] | NDArray[np.uint16],
        sums: NDArray[np.float32],
        n_threads: int,
    ) -> None:
        """Write the weighted sum of each bag's rows of a table: see `Bags.times`.

        The uint16 are the bits of bfloat16s.
        """
        arrays = (self.chosen, *self.bags[:3], read_only(table, table.dtype.type))
        n_rows = len(self.chosen)
        over_row_chunks(
            lambda start, stop: sum_chosen_rows(*arrays, start, stop, sums),
            n_rows,
            n_threads=n_threads,
            chunk=max(1, -(-n_rows // (4 * n_threads))),
        )


class ByColumn(NamedTuple):
    """The transpose of bags laid end to end, without the columns that none holds.

    Attributes
    ----------
    columns : int64 (n,)
        In the order in which they are first met.
    rows : Bags
        For each, the rows that hold it, and the values there.
    """

    columns: NDArray[np.int64]
    rows: Bags


def by_column(parts: Sequence[ChosenBags], room: NDArray[np.int32], scratch: Scratch) -> ByColumn:
    """Return the columns that the bags hold, and for each a bag of rows: the transpose.

    Parameters
    ----------
    parts : sequence of ChosenBags
        Their rows are counted on from one to the next.
    room : int32 (n_columns,)
        Zeros, and so again on return.
    scratch : Scratch
        Holds the result, until the next.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.training.chosen_bags import ChosenBags, by_column
    >>> from longtail.training.scratch import Scratch
    >>> bags = Bags.of(csr_array([[0.0, 1.0, 0.0], [2.0, 3.0, 0.0]]))
    >>> parts = [ChosenBags.of(bags, np.array([row])) for row in (0, 1)]
    >>> columns, rows = by_column(parts, np.zeros(3, np.int32), Scratch())
    >>> columns.tolist(), rows.row_starts.tolist(), rows.columns.tolist(), rows.values.tolist()
    ([1, 0], [0, 2, 3], [0, 1, 1], [1.0, 3.0, 2.0])
    """
    size = sum(part.n_entries for part in parts)
    most = min(size, len(room))
    touched, n_touched = scratch.array("touched", (most,), np.int64), 0
    for bags, chosen in parts:
        read = (chosen, bags.row_starts, bags.columns)
        n_touched = count_columns(*read, room, touched, n_touched)
    touched = touched[:n_touched]
    starts = scratch.array("starts", (n_touched + 1,), np.int32)
    starts_of_columns(touched, room, starts)
    rows = scratch.array("rows", (size,), np.int32)
    weights, first_row = scratch.array("weights", (size,), np.float32), 0
    for bags, chosen in parts:
        place_entries(chosen, *bags[:3], first_row, room, rows, weights)
        first_row += len(chosen)
    room[touched] = 0
    return ByColumn(touched, Bags(starts, rows, weights))
