"""Sums of token vectors as tensors, for what is trained behind them by torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.features.token_table import TokenTable
    from longtail.training.chosen_bags import ChosenBags

__all__ = ["TokenTensors"]


class TokenTensors:
    """A table in main memory, whose sums are moved to a device, and slopes back.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.token_table import TokenTable
    >>> from longtail.features.token_tensors import TokenTensors
    >>> from longtail.training.chosen_bags import ChosenBags
    >>> table = TokenTable(2, 2, seed=0, n_threads=1, start=np.eye(2, dtype=np.float32))
    >>> bags = ChosenBags.of(Bags.of(csr_array([[1.0, 2.0]])), None)
    >>> TokenTensors(table, torch.device("cpu")).sums(bags)
    tensor([[1., 2.]])
    """

    def __init__(self, table: TokenTable, device: torch.device) -> None:
        self.table = table
        self._device = device

    def sums(self, *bags: ChosenBags) -> Tensor:
        """See `TokenTable.sums`: float32 Tensor (n, dimension)."""
        return torch.from_numpy(self.table.sums(*bags)).to(self._device)

    def step(self, slope: Tensor, learning_rate: float) -> None:
        """See `TokenTable.step`."""
        self.table.step(slope.float().contiguous().cpu().numpy(), learning_rate)

    def state(self) -> dict[str, NDArray[Any]]:
        """See `TokenTable.state`."""
        return self.table.state()
