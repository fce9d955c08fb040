"""A fully connected layer as a trained model keeps it: no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.networks import affine_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DenseLayer"]


class DenseLayer(NamedTuple):
    """The map ``W v + b``.

    Attributes
    ----------
    matrix : float32 (n_outputs, dimension)
        W.
    bias : float32 (n_outputs,)
        b.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.features.dense_layer import DenseLayer
    >>> layer = DenseLayer(np.array([[1, 2]], np.float32), np.array([-4], np.float32))
    >>> layer.apply(np.array([[1, 1], [2, 2]], np.float32)).tolist()
    [[-1.0], [2.0]]
    >>> layer.rectified(np.array([[1, 1], [2, 2]], np.float32)).tolist()
    [[0.0], [2.0]]
    """

    matrix: NDArray[np.float32]
    bias: NDArray[np.float32]

    def apply(self, rows: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float32]:
        """Return ``W v + b`` of each row v, float32 (n, n_outputs)."""
        rows = read_only(rows, np.float32)
        matrix, bias = read_only(self.matrix, np.float32), read_only(self.bias, np.float32)
        out = np.empty((len(rows), len(matrix)), np.float32)

        def work(start: int, stop: int) -> None:
            affine_rows(rows, matrix, bias, start, stop, out)

        over_row_chunks(work, len(rows), n_threads=n_threads, chunk=64)
        return out

    def rectified(self, rows: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float32]:
        """Return ``ReLU(W v + b)`` of each row v."""
        out = self.apply(rows, n_threads)
        return np.maximum(out, 0, out=out)
