"""Drawing numbers of rows or labels, some of them oftener than others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["WeightedDraws"]


class WeightedDraws:
    """Draws numbers from 0 by their weights, with repeats; those of weight 0 never.

    Parameters
    ----------
    weights : array-like (n,)
        Not below 0, and not all of them 0.

    Examples
    --------
    The number 2 is drawn three times as often as 1.

    >>> import numpy as np
    >>> from longtail.data.weighted_draws import WeightedDraws
    >>> draws = WeightedDraws([0, 1, 3, 0])
    >>> found = draws.take(1000, np.random.default_rng(0))
    >>> np.unique(found).tolist(), round(float(np.mean(found == 2)), 1)
    ([1, 2], 0.8)
    """

    def __init__(self, weights: ArrayLike) -> None:
        self._bounds = np.cumsum(weights)
        self._last = np.flatnonzero(weights)[-1:]

    def take(self, shape: int | tuple[int, ...], random: np.random.Generator) -> NDArray[np.int64]:
        """Return so many draws, int64 of this shape."""
        places = random.random(shape) * self._bounds[-1]
        found: NDArray[np.int64] = np.searchsorted(self._bounds, places, side="right")
        return np.minimum(found, self._last, out=found)  # rounded up, a draw would lie beyond
