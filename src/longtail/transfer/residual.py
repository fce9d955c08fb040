"""The trained residual block, as a model keeps it: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.scoring import add_residual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Residual", "SquareLayer"]


@dataclass(frozen=True)
class SquareLayer:
    """Base of the transforms that are a matrix and a bias.

    Parameters
    ----------
    matrix : float32 (dimension, dimension)
        R.
    bias : float32 (dimension,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.transfer.residual import Residual
    >>> block = Residual(np.eye(2, dtype=np.float32), np.array([0, -5], np.float32))
    >>> again = Residual.from_parts(block.config(), block.to_arrays())
    >>> again.bias.tolist()
    [0.0, -5.0]
    """

    matrix: NDArray[np.float32]
    bias: NDArray[np.float32]

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what it is made of."""
        return {"matrix": self.matrix, "bias": self.bias}

    @classmethod
    def from_parts(
        cls,
        config: Mapping[str, Any],  # noqa: ARG003 - says nothing more
        arrays: Mapping[str, NDArray[Any]],
    ) -> Self:
        """Make it again from `to_arrays`."""
        return cls(arrays["matrix"], arrays["bias"])


@dataclass(frozen=True)
class Residual(SquareLayer):
    """Final features ``v + ReLU(R v + b)`` (DeepXML paper, section 4, Module III).

    Parameters
    ----------
    matrix : float32 (dimension, dimension)
        R, its spectral norm already bounded.
    bias : float32 (dimension,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.transfer.residual import Residual
    >>> block = Residual(np.eye(2, dtype=np.float32), np.array([0, -5], np.float32))
    >>> block.apply(np.array([[1, 2]], np.float32)).tolist()
    [[2.0, 2.0]]
    """

    def apply(self, features: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float32]:
        """Return the final features of each row, float32 (n, dimension)."""
        final = np.empty_like(features)
        matrix, bias = read_only(self.matrix, np.float32), read_only(self.bias, np.float32)

        def work(start: int, stop: int) -> None:
            add_residual(features, matrix, bias, start, stop, final)

        over_row_chunks(work, len(features), n_threads=n_threads, chunk=256)
        return final

    def config(self) -> dict[str, Any]:
        """Return what it is, as JSON values."""
        return {"kind": "residual"}
