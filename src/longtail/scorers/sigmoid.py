"""Logits into probabilities, without overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["sigmoid", "sigmoid_by_tanh"]

Real = TypeVar("Real", bound=np.floating)

MOST = 80.0  # e^88 is no float32


def sigmoid(logits: NDArray[Real], most: float = MOST) -> NDArray[Real]:
    """Return ``1 / (1 + exp(-z))``, small ones to as many digits as large ones.

    Parameters
    ----------
    logits : float32 or float64 (...)
    most : float
        Logits are taken to be no farther from 0 than this.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.sigmoid import sigmoid
    >>> sigmoid(np.array([-np.inf, -20, 0, np.inf])).round(10).tolist()
    [0.0, 2.1e-09, 0.5, 1.0]
    """
    chances: NDArray[Real] = 1 / (1 + np.exp(-np.clip(logits, -most, most)))
    return chances


def sigmoid_by_tanh(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the same as half a hyperbolic tangent and a half, which needs no bound.

    For scores alone: float32s are rounded to steps of 6e-8, so that the smallest are 0. It is kept
    beside `sigmoid` so that models answer as they always did.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.sigmoid import sigmoid_by_tanh
    >>> sigmoid_by_tanh(np.array([-np.inf, -20, 0, np.inf], np.float32)).tolist()
    [0.0, 0.0, 0.5, 1.0]
    """
    chances: NDArray[np.float32] = 0.5 + 0.5 * np.tanh(0.5 * logits)
    return chances
