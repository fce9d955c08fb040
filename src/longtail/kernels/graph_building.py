"""The steps that build a neighbour graph, over vectors in seven bits a number.

Keys, and lists of them, are those of `longtail.kernels.nearest_codes`. Edges are rows, -1 for none:
what two rows have in common is multiplied out again where it is asked, since of millions of rows
keys of all edges, and of all that point back, would not fit into memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.best_keys import LOWEST, BestKeys, add_key, empty_best_keys, write_best
from longtail.kernels.byte_codes import (
    N_AT_ONCE,
    ByteCodes,
    ByteQueries,
    new_queries,
    products_of_listed,
    write_query,
)
from longtail.kernels.exact import dot
from longtail.kernels.jit import kernel, lean_kernel
from longtail.kernels.lanes import KEYS_AT_ONCE, insert_key
from longtail.kernels.nearest_codes import key_of, row_of, similarity_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]
    Starts = NDArray[np.int64]
    Vectors = NDArray[np.float32]

__all__ = [
    "add_reverse_edges",
    "hash_rows",
    "keys_of_listed",
    "mark_reachable",
    "project_rows",
    "prune_candidates",
    "reverse_edges",
    "write_neighbours",
]


@lean_kernel
def _holds(numbers: Any, wanted: Any) -> bool:
    """Tell whether `wanted` is among `numbers`, without making an array of answers."""
    found = False
    for number in numbers:
        found |= number == wanted
    return found


@lean_kernel
def _n_listed(rows: Ids) -> int:
    """Return how many of `rows` there are before the first -1."""
    n_listed = 0
    while n_listed < len(rows) and rows[n_listed] >= 0:
        n_listed += 1
    return n_listed


class _Pruner(NamedTuple):
    """Scratch: a query, the candidates that are left by place and by row, and products."""

    query: ByteQueries
    places: Ids
    rows: Ids
    products: Ids


@kernel
def _new_pruner(width: int, n_candidates: int) -> _Pruner:
    """Return scratch for so many candidates."""
    return _Pruner(
        new_queries(1, width),
        np.empty(n_candidates, np.int32),
        np.empty(n_candidates, np.int32),
        np.empty(n_candidates + N_AT_ONCE, np.int32),
    )


@lean_kernel
def _drop_occluded(vectors: ByteCodes, keys: Keys, n_left: int, pruner: _Pruner) -> int:
    """Keep those of the candidates left that are nearer to the row than to the first of them."""
    query, places, rows, products = pruner
    write_query(vectors, rows[0], query, 0)
    products_of_listed(query, vectors, rows, n_left, products)
    n_kept = 0
    for i in range(1, n_left):  # no branch: which are kept cannot be guessed
        place = places[i]
        places[n_kept], rows[n_kept] = place, rows[i]
        n_kept += 1 if products[i] < similarity_in(keys[place]) else 0
    return n_kept


@lean_kernel
def _select_diverse(vectors: ByteCodes, keys: Keys, chosen: Ids, pruner: _Pruner) -> None:
    """Fill `chosen` with candidates that no better chosen one is nearer to, then with the rest.

    The heuristic of Malkov and Yashunin, "HNSW" (2018), Algorithm 4, with pruned ones kept: a
    candidate that a chosen one already leads to is worth an edge only if there is room.

    Parameters
    ----------
    vectors : ByteCodes
    keys : int64 (1 + n_candidates,)
        A list; overwritten.
    chosen : int32 (n_neighbours,)
        Filled with rows, padded with -1.
    pruner : _Pruner
    """
    n_candidates = 0
    while n_candidates < len(keys) - 1 and keys[1 + n_candidates] != LOWEST:
        pruner.places[n_candidates] = 1 + n_candidates
        pruner.rows[n_candidates] = row_of(keys[1 + n_candidates])
        n_candidates += 1
    n_left, count = n_candidates, 0
    while n_left and count < len(chosen):
        best = pruner.places[0]
        chosen[count] = row_of(keys[best])
        keys[best] = LOWEST
        count += 1
        n_left = _drop_occluded(vectors, keys, n_left, pruner) if count < len(chosen) else 0
    for place in range(1, 1 + n_candidates):
        if count < len(chosen) and keys[place] != LOWEST:
            chosen[count] = row_of(keys[place])
            count += 1
    chosen[count:] = -1


@kernel
def prune_candidates(vectors: ByteCodes, start: int, near: Keys, far: Ids, edges: Ids) -> None:
    """Choose the out-edges of consecutive rows from two lists of candidates.

    Parameters
    ----------
    vectors : ByteCodes
    start : int
        The first of the rows, as many as there are lists in `near`.
    near : int64 (n_rows, 1 + n_near)
        Lists.
    far : int32 (n_rows, n_far)
        Rows, padded with -1; some may be near ones, too, or the row itself.
    edges : int32 (n, n_neighbours)
        Filled from `start` on, padded with -1.
    """
    n_near, n_far = near.shape[1] - 1, far.shape[1]
    both = np.empty(1 + n_near + n_far, np.int64)
    pruner = _new_pruner(vectors.codes.shape[1], n_near + n_far)
    for i in range(len(near)):
        for place in range(len(both)):
            both[place] = near[i, place] if place <= n_near else LOWEST
        n_listed = _n_listed(far[i])
        write_query(vectors, start + i, pruner.query, 0)
        products_of_listed(pruner.query, vectors, far[i], n_listed, pruner.products)
        for place in range(n_listed):
            key = key_of(pruner.products[place], far[i, place])
            if far[i, place] != start + i and not _holds(near[i], key):
                insert_key(both, key)
        _select_diverse(vectors, both, edges[start + i], pruner)


@kernel
def reverse_edges(edges: Ids) -> tuple[Starts, Ids]:
    """Return the rows that point to each row, falling, and where those of each start (n + 1,)."""
    starts = np.zeros(edges.shape[0] + 1, np.int64)
    for row in range(edges.shape[0]):
        for other in edges[row, : _n_listed(edges[row])]:
            starts[other + 1] += 1
    for row in range(edges.shape[0]):
        starts[row + 1] += starts[row]
    free = starts[1:].copy()
    reverse = np.empty(starts[-1], np.int32)
    for row in range(edges.shape[0]):
        for other in edges[row, : _n_listed(edges[row])]:
            free[other] -= 1
            reverse[free[other]] = row
    return starts, reverse


@lean_kernel
def _add_rows(
    vectors: ByteCodes, listed: Ids, known: Ids, lists: BestKeys, capacity: int, pruner: _Pruner
) -> None:
    """Add to the first list those of the listed that are not known; the query is written."""
    at_once = len(pruner.rows)
    for start in range(0, len(listed), at_once):
        some = listed[start : start + at_once]
        products_of_listed(pruner.query, vectors, some, len(some), pruner.products)
        for place in range(len(some)):
            key = key_of(pruner.products[place], some[place])
            if key > lists.least[0] and not _holds(known, some[place]):
                add_key(lists, 0, key, capacity)


@kernel
def add_reverse_edges(
    vectors: ByteCodes,
    rows: Ids,
    start: int,
    stop: int,
    edges: Ids,
    reverse_starts: Starts,
    reverse: Ids,
) -> None:
    """Choose the out-edges of some rows anew, among them and those that point to them.

    Parameters
    ----------
    vectors : ByteCodes
    rows : int32 (n,)
    start, stop : int
        Which of `rows`.
    edges : int32 (n, n_neighbours)
        Of `rows`; overwritten.
    reverse_starts, reverse : int64 (n + 1,), int32
        See `reverse_edges`. Of those of a hub only the nearest are kept.
    """
    capacity = -(-4 * edges.shape[1] // KEYS_AT_ONCE) * KEYS_AT_ONCE
    both, lists = np.empty(1 + capacity, np.int64), empty_best_keys(1, capacity, 1)
    pruner = _new_pruner(vectors.codes.shape[1], capacity)
    for i in range(start, stop):
        own = edges[i, : _n_listed(edges[i])]
        back = reverse[reverse_starts[i] : reverse_starts[i + 1]]
        write_query(vectors, rows[i], pruner.query, 0)
        _add_rows(vectors, own, own[:0], lists, capacity, pruner)
        _add_rows(vectors, back, own, lists, capacity, pruner)
        write_best(lists, 0, both)
        _select_diverse(vectors, both, edges[i], pruner)


@kernel
def keys_of_listed(vectors: ByteCodes, rows: Ids, listed: Ids, keys: Keys) -> None:
    """Write the keys of the rows that are listed for each of some rows.

    Parameters
    ----------
    vectors : ByteCodes
    rows : int32 (n,)
    listed : int32 (n, n_listed)
        Rows, or -1.
    keys : int64 (n, n_listed)
        Written in the order of `listed`, `LOWEST` for each -1.
    """
    n_listed = listed.shape[1]
    query = new_queries(1, vectors.codes.shape[1])
    others, products = np.empty(n_listed, np.int32), np.empty(n_listed + N_AT_ONCE, np.int32)
    for i in range(len(rows)):
        for place in range(n_listed):
            others[place] = max(listed[i, place], np.int32(0))
        write_query(vectors, rows[i], query, 0)
        products_of_listed(query, vectors, others, n_listed, products)
        for place in range(n_listed):
            other = listed[i, place]
            keys[i, place] = key_of(products[place], other) if other >= 0 else LOWEST


@lean_kernel
def write_neighbours(edges: Ids, nodes: Ids, neighbours: Ids) -> None:
    """Write the nodes that each node points to, padded with -1.

    Parameters
    ----------
    edges : int32 (n, n_neighbours)
        Of rows.
    nodes : int32 (n,)
        The node that each row is of.
    neighbours : int32 (n, n_neighbours)
    """
    for row in range(len(edges)):
        for place in range(edges.shape[1]):
            other = edges[row, place]
            neighbours[nodes[row], place] = nodes[other] if other >= 0 else -1


@kernel
def hash_rows(bits: NDArray[np.uint32], start: int, stop: int, hashes: NDArray[np.uint64]) -> None:
    """Write a 64-bit hash of some rows of `bits` (n, d), mixed like splitmix64 at each number."""
    for row in range(start, stop):
        state = np.uint64(0)
        for t in range(bits.shape[1]):
            state = (state ^ np.uint64(bits[row, t])) * np.uint64(0xBF58476D1CE4E5B9)
            state ^= state >> np.uint64(29)
            state += np.uint64(0x9E3779B97F4A7C15)
        hashes[row] = state


@kernel
def project_rows(
    vectors: Vectors, rows: Ids, direction: Vectors, start: int, stop: int, places: Vectors
) -> None:
    """Fill ``places[start:stop]`` with the inner products of those of `rows` and `direction`."""
    for i in range(start, stop):
        places[i] = dot(vectors[rows[i]], direction)


@kernel
def mark_reachable(neighbours: Ids, source: int, is_reached: NDArray[np.bool_], queue: Ids) -> None:
    """Mark every node that can be walked to from `source`; `queue` (n,) is scratch."""
    queue[0] = source
    is_reached[source] = True
    head, tail = 0, 1
    while head < tail:
        for node in neighbours[queue[head]]:
            if node < 0:
                break
            if not is_reached[node]:
                is_reached[node] = True
                queue[tail] = node
                tail += 1
        head += 1
