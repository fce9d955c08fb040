"""The token vectors of a bag encoder while they are trained."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data.bags import Bags
from longtail.errors import TrainingError
from longtail.features.half_encoder import HalfBagEncoder
from longtail.kernels.half_rows import round_rows
from longtail.kernels.jit import in_background, over_row_chunks
from longtail.kernels.random_rows import uniform_rows
from longtail.training.chosen_bags import ChosenBags, by_column
from longtail.training.row_adagrad import RowAdagrad
from longtail.training.scratch import Scratch, empty_array
from longtail.training.threads import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.token_directions import TokenDirections
    from longtail.kernels.jit import Begun
    from longtail.training.chosen_bags import ByColumn

    Floats = NDArray[np.float32]
    Bits = NDArray[np.uint16]

__all__ = ["TokenTable"]

_ROWS_DRAWN = 4096  # by a thread at a time
# Of a start toward a word vector: unit vectors together, so that its length stays about 1.
_KNOWN, _RANDOM = np.float32(0.9), np.float32((1 - 0.9**2) ** 0.5)


class TokenTable:
    """E, one row a token: bags times E, and the way back.

    Rows start random and of about unit length, which keeps the angles between bags as they are.
    Where word vectors tell where a token points, its row starts near that.
    Sums wait for memory, so rows are bfloat16s, and so are slopes. A step that is too small to be
    seen in these is taken with the right probability (`longtail.kernels.half_rows`).

    Parameters
    ----------
    n_tokens, dimension : int
    seed : int
    n_threads : int
    start : float32 or uint16 (n_tokens, dimension), or None
        Rows to start from instead; the uint16 are the bits of bfloat16s, whose memory is taken
        over.
    toward : TokenDirections or None
        Where tokens point, if there is no `start`.

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
        start: NDArray[Any] | None = None,
        toward: TokenDirections | None = None,
    ) -> None:
        self._n_threads, self.dimension = n_threads, dimension
        if start is None:
            self._rows = _random_rows(n_tokens, dimension, seed, n_threads)
            if toward is not None:
                _turn(self._rows, toward.within(dimension, seed))
        else:
            self._rows = start if start.dtype == np.uint16 else _rounded(start)
        self._optimiser = RowAdagrad(n_tokens)
        self._n_steps = np.zeros(1, np.int64)
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
            part.times(self._rows, sums[first:last], self._n_threads)
        return sums

    def step(self, slope: Floats, learning_rate: float) -> None:
        """Change the vectors of the tokens in the bags of the last `sums`, given its gradient."""
        if self._by_token is None:
            raise TrainingError("A step needs `sums` before it: call `sums` for these bags first.")
        (columns, rows), self._by_token = self._by_token.result(), None
        rounded = self._scratch.array("slopes", slope.shape, np.uint16)
        in_threads(lambda start, stop: round_rows(slope, start, stop, rounded), len(slope))
        self._n_steps += 1
        seed = int(self._n_steps[0])
        self._optimiser.step_by_bags(self._rows, columns, rows, rounded, learning_rate, seed)

    @property
    def encoder(self) -> HalfBagEncoder:
        """What encodes bags by the rows as they are, now and after further steps."""
        return HalfBagEncoder(self._rows)

    def vectors(self) -> Floats:
        """Return the rows as they are now, float32."""
        return self.encoder.token_vectors

    def encode(self, bags: csr_array, n_entries: int | None = None) -> Floats:
        """Return unit rows of bags, or of the first entries of these alone."""
        return self.encoder.encode(Bags.of(bags), self._n_threads, n_entries)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the live arrays that a checkpoint keeps."""
        return {"rows": self._rows, "n_steps": self._n_steps, **self._optimiser.state()}


def _rounded(rows: Floats) -> Bits:
    """Return the bits of the bfloat16s that are nearest to numbers."""
    bits = empty_array(rows.shape, np.uint16)
    in_threads(lambda start, stop: round_rows(rows, start, stop, bits), len(rows))
    return bits


def _random_rows(n_rows: int, dimension: int, seed: int, n_threads: int) -> Bits:
    """Return rows of about unit length in all directions, the same for any number of threads."""
    rows = empty_array((n_rows, dimension), np.uint16)
    largest = np.float32((3 / dimension) ** 0.5)  # of numbers up to 1, the variance is 1 / 3
    over_row_chunks(
        lambda start, stop: uniform_rows(np.uint64(seed), largest, start, stop, rows),
        n_rows,
        n_threads=n_threads,
        chunk=_ROWS_DRAWN,
    )
    return rows


def _turn(rows: Bits, toward: TokenDirections) -> None:
    """Turn random rows to where their tokens point, in place; those of other tokens stay."""
    for start in range(0, len(rows), _ROWS_DRAWN):
        stop = min(start + _ROWS_DRAWN, len(rows))
        directions = toward.directions(start, stop)
        known = np.flatnonzero(directions.any(axis=1))
        random = HalfBagEncoder(rows[start + known]).token_vectors
        rows[start + known] = _rounded(_RANDOM * random + _KNOWN * directions[known])
