"""The token vectors of a bag encoder while they are trained."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data.bags import Bags
from longtail.errors import TrainingError
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.kernels.jit import in_background, over_row_chunks
from longtail.kernels.random_rows import uniform_rows
from longtail.kernels.split_rows import join_rows, round_rows, split_rows
from longtail.training.chosen_bags import ChosenBags, by_column
from longtail.training.row_adagrad import RowAdagrad
from longtail.training.scratch import Scratch, empty_array
from longtail.training.threads import in_threads
from longtail.training.units import Units

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.kernels.jit import Begun
    from longtail.training.chosen_bags import ByColumn

    Floats = NDArray[np.float32]

__all__ = ["TokenTable"]

_ROWS_DRAWN = 4096  # by a thread at a time


class TokenTable:
    """E, one row a token: bags times E, and the way back.

    Rows start random and of about unit length, which keeps the angles between bags as they are.
    Sums wait for memory, so what is summed up has 16 bits: slopes are rounded to bfloat16, and of
    the vectors the upper halves are read, which lie apart (`longtail.kernels.split_rows`). Steps
    change all 32 bits.

    Parameters
    ----------
    n_tokens, dimension : int
    seed : int
    n_threads : int
    start : float32 (n_tokens, dimension) or None
        Rows to start from instead; their memory is taken over.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.training.chosen_bags import ChosenBags
    >>> from longtail.features.token_table import TokenTable
    >>> table = TokenTable(3, 4, seed=0, n_threads=1)
    >>> bags = Bags.of(csr_array([[1.0, 0.0, 2.0]]))
    >>> table.sums(ChosenBags.of(bags, np.array([0]))).shape
    (1, 4)
    """

    def __init__(
        self,
        n_tokens: int,
        dimension: int,
        *,
        seed: int,
        n_threads: int,
        start: Floats | None = None,
    ) -> None:
        rows = _random_rows(n_tokens, dimension, seed, n_threads) if start is None else start
        self._n_threads, self.dimension = n_threads, dimension
        self._halves = self._split(rows)
        self._optimiser = RowAdagrad(n_tokens)
        self._room = np.zeros(n_tokens, np.int32)
        self._scratch = Scratch()
        self._by_token: Begun[ByColumn] | None = None

    def sums(self, *bags: ChosenBags) -> Floats:
        """Return the weighted sums of the bags' rows, (n, dimension), one after the other.

        They are written over by the next. Meanwhile, what `step` needs is prepared.
        """
        bounds = np.cumsum([0, *(len(part.chosen) for part in bags)])
        sums = self._scratch.array("sums", (int(bounds[-1]), self.dimension))
        if self._by_token is not None:  # of sums that nobody took a step from
            self._by_token.result()
        # First, as it takes longest: whoever has done it helps with the sums.
        self._by_token = in_background(
            lambda: by_column(bags, self._room, self._scratch), self._n_threads
        )
        for part, (first, last) in zip(bags, pairwise(bounds), strict=True):
            part.times(self._halves, sums[first:last], self._n_threads)
        return sums

    def step(self, slope: Floats, learning_rate: float) -> None:
        """Change the vectors of the tokens in the bags of the last `sums`, given its gradient."""
        if self._by_token is None:
            raise TrainingError("A step needs `sums` before it: call `sums` for these bags first.")
        (columns, rows), self._by_token = self._by_token.result(), None
        rounded = self._scratch.array("slopes", slope.shape, np.uint16)
        in_threads(lambda start, stop: round_rows(slope, start, stop, rounded), len(slope))
        self._optimiser.step_by_bags(self._halves, columns, rows, rounded, learning_rate)

    def vectors(self) -> Floats:
        """Return a copy of the rows as they are now."""
        rows = empty_array((len(self._halves), self.dimension))
        self._join(rows)
        return rows

    def encode(self, bags: csr_array) -> Floats:
        """Return unit rows of bags."""
        encoder = UnitBagEncoder(self.vectors())
        return encoder.encode(Bags.of(bags), self._n_threads)

    def encode_roughly(self, bags: csr_array, n_entries: int | None = None) -> Floats:
        """Return unit rows of bags as `sums` reads them, or of the first entries of these alone.

        In half the time of `encode`, and without a copy of the table.
        """
        rows = ChosenBags.of(Bags.of(bags), None)
        n = self.dimension if n_entries is None else min(n_entries, self.dimension)
        sums = np.empty((len(rows.chosen), n), np.float32)
        rows.times(self._halves, sums, self._n_threads)
        return Units.in_place(sums).unit

    def into_vectors(self) -> Floats:
        """Return the rows as they are now, in the memory that was theirs: the table is no more."""
        rows = self._halves.view(np.float32)
        self._join(rows)
        self._halves = self._halves[:0]
        return rows

    def _split(self, rows: Floats) -> NDArray[np.uint16]:
        """Split rows in place; return their halves, uint16 (n_tokens, 2 * dimension)."""
        halves = rows.view(np.uint16)
        in_threads(lambda start, stop: split_rows(rows, halves, start, stop), len(rows))
        return halves

    def _join(self, rows: Floats) -> None:
        """Write all rows, to where they are or somewhere else."""
        halves = self._halves
        in_threads(lambda start, stop: join_rows(halves, start, stop, rows), len(rows))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the live arrays that a checkpoint keeps."""
        return {"halves": self._halves.view(np.int32), **self._optimiser.state()}


def _random_rows(n_rows: int, dimension: int, seed: int, n_threads: int) -> Floats:
    """Return rows of about unit length in all directions, the same for any number of threads."""
    rows = empty_array((n_rows, dimension))
    largest = np.float32((3 / dimension) ** 0.5)  # of numbers up to 1, the variance is 1 / 3
    over_row_chunks(
        lambda start, stop: uniform_rows(np.uint64(seed), largest, start, stop, rows),
        n_rows,
        n_threads=n_threads,
        chunk=_ROWS_DRAWN,
    )
    return rows
