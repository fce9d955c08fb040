"""The order of scored labels: the best ones of each row first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.scoring import best_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.scorers.protocols import Answers

__all__ = ["best_first", "just_below", "padding_last"]


def best_first(
    labels: NDArray[np.int32], scores: NDArray[np.float32], k: int, n_threads: int = 1
) -> Answers:
    """Return the best k labels of each row and their scores.

    Parameters
    ----------
    labels : int32 (n, size)
        Padded with -1 at the end.
    scores : float32 (n, size)
    k : int
    n_threads : int

    Returns
    -------
    ids : int32 (n, k)
        Descending, ties by smaller id, padded with -1.
    scores : float32 (n, k)
        Padded with -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.ranking import best_first
    >>> labels, scores = np.array([[4, 7, 9]], np.int32), np.array([[1, 3, 3]], np.float32)
    >>> best_first(labels, scores, 2)[0].tolist()
    [[7, 9]]
    """
    labels, scores = read_only(labels, np.int32), read_only(scores, np.float32)
    best_ids = np.empty((len(labels), k), np.int32)
    best_scores = np.empty((len(labels), k), np.float32)

    def work(start: int, stop: int) -> None:
        best_labels(labels, scores, start, stop, best_ids, best_scores)

    over_row_chunks(work, len(labels), n_threads=n_threads, chunk=256)
    return best_ids, best_scores


def just_below(labels: NDArray[np.int32], scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the largest number below all scores of each row, (n, 1); padding does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.ranking import just_below
    >>> labels, scores = np.array([[3, 5, -1]]), np.array([[2, 1, -np.inf]], np.float32)
    >>> bool(0.9999 < just_below(labels, scores) < 1)
    True
    """
    least = np.min(scores, axis=1, keepdims=True, initial=np.inf, where=labels >= 0)
    below: NDArray[np.float32] = np.nextafter(least, np.float32(-np.inf))
    return below


def padding_last(ids: NDArray[Any], *beside: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Move the padding of each row to its end, and with it what stands beside it.

    Parameters
    ----------
    ids : int (n, size)
        All below 0 is padding.
    *beside : arrays (n, size)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.ranking import padding_last
    >>> ids, scores = padding_last(np.array([[-1, 4, 2]]), np.array([[0.0, 0.1, 0.7]]))
    >>> ids.tolist(), scores.tolist()
    ([[4, 2, -1]], [[0.1, 0.7, 0.0]])
    """
    order = np.argsort(ids < 0, axis=1, kind="stable")
    return tuple(np.take_along_axis(array, order, axis=1) for array in (ids, *beside))
