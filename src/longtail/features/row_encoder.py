"""Dense vectors that come ready-made: what there is left to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from longtail.data.rows import unit_vectors

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from longtail.data.bags import Bags

__all__ = ["RowEncoder"]


@dataclass(frozen=True)
class RowEncoder:
    """Dense rows as features, scaled to unit length.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.row_encoder import RowEncoder
    >>> row = Bags.one(np.array([0, 1], np.int32), np.array([3, 4], np.float32))
    >>> (10 * RowEncoder(2).encode(row)).round().tolist()
    [[6.0, 8.0]]
    """

    dimension: int

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:  # noqa: ARG002 - as the others
        """Return the rows, float32 (n, dimension)."""
        return unit_vectors(bags.dense(self.dimension))

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return nothing: there is nothing learnt."""
        return {}

    def config(self) -> dict[str, Any]:
        """Return what it is, as JSON values."""
        return {"kind": "rows", "dimension": self.dimension}

    @classmethod
    def from_parts(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],  # noqa: ARG003 - there are none
    ) -> Self:
        """Make it again from `config`."""
        return cls(config["dimension"])
