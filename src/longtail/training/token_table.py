"""The token vectors of a bag encoder while they are trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from longtail.data.bags import Bags
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.training.optimisers import RowwiseAdagrad

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from torch import Tensor

__all__ = ["TokenTable"]


class TokenTable:
    """E, one row a token: bags times E, and the way back.

    Rows start random and of about unit length, which keeps the angles between bags as they are.
    The table stays in main memory; sums are moved to the device.

    Parameters
    ----------
    n_tokens, dimension : int
    seed : int
    n_threads : int
    device : torch.device
    start : float32 Tensor (n_tokens, dimension) or None
        Rows to start from instead; changed in place.

    Attributes
    ----------
    vectors : float32 Tensor (n_tokens, dimension)

    Examples
    --------
    >>> import torch
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.token_table import TokenTable
    >>> table = TokenTable(3, 4, seed=0, n_threads=1, device=torch.device("cpu"))
    >>> table.sums(csr_array([[1.0, 0.0, 2.0]])).shape
    torch.Size([1, 4])
    """

    def __init__(
        self,
        n_tokens: int,
        dimension: int,
        *,
        seed: int,
        n_threads: int,
        device: torch.device,
        start: Tensor | None = None,
    ) -> None:
        self.vectors = _random_rows(n_tokens, dimension, seed) if start is None else start
        self._optimiser = RowwiseAdagrad(self.vectors)
        self._n_threads = n_threads
        self._device = device
        self._room = np.zeros(n_tokens, np.int32)

    def sums(self, bags: csr_array) -> Tensor:
        """Return the weighted sums of the bags' rows, (n, dimension)."""
        sums = Bags.of(bags).times(self.vectors.numpy(), self._n_threads)
        return torch.from_numpy(sums).to(self._device)

    def step(self, bags: csr_array, slope: Tensor, learning_rate: float) -> None:
        """Change the vectors of the tokens in some bags, given the gradient of their sums."""
        touched, by_token = Bags.of(bags).by_column(self._room)
        rows = torch.from_numpy(touched)
        self._optimiser.step_by_bags(self.vectors, rows, by_token, slope.cpu(), learning_rate)

    def encode(self, bags: csr_array, n_entries: int | None = None) -> NDArray[np.float32]:
        """Return unit rows of bags, or of the first entries of their sums alone."""
        vectors = np.ascontiguousarray(self.vectors.numpy()[:, :n_entries])
        return UnitBagEncoder(vectors).encode(Bags.of(bags), self._n_threads)

    def encoder(self) -> UnitBagEncoder:
        """Return the encoder with the token vectors as they are now; they stay shared."""
        return UnitBagEncoder(self.vectors.numpy())

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        return {"table": self.vectors, **self._optimiser.state()}


def _random_rows(n_rows: int, dimension: int, seed: int) -> Tensor:
    """Return rows of about unit length in all directions."""
    rows = np.random.default_rng(seed).random((n_rows, dimension), np.float32)
    rows -= np.float32(0.5)
    rows *= np.float32((12 / dimension) ** 0.5)  # a uniform number's variance is 1 / 12
    return torch.from_numpy(rows)
