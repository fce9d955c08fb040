"""Module III while it is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from longtail.errors import InputError

if TYPE_CHECKING:
    from longtail.transfer.transform import Transform

__all__ = ["TransferBlock"]


class TransferBlock(nn.Module):
    """From intermediate to final features of the same length; ``forward`` maps (n, dimension).

    Parameters
    ----------
    dimension : int
    learning_rate : float
        Of Adam, for all parameters; falls with the schedule of the stage.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from longtail.transfer.plain import FullyConnected
    >>> from longtail.transfer.transform import Rectified
    >>> block = FullyConnected().block(2, torch.device("cpu")).eval()
    >>> block.start_from(Rectified(np.eye(2, dtype=np.float32), np.array([0, 5], np.float32)))
    >>> block(torch.tensor([1.0, -2.0])).tolist(), block.frozen().bias.tolist()
    ([1.0, 3.0], [0.0, 5.0])
    """

    def __init__(self, dimension: int, learning_rate: float) -> None:
        super().__init__()
        self.dimension = dimension
        self.learning_rate = learning_rate

    def start_from(self, trained: Transform) -> None:
        """Copy a trained block, whose arrays have the names of this one's parameters.

        Raises
        ------
        InputError
            If they have not, or are of other shapes.
        """
        arrays = trained.to_arrays()
        own = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        if any(name not in own or own[name].shape != arrays[name].shape for name in arrays):
            needed = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            has = ", ".join(f"{name} {tuple(own[name].shape)}" for name in own) or "none"
            raise InputError(
                f"{type(self).__name__} cannot start from the trained block, of which "
                f"{type(trained).__name__} keeps {needed}: its own parameters are {has}. Call "
                "them the same, or give it a `start_from` of its own; a re-ranker also starts "
                "afresh, by Reranker(..., from_first=False)."
            )
        with torch.no_grad():
            for name, array in arrays.items():
                own[name].copy_(torch.tensor(array))

    def frozen(self) -> Transform:
        """Return the block as a trained model keeps it."""
        raise NotImplementedError
