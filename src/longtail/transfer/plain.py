"""Transfers to hold the bounded residual against: none at all, and a fully connected layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from longtail.training.dropout import dropped
from longtail.transfer.block import TransferBlock
from longtail.transfer.transform import Rectified, Unchanged

if TYPE_CHECKING:
    from longtail.transfer.transform import Transform

__all__ = ["FullyConnected", "Identity"]


@dataclass(frozen=True)
class Identity:
    """Classify the features of Module I as they are.

    Examples
    --------
    >>> import torch
    >>> from longtail.transfer.plain import Identity
    >>> Identity().block(2, torch.device("cpu"))(torch.tensor([1.0, -2.0])).tolist()
    [1.0, -2.0]
    """

    def block(self, dimension: int, device: torch.device) -> TransferBlock:
        """Return a block without parameters."""
        return _IdentityBlock(dimension, 1.0).to(device)


class _IdentityBlock(TransferBlock):
    """``v``."""

    def forward(self, features: Tensor) -> Tensor:
        """Return the features."""
        return features

    def start_from(self, trained: Transform) -> None:
        """Do nothing, whatever the first network's block was."""

    def frozen(self) -> Transform:
        """Return what changes nothing."""
        return Unchanged()


@dataclass(frozen=True, kw_only=True)
class FullyConnected:
    """A layer ``ReLU(R v + b)`` with no way around it, free to forget what Module I has learnt.

    Parameters
    ----------
    dropout : float
        Applied after the ReLU in training.
    learning_rate : float
        Of Adam; falls with the schedule of the stage.

    Examples
    --------
    >>> import torch
    >>> from longtail.transfer.plain import FullyConnected
    >>> block = FullyConnected().block(2, torch.device("cpu")).eval()
    >>> block(torch.tensor([1.0, -2.0])).tolist()
    [1.0, 0.0]
    """

    dropout: float = 0.5
    learning_rate: float = 1e-3

    def block(self, dimension: int, device: torch.device) -> TransferBlock:
        """Return a fresh block: R the identity, b zero, so that it starts from v."""
        return _FullyConnectedBlock(self, dimension).to(device)


class _FullyConnectedBlock(TransferBlock):
    """``Dropout(ReLU(R v + b))``."""

    def __init__(self, settings: FullyConnected, dimension: int) -> None:
        super().__init__(dimension, settings.learning_rate)
        self._dropout = settings.dropout
        self.matrix = nn.Parameter(torch.eye(dimension))
        self.bias = nn.Parameter(torch.zeros(dimension))

    def forward(self, features: Tensor) -> Tensor:
        """Return final features, (n, dimension)."""
        final = torch.relu(features @ self.matrix.T + self.bias)
        return dropped(final, self._dropout) if self.training else final

    def frozen(self) -> Transform:
        """Return the layer as a trained model keeps it."""
        matrix, bias = (p.detach().cpu().numpy().copy() for p in (self.matrix, self.bias))
        return Rectified(matrix, bias)
