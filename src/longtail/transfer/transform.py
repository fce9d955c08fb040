"""What Module III leaves to serving: a map from intermediate to final features, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self

from longtail.features.dense_layer import DenseLayer
from longtail.transfer.residual import Residual, SquareLayer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["TRANSFORMS", "Rectified", "Transform", "Unchanged", "transform_from"]


class Transform(Protocol):
    """From the intermediate features v to those that are classified."""

    def apply(self, features: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float32]:
        """Return the final features of each row, float32 (n, dimension)."""
        ...

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays that it is made of."""
        ...

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        ...


@dataclass(frozen=True)
class Unchanged:
    """Final features v: those of Module I as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.transfer.transform import Unchanged
    >>> Unchanged().apply(np.array([[1, 2]], np.float32)).tolist()
    [[1.0, 2.0]]
    """

    def apply(self, features: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float32]:  # noqa: ARG002 - there is nothing to do
        """Return the features."""
        return features

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return nothing: there is nothing learnt."""
        return {}

    def config(self) -> dict[str, Any]:
        """Return what it is, as JSON values."""
        return {"kind": "unchanged"}

    @classmethod
    def from_parts(
        cls,
        config: Mapping[str, Any],  # noqa: ARG003 - says nothing more
        arrays: Mapping[str, NDArray[Any]],  # noqa: ARG003 - there are none
    ) -> Self:
        """Make it again."""
        return cls()


@dataclass(frozen=True)
class Rectified(SquareLayer):
    """Final features ``ReLU(R v + b)``: a fully connected layer, without a way around it.

    Parameters
    ----------
    matrix : float32 (dimension, dimension)
    bias : float32 (dimension,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.transfer.transform import Rectified
    >>> block = Rectified(np.eye(2, dtype=np.float32), np.array([0, -5], np.float32))
    >>> block.apply(np.array([[1, 2]], np.float32)).tolist()
    [[1.0, 0.0]]
    """

    def apply(self, features: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float32]:
        """Return the final features of each row, float32 (n, dimension)."""
        return DenseLayer(self.matrix, self.bias).rectified(features, n_threads)

    def config(self) -> dict[str, Any]:
        """Return what it is, as JSON values."""
        return {"kind": "rectified"}


# What a model folder calls them, and how each is made again.
TRANSFORMS: Mapping[str, Any] = MappingProxyType(
    {
        "residual": Residual.from_parts,
        "rectified": Rectified.from_parts,
        "unchanged": Unchanged.from_parts,
    }
)


def transform_from(
    config: Mapping[str, Any], arrays: Mapping[str, NDArray[np.generic]]
) -> Transform:
    """Return the transform that a model folder describes.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.transfer.transform import Rectified, transform_from
    >>> block = Rectified(np.eye(2, dtype=np.float32), np.array([0, -5], np.float32))
    >>> again = transform_from(block.config(), block.to_arrays())
    >>> type(again).__name__, again.bias.tolist()
    ('Rectified', [0.0, -5.0])
    """
    transform: Transform = TRANSFORMS[config["kind"]](config, arrays)
    return transform
