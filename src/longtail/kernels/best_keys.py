"""The largest keys of many, which come some at a time.

A list has room for twice as many as are wanted. What is larger than the least of the last cut is
written down, and only when there is no room left is the list cut to its best: so a key costs little
more than to store it, where to hold the list in order would cost a pass over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]
    Ids = NDArray[np.int32]

__all__ = ["HIGHEST", "LOWEST", "BestKeys", "add_key", "cut_full", "empty_best_keys", "write_best"]

LOWEST, HIGHEST = np.int64(-(1 << 62)), np.int64(1 << 62)
_FEW = 12  # keys that are sorted by insertion


class BestKeys(NamedTuple):
    """Some lists: ``keys`` (n_lists, room) int64, of which those before ``sizes`` (n_lists,) count.

    What is not above ``least`` (n_lists,) is not among the best of a list.
    """

    keys: Keys
    sizes: Ids
    least: Keys


@kernel
def empty_best_keys(n_lists: int, n_wanted: int, n_at_once: int) -> BestKeys:
    """Return lists to which up to `n_at_once` keys are added before `cut_full` is called."""
    return BestKeys(
        np.empty((n_lists, 2 * n_wanted + n_at_once), np.int64),
        np.zeros(n_lists, np.int32),
        np.full(n_lists, LOWEST, np.int64),
    )


@kernel
def add_key(lists: BestKeys, which: int, key: int, n_wanted: int) -> None:
    """Add a key to a list."""
    lists.keys[which, lists.sizes[which]] = key
    lists.sizes[which] += 1
    cut_full(lists, which, n_wanted)


@kernel
def cut_full(lists: BestKeys, which: int, n_wanted: int) -> None:
    """Keep only the best of a list, where it has no room for as many as come at once."""
    if lists.sizes[which] >= 2 * n_wanted:
        _cut(lists, which, n_wanted)


@kernel
def _cut(lists: BestKeys, which: int, n_wanted: int) -> None:
    """Keep only the best of a list that has more, and note the least of them."""
    keys = lists.keys[which]
    _select(keys, lists.sizes[which], n_wanted)
    least = HIGHEST
    for place in range(n_wanted):
        least = min(least, keys[place])
    lists.sizes[which], lists.least[which] = n_wanted, least


@kernel
def _select(keys: Keys, n: int, n_wanted: int) -> None:
    """Move the largest of the first `n` keys, all distinct, to the front."""
    first, after = 0, n
    while after - first > _FEW:
        middle = first + (after - first) // 2
        one, two, three = keys[first], keys[middle], keys[after - 1]
        pivot = max(min(one, two), min(max(one, two), three))
        place = first
        for i in range(first, after):  # no branch: which are larger cannot be guessed
            key = keys[i]
            keys[i] = keys[place]
            keys[place] = key
            place += 1 if key > pivot else 0
        if place == n_wanted:
            return
        if place > n_wanted:
            after = place
        else:
            first = place
    for i in range(first + 1, after):
        key, place = keys[i], i
        while place > first and keys[place - 1] < key:
            keys[place] = keys[place - 1]
            place -= 1
        keys[place] = key


@kernel
def write_best(lists: BestKeys, which: int, best: Keys) -> None:
    """Write the best of a list, falling, with `HIGHEST` before and `LOWEST` behind them.

    `best` is int64 (1 + n_wanted,); the list is empty then.
    """
    n_wanted = len(best) - 1
    if lists.sizes[which] > n_wanted:
        _cut(lists, which, n_wanted)
    own = lists.keys[which, : lists.sizes[which]]
    own.sort()
    best[:] = LOWEST
    best[0] = HIGHEST
    for place in range(len(own)):
        best[1 + place] = own[len(own) - 1 - place]
    lists.sizes[which], lists.least[which] = 0, LOWEST
