"""A pretrained encoder's vectors, mapped, and a bag of token vectors, summed up: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data.rows import unit_vectors
from longtail.features.dense_layer import DenseLayer
from longtail.named_parts import with_prefix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.features.encoder import UnitEncoder

__all__ = ["SummedEncoder"]


@dataclass(frozen=True, eq=False)
class SummedEncoder:
    """``unit(A E(x) + sum_t x_t e_t)``: what is learnt around an encoder that stays as it is.

    Parameters
    ----------
    inner : UnitEncoder
        E.
    matrix : float32 (dimension, inner.dimension)
        A.
    token_vectors : float32 (n_tokens, dimension)
        One row a token.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import UnitBagEncoder
    >>> from longtail.features.summed_encoder import SummedEncoder
    >>> inner = UnitBagEncoder(np.array([[3, 4]], np.float32))
    >>> matrix = np.array([[0, 1], [1, 0]], np.float32)
    >>> encoder = SummedEncoder(inner, matrix, np.array([[-0.8, 0.0]], np.float32))
    >>> one = Bags.one(np.array([0], np.int32), np.array([1], np.float32))
    >>> encoder.encode(one).round(1).tolist()
    [[0.0, 1.0]]
    """

    inner: UnitEncoder
    matrix: NDArray[np.float32]
    token_vectors: NDArray[np.float32]

    @property
    def dimension(self) -> int:
        """Length of a vector, as numbers."""
        return len(self.matrix)

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:
        """Return float32 (n, dimension); rows of zeros where all parts say nothing."""
        # In the same order whatever else is in the batch, as products of BLAS are not.
        layer = DenseLayer(self.matrix, np.zeros(len(self.matrix), np.float32))
        vectors = layer.apply(self.inner.encode(bags, n_threads), n_threads)
        vectors += bags.times(self.token_vectors, n_threads)
        return unit_vectors(vectors)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays of all parts."""
        inner = with_prefix("inner.", self.inner.to_arrays())
        return {"matrix": self.matrix, "token_vectors": self.token_vectors, **inner}

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        return {"kind": "summed", "inner": self.inner.config()}
