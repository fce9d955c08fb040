"""The slope of the loss that ranks, for networks whose gradient is formed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.ranking_network import write_ranking_slopes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["log_counts_of", "ranking_slope"]


def log_counts_of(labels: NDArray[np.integer[Any]]) -> Floats:
    """Return the `log_counts` of candidates, each of which stands for itself: float32 (n, size).

    Parameters
    ----------
    labels : int (n, size)
        Padded with -1.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.ranking_slope import log_counts_of
    >>> log_counts_of(np.array([[7, 4, -1]])).tolist()
    [[0.0, 0.0, -inf]]
    """
    return np.where(labels < 0, np.float32(-np.inf), np.float32(0))


def ranking_slope(logits: Floats, is_true: NDArray[np.bool_], log_counts: Floats) -> Floats:
    """Return the slope of `ranking_loss` with respect to the logits, float32 (n, size).

    Parameters
    ----------
    logits : float32 (n, size)
    is_true : bool (n, size)
    log_counts : float32 (n, size)
        See `longtail.training.ranking_loss.ranking_loss`.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.ranking_slope import ranking_slope
    >>> is_true, even = np.array([[True, False, False]]), np.zeros((1, 3), np.float32)
    >>> ranking_slope(even, is_true, even).round(3).tolist()
    [[-0.6669999957084656, 0.3330000042915344, 0.3330000042915344]]
    """
    slopes = np.empty_like(logits)
    write_ranking_slopes(logits, is_true, log_counts, slopes)
    return slopes
