"""Answers to many points, a block of them at a time: memory does not grow with their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from longtail.data.bags import Bags
    from longtail.scorers.protocols import Answers

__all__ = ["top_k_in_blocks"]


def top_k_in_blocks(bags: Bags, k: int, size: int, answer: Callable[[Bags], Answers]) -> Answers:
    """Answer blocks of bags, and return all answers together.

    Parameters
    ----------
    bags : Bags
    k : int
    size : int
        Bags that are answered together.
    answer : callable
        From some bags to their best labels and scores, as `Scorer.top_k` returns them; fewer than
        k columns are padded.

    Returns
    -------
    ids : int32 (n, k)
        Padded with -1.
    scores : float32 (n, k)
        Padded with -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.blocks import top_k_in_blocks
    >>> from longtail.data.bags import Bags
    >>> starts, none = np.zeros(4, np.int32), np.empty(0, np.int32)
    >>> bags = Bags(starts, none, none.astype(np.float32))
    >>> ids, scores = top_k_in_blocks(
    ...     bags, 2, 2, lambda some: (np.full((some.n_rows, 1), 7), np.ones((some.n_rows, 1)))
    ... )
    >>> ids.tolist()
    [[7, -1], [7, -1], [7, -1]]
    """
    ids = np.full((bags.n_rows, k), -1, np.int32)
    scores = np.full((bags.n_rows, k), -np.inf, np.float32)
    start = 0
    for some in bags.blocks(size):
        found, values = answer(some)
        block = slice(start, start + some.n_rows), slice(found.shape[1])
        ids[block], scores[block] = found, values
        start += some.n_rows
    return ids, scores
