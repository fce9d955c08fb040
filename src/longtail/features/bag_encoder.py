"""The frozen bag-of-tokens encoder, as a trained model keeps it: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail.data.rows import unit_vectors
from longtail.held_arrays import hold_read_only
from longtail.kernels.arrays import read_only
from longtail.kernels.bag_vector import unit_bag_vectors
from longtail.kernels.jit import over_row_chunks
from longtail.row_store import token_vectors_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.kernels.rows import Rows
    from longtail.row_store import RowStore

__all__ = ["BagEncoder", "StoredBagEncoder", "UnitBagEncoder"]


@dataclass(frozen=True)
class _TokenTable:
    """What the encoders of bags are made of."""

    token_vectors: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Hold the table as a memory map is held."""
        hold_read_only(self, {"token_vectors": np.float32})

    @property
    def n_tokens(self) -> int:
        """Number of tokens that it knows."""
        return len(self.token_vectors)

    def vectors_of_tokens(self) -> NDArray[np.float32]:
        """See `HasTokenVectors`."""
        return self.token_vectors

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the encoder is made of."""
        return {"token_vectors": self.token_vectors}

    @classmethod
    def from_parts(
        cls,
        config: Mapping[str, Any],  # noqa: ARG003 - says nothing more
        arrays: Mapping[str, NDArray[Any]],
    ) -> Self:
        """Make it again from `to_arrays`."""
        return cls(arrays["token_vectors"])


@dataclass(frozen=True)
class BagEncoder(_TokenTable):
    """Intermediate features ``v = ReLU(sum_t x_t e_t)`` (DeepXML paper, section 4, Module I).

    Parameters
    ----------
    token_vectors : float32 (n_tokens, dimension)
        E, one row a token; may be a read-only memory map.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> encoder = BagEncoder(np.array([[1, -1], [1, 3]], np.float32))
    >>> bag = Bags.one(np.array([0, 1], np.int32), np.array([1, 0.5], np.float32))
    >>> encoder.encode(bag).tolist()
    [[1.5, 0.5]]
    """

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:
        """Return the features of each bag, float32 (n, dimension).

        Token numbers are trusted to be below ``len(token_vectors)``: the vectoriser gives no
        others, and checking each would cost as much as the sum of short vectors.
        """
        features = bags.times(self.token_vectors, n_threads)
        return np.maximum(features, 0, out=features)

    def config(self) -> dict[str, Any]:
        """Return what it is, as JSON values."""
        return {"kind": "bag-of-tokens"}


@dataclass(frozen=True)
class UnitBagEncoder(_TokenTable):
    """Points and label texts as unit vectors: ``sum_t x_t e_t`` scaled to length 1.

    Parameters
    ----------
    token_vectors : float32 (n_tokens, dimension)
        E, one row a token; may be a read-only memory map.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import UnitBagEncoder
    >>> encoder = UnitBagEncoder(np.array([[3, 0], [0, 4]], np.float32))
    >>> bag = Bags.one(np.array([0, 1], np.int32), np.array([1, 1], np.float32))
    >>> (10 * encoder.encode(bag)).round().tolist()
    [[6.0, 8.0]]
    """

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:
        """Return float32 (n, dimension); rows of zeros for bags of unknown tokens."""
        vectors = bags.times(self.token_vectors, n_threads)
        return unit_vectors(vectors, out=vectors)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.token_vectors.shape[1])

    def stored(self, store: RowStore) -> Rows:
        """Return the vectors of the tokens as a store puts them away."""
        return store.tokens(self.token_vectors)

    def config(self) -> dict[str, Any]:
        """Return what it is, as JSON values."""
        return {"kind": "unit-bag-of-tokens"}


@dataclass(frozen=True)
class StoredBagEncoder:
    """A `UnitBagEncoder` with the vectors of its tokens stored, as those of a served model are.

    Parameters
    ----------
    rows : Rows
        Of `RowStore.tokens`.
    dimension : int

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import StoredBagEncoder
    >>> from longtail.row_store import RowStore
    >>> rows = RowStore("int8").tokens(np.array([[3, 0], [0, 4]], np.float32))  # four bits each
    >>> bag = Bags.one(np.array([0, 1], np.int32), np.array([1, 1], np.float32))
    >>> (10 * StoredBagEncoder(rows, 2).encode(bag)).round().tolist()
    [[6.0, 8.0]]
    """

    rows: Rows
    dimension: int

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:
        """Return float32 (n, dimension); rows of zeros for bags of unknown tokens."""
        points = np.empty((bags.n_rows, self.dimension), np.float32)
        arrays = (*bags.for_kernels()[:3], self.rows)
        over_row_chunks(
            lambda start, stop: unit_bag_vectors(*arrays, start, stop, points),
            len(points),
            n_threads=n_threads,
        )
        return points

    def stored(self, store: RowStore) -> Rows:
        """Return the vectors of the tokens as a store puts them away: often they are so already."""
        return store.stored_tokens(self.rows, self.dimension)

    @property
    def n_tokens(self) -> int:
        """Number of tokens that it knows."""
        return len(self.rows.values)

    @property
    def token_vectors(self) -> NDArray[np.float32]:
        """The vectors as numbers, float32 (n_tokens, dimension)."""
        return read_only(token_vectors_of(self.rows, self.dimension), np.float32)

    def vectors_of_tokens(self) -> NDArray[np.float32]:
        """See `HasTokenVectors`."""
        return self.token_vectors

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return those of a `UnitBagEncoder`."""
        return {"token_vectors": self.token_vectors}

    def config(self) -> dict[str, Any]:
        """Return that of a `UnitBagEncoder`."""
        return {"kind": "unit-bag-of-tokens"}
