"""Bags of tokens encoded by the vectors that training has, two bytes a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.half_numbers import of_bfloat16
from longtail.training.chosen_bags import ChosenBags
from longtail.training.units import Units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.kernels.rows import Rows
    from longtail.row_store import RowStore

    Floats = NDArray[np.float32]

__all__ = ["HalfBagEncoder"]


@dataclass(frozen=True)
class HalfBagEncoder:
    """A `UnitBagEncoder` with the vectors of its tokens as bfloat16s.

    Parameters
    ----------
    bits : uint16 (n_tokens, dimension)
        The upper halves of float32s.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.half_encoder import HalfBagEncoder
    >>> encoder = HalfBagEncoder(np.array([[0x4040, 0], [0, 0x4080]], np.uint16))
    >>> encoder.token_vectors.tolist()
    [[3.0, 0.0], [0.0, 4.0]]
    >>> (10 * encoder.encode(Bags.of(csr_array([[1.0, 1.0]])))).round().tolist()
    [[6.0, 8.0]]
    """

    bits: NDArray[np.uint16]

    def encode(self, bags: Bags, n_threads: int = 1, n_entries: int | None = None) -> Floats:
        """Return float32 (n, dimension); rows of zeros for bags of unknown tokens.

        With `n_entries`, of the first so many entries of the vectors alone.
        """
        rows = ChosenBags.of(bags, None)
        n = self.dimension if n_entries is None else min(n_entries, self.dimension)
        sums = np.empty((len(rows.chosen), n), np.float32)
        rows.times(self.bits, sums, n_threads)
        return Units.in_place(sums).unit

    def stored(self, store: RowStore) -> Rows:
        """Return the vectors of the tokens as a store puts them away."""
        return store.tokens(self.bits)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.bits.shape[1])

    @property
    def n_tokens(self) -> int:
        """Number of tokens that it knows."""
        return len(self.bits)

    @property
    def token_vectors(self) -> Floats:
        """The vectors, float32 (n_tokens, dimension)."""
        return of_bfloat16(self.bits)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return those of a `UnitBagEncoder`."""
        return {"token_vectors": self.token_vectors}

    def config(self) -> dict[str, Any]:
        """Return that of a `UnitBagEncoder`."""
        return {"kind": "unit-bag-of-tokens"}
