"""The vectors of words while a network over sequences of them is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from longtail.training.processes import processes
from longtail.training.state import state_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.training.optimisers import RowOptimiser

__all__ = ["WordTable"]


class WordTable:
    """A table of word vectors of which a batch reads and changes some rows.

    Parameters
    ----------
    vectors : float32 (n_tokens, dimension)
        To start from; copied.
    make_optimiser : callable
        From the table to its `RowOptimiser`.
    device : torch.device

    Examples
    --------
    A step changes the words that were read; a padding of -1 is none.

    >>> import numpy as np
    >>> import torch
    >>> from longtail.features.word_table import WordTable
    >>> from longtail.training.optimisers import RowwiseAdagrad
    >>> start = np.array([[1], [2], [3]], np.float32)
    >>> words = WordTable(start, RowwiseAdagrad, torch.device("cpu"))
    >>> vectors = words.read(torch.tensor([[2, 0, -1]]))
    >>> vectors.tolist()
    [[[3.0], [1.0], [0.0]]]
    >>> vectors.sum().backward()
    >>> words.step(0.5)
    >>> words.table.numpy().round(3).tolist()
    [[0.5], [2.0], [2.5]]
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        make_optimiser: Callable[[Tensor], RowOptimiser],
        device: torch.device,
    ) -> None:
        self.table = torch.tensor(vectors, device=device)
        self._optimiser = make_optimiser(self.table)
        self._words = torch.zeros(0, dtype=torch.int64)
        self._read = torch.zeros(0)

    def read(self, words: Tensor) -> Tensor:
        """Return the vectors of words, ready for ``backward``.

        Parameters
        ----------
        words : int64 Tensor (n, length)
            Padded with -1.

        Returns
        -------
        float32 Tensor (n, length, dimension)
            Zeros for the padding.
        """
        self._words = words
        self._read = self.table[words.clamp(min=0)] * (words >= 0)[..., None]
        return self._read.requires_grad_()

    def step(self, learning_rate: float) -> None:
        """Step the rows that were read last against their gradient."""
        known = self._words >= 0
        slopes = self._read.grad
        if slopes is None or not known.any():
            if processes().count == 1:
                return
            slopes = torch.zeros_like(self._read)  # others may have some, to be added up
        rows, places = torch.unique(self._words[known], return_inverse=True)
        gradient = torch.zeros(len(rows), self.table.shape[1], device=self.table.device)
        gradient.index_add_(0, places, slopes[known])
        self._optimiser.step(self.table, rows, gradient, learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        return {"table": self.table, **state_of(self._optimiser)}
