"""AdamW for one small vector of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.optimisers import adamw_step

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AdamW"]


class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019), in place.

    Parameters
    ----------
    parameters : float32 (n,)
        What will be trained.
    weight_decay : float

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.adamw import AdamW
    >>> parameters = np.array([1, -1], np.float32)
    >>> AdamW(parameters, weight_decay=0.0).step(np.array([3, -0.2], np.float32), 0.1)
    >>> parameters  # the first step is as long as the rate, whatever the gradient's length
    array([ 0.9, -0.9], dtype=float32)
    """

    def __init__(self, parameters: NDArray[np.float32], weight_decay: float) -> None:
        self._parameters = parameters
        self._weight_decay = weight_decay
        self._means = np.zeros_like(parameters)
        self._squares = np.zeros_like(parameters)
        self._n_steps = 0

    def step(self, gradient: NDArray[np.float32], learning_rate: float) -> None:
        """Step against a float32 gradient (n,)."""
        self._n_steps += 1
        arrays = (self._parameters, self._means, self._squares, gradient)
        adamw_step(*arrays, learning_rate, self._weight_decay, self._n_steps)
