"""AdamW for one small vector of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from longtail.kernels.optimisers import adamw_step

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AdamW"]


class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019), in place.

    As `torch.optim.AdamW`, which loads torch's compiler first: longer than a small network takes.

    Parameters
    ----------
    parameters : float32 Tensor (n,)
        What will be trained.
    weight_decay : float

    Examples
    --------
    >>> import torch
    >>> from longtail.training.adamw import AdamW
    >>> parameters = torch.tensor([1.0, -1.0])
    >>> AdamW(parameters, weight_decay=0.0).step(torch.tensor([3.0, -0.2]), 0.1)
    >>> parameters  # the first step is as long as the rate, whatever the gradient's length
    tensor([ 0.9000, -0.9000])
    """

    def __init__(self, parameters: Tensor, weight_decay: float) -> None:
        self._parameters = parameters
        self._weight_decay = weight_decay
        self._means = torch.zeros_like(parameters)
        self._squares = torch.zeros_like(parameters)
        self._n_steps = 0

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        """Step against a float32 gradient (n,)."""
        self._n_steps += 1
        adamw_step(
            self._parameters.numpy(),
            self._means.numpy(),
            self._squares.numpy(),
            gradient.numpy(),
            learning_rate,
            self._weight_decay,
            self._n_steps,
        )
