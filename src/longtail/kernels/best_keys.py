"""The largest keys of many, which come some at a time.

A list has room for twice as many as are wanted. What is larger than the least of the last cut is
written down, and only when there is no room left is the list cut to its best: so a key costs little
more than to store it, where to hold the list in order would cost a pass over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.jit import kernel, lean_kernel
from longtail.kernels.lanes import KEYS_AT_ONCE, ranks_of_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]
    Ids = NDArray[np.int32]

__all__ = [
    "GROUPS_A_KEY",
    "HIGHEST",
    "LOWEST",
    "BestKeys",
    "add_key",
    "cut_full",
    "empty_best_keys",
    "least_of_groups",
    "write_best",
]

LOWEST, HIGHEST = np.int64(-(1 << 62)), np.int64(1 << 62)
_SMALLEST = np.int64(-(1 << 30))  # what `LOWEST` has above the lower half of its bits
# Groups that numbers are dealt out to, so that few reach what as many as are wanted do.
GROUPS_A_KEY = 3
_FEW = 12  # keys that are sorted by insertion


class BestKeys(NamedTuple):
    """Some lists: ``keys`` (n_lists, room) int64, of which those before ``sizes`` (n_lists,) count.

    What is not above ``least`` (n_lists,) is not among the best of a list; ``ranks`` is scratch.
    """

    keys: Keys
    sizes: Ids
    least: Keys
    ranks: Keys


@kernel
def empty_best_keys(n_lists: int, n_wanted: int, n_at_once: int) -> BestKeys:
    """Return lists to which up to `n_at_once` keys are added before `cut_full` is called."""
    room = 2 * n_wanted + n_at_once + KEYS_AT_ONCE
    return BestKeys(
        np.empty((n_lists, room), np.int64),
        np.zeros(n_lists, np.int32),
        np.full(n_lists, LOWEST, np.int64),
        np.empty(room, np.int64),
    )


@lean_kernel
def add_key(lists: BestKeys, which: int, key: np.int64, n_wanted: int) -> None:
    """Add a key to a list."""
    lists.keys[which, lists.sizes[which]] = key
    lists.sizes[which] += 1
    cut_full(lists, which, n_wanted)


@lean_kernel
def cut_full(lists: BestKeys, which: int, n_wanted: int) -> None:
    """Keep only the best of a list, where it has no room for as many as come at once."""
    if lists.sizes[which] >= 2 * n_wanted:
        _cut(lists, which, n_wanted)


@lean_kernel
def _cut(lists: BestKeys, which: int, n_wanted: int) -> None:
    """Keep only the best of a list that has more, and note the least of them."""
    keys = lists.keys[which]
    _select(keys, lists.sizes[which], n_wanted)
    least = HIGHEST
    for place in range(n_wanted):
        least = min(least, keys[place])
    lists.sizes[which], lists.least[which] = n_wanted, least


@lean_kernel
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


@lean_kernel
def least_of_groups(values: Ids, n_wanted: int, groups: Keys) -> np.int64:
    """Return a number that at least `n_wanted` of the values reach, and few more.

    The values are dealt out to groups: of groups with the largest maxima, each has one that does.

    Parameters
    ----------
    values : int32 (n,)
        Above -2^30.
    n_wanted : int
    groups : int64 (GROUPS_A_KEY * n_wanted,)
        Scratch.

    Returns
    -------
    int64
        -2^30, if there are fewer values than two a group.
    """
    n_groups = len(groups)
    if len(values) < 2 * n_groups:
        return _SMALLEST
    for group in range(n_groups):
        groups[group] = values[group]
    for start in range(n_groups, len(values), n_groups):
        for group in range(min(n_groups, len(values) - start)):
            groups[group] = max(groups[group], np.int64(values[start + group]))
    for group in range(n_groups):
        groups[group] = groups[group] << np.int64(32) | np.int64(group)  # all distinct
    _select(groups, n_groups, n_wanted)
    least = groups[0]
    for group in range(1, n_wanted):
        least = min(least, groups[group])
    return np.int64(least >> np.int64(32))


@lean_kernel
def write_best(lists: BestKeys, which: int, best: Keys) -> None:
    """Write the best of a list, falling, with `HIGHEST` before and `LOWEST` behind them.

    `best` is int64 (1 + n_wanted,); the list is empty then.
    """
    n_wanted = len(best) - 1
    if lists.sizes[which] > n_wanted:
        _cut(lists, which, n_wanted)
    own = lists.keys[which, : lists.sizes[which]]
    best[:] = LOWEST
    best[0] = HIGHEST
    # Each is compared with all: no step of it has to be foreseen, as those of a sort have.
    ranks_of_keys(own, len(own), lists.ranks)
    for place in range(len(own)):
        best[1 + lists.ranks[place]] = own[place]
    lists.sizes[which], lists.least[which] = 0, LOWEST
