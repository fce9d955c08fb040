"""No transfer: the classifiers see the features as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from longtail.transfer.bounded_residual import ResidualBlock

__all__ = ["unchanged_block"]


def unchanged_block(dimension: int) -> ResidualBlock:
    """Return a block for `ShortlistTraining.fit` that has no parameters and changes nothing.

    Examples
    --------
    >>> import torch
    >>> from longtail.transfer.identity import unchanged_block
    >>> unchanged_block(2)(torch.tensor([[1.0, -2.0]])).tolist()
    [[1.0, -2.0]]
    """
    return cast("ResidualBlock", _Unchanged(dimension))


class _Unchanged(nn.Module):
    """What training asks of a block, without a matrix."""

    learning_rate = 0.0

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.register_buffer("matrix", torch.empty(dimension, 0), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Return the features."""
        return features
