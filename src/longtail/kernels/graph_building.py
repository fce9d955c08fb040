"""The steps that build a neighbour graph, over vectors in eight bits a number.

A key holds a similarity, a whole number of `longtail.kernels.byte_codes`, above what makes the
smaller of two row numbers the larger key: so lists of candidates are falling lists of numbers.
Lists begin at their second place; see `insert_key`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.best_keys import (
    HIGHEST,
    LOWEST,
    BestKeys,
    add_key,
    cut_full,
    empty_best_keys,
    write_best,
)
from longtail.kernels.byte_codes import (
    N_AT_ONCE,
    N_MASKED,
    ByteCodes,
    ByteQueries,
    at_least,
    lowest_bit,
    new_queries,
    products_of_listed,
    products_of_range,
    write_query,
)
from longtail.kernels.exact import dot
from longtail.kernels.jit import kernel
from longtail.kernels.lanes import KEYS_AT_ONCE, insert_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]
    Starts = NDArray[np.int64]
    Vectors = NDArray[np.float32]

__all__ = [
    "LOWEST",
    "ROWS_JOINED",
    "add_reverse_edges",
    "empty_keys",
    "hash_rows",
    "join_clusters",
    "mark_reachable",
    "nearest_rows",
    "project_rows",
    "prune_candidates",
    "reverse_edges",
    "row_of",
    "similarity_in",
    "write_neighbours",
]

_BITS, _LAST = np.int64(32), np.int64((1 << 31) - 1)
_ROWS_AT_ONCE = 64  # and as many others: both stay in the nearest cache
ROWS_JOINED = 256


def empty_keys(n_rows: int, capacity: int) -> Keys:
    """Return empty lists for at least so many keys each, (n_rows, 1 + a multiple of eight)."""
    keys = np.full((n_rows, 1 + -(-capacity // KEYS_AT_ONCE) * KEYS_AT_ONCE), LOWEST)
    keys[:, 0] = HIGHEST
    return keys


@kernel
def _key(similarity: int, row: int) -> np.int64:
    """Return the key of a row."""
    return np.int64(similarity) << _BITS | (_LAST - np.int64(row))


@kernel
def row_of(key: Any) -> Any:
    """Return the row that a key is of, or the rows of an array of keys."""
    return _LAST - (key & _LAST)


@kernel
def similarity_in(key: Any) -> Any:
    """Return the similarity that a key holds, or those of an array of keys."""
    return key >> _BITS


class _Panel(NamedTuple):
    """Scratch: queries, some of them, and their products."""

    queries: ByteQueries
    some: Ids
    products: Ids


@kernel
def _new_panel(n_queries: int, width: int) -> _Panel:
    """Return scratch for so many queries; at first, `some` is all."""
    some = np.empty(n_queries + N_AT_ONCE, np.int32)
    for place in range(len(some)):
        some[place] = min(place, n_queries - 1)
    products = np.empty((N_AT_ONCE, N_MASKED), np.int32)
    return _Panel(new_queries(n_queries, width), some, products)


@kernel
def _write_queries(vectors: ByteCodes, start: int, n_queries: int, panel: _Panel) -> None:
    """Write consecutive rows as queries."""
    for i in range(n_queries):
        write_query(vectors, start + i, panel.queries, i)


@kernel
def _offer_range(
    panel: _Panel,
    n_some: int,
    vectors: ByteCodes,
    start: int,
    stop: int,
    lists: BestKeys,
    n_wanted: int,
    itself: int,
) -> None:
    """Offer consecutive rows to the lists of some queries.

    Row ``itself + i`` is query i itself, and left out.
    """
    for block in range(start, stop, N_MASKED):
        end = min(block + N_MASKED, stop)
        n_behind = np.uint64(N_MASKED - (end - block))
        for i in range(0, n_some, N_AT_ONCE):
            products_of_range(panel.queries, panel.some, i, vectors, block, end, panel.products)
            for place in range(i, min(i + N_AT_ONCE, n_some)):
                query = panel.some[place]
                keys, size, least = lists.keys[query], lists.sizes[query], lists.least[query]
                worst = np.int32(similarity_in(least))
                mask = at_least(panel.products, place - i, worst) << n_behind >> n_behind
                while mask != np.uint64(0):
                    j = lowest_bit(mask)
                    mask &= mask - np.uint64(1)
                    key = _key(panel.products[place - i, j], block + j)
                    keys[size] = key
                    size += 1 if key > least and block + j != itself + query else 0
                lists.sizes[query] = size
                cut_full(lists, query, n_wanted)


@kernel
def nearest_rows(vectors: ByteCodes, start: int, stop: int, others: ByteCodes, keys: Keys) -> None:
    """Find the nearest of `others` to each row from `start` to `stop`.

    Parameters
    ----------
    vectors, others : ByteCodes
    start, stop : int
    keys : int64 (stop - start, 1 + n_wanted)
        Written: see `empty_keys`.
    """
    panel = _new_panel(_ROWS_AT_ONCE, vectors.codes.shape[1])
    n_others, n_wanted = len(others.factors), keys.shape[1] - 1
    lists = empty_best_keys(_ROWS_AT_ONCE, n_wanted, N_MASKED)
    for first in range(start, stop, _ROWS_AT_ONCE):
        n_rows = min(_ROWS_AT_ONCE, stop - first)
        _write_queries(vectors, first, n_rows, panel)
        _offer_range(panel, n_rows, others, 0, n_others, lists, n_wanted, n_others)
        for i in range(n_rows):
            write_best(lists, i, keys[first - start + i])


class _Links(NamedTuple):
    """Scratch: for each cluster the first of a chain of queries, and how the chains go on."""

    heads: Ids
    following: Ids
    clusters: Ids


@kernel
def _new_links(n_clusters: int, n_links: int) -> _Links:
    """Return empty chains."""
    heads = np.full(n_clusters, np.int32(-1), np.int32)
    return _Links(heads, np.empty(n_links, np.int32), np.empty(n_links, np.int32))


@kernel
def _link_probes(probes: Keys, n_queries: int, links: _Links) -> int:
    """Chain the queries that are compared with the same cluster; return how many clusters."""
    n_probes, n_clusters = probes.shape[1] - 1, 0
    for rank in range(n_probes):  # nearest first: then the others find few that are nearer
        for query in range(n_queries):
            key = probes[query, 1 + rank]
            if key == LOWEST:
                continue
            cluster = row_of(key)
            if links.heads[cluster] < 0:
                links.clusters[n_clusters] = cluster
                n_clusters += 1
            links.following[query * n_probes + rank] = links.heads[cluster]
            links.heads[cluster] = query * n_probes + rank
    return n_clusters


@kernel
def _take_chain(cluster: int, n_probes: int, links: _Links, some: Ids) -> int:
    """Write the queries of a chain, empty it, and return how many there are."""
    n_some, link = 0, links.heads[cluster]
    while link >= 0:
        some[n_some] = link // n_probes
        n_some += 1
        link = links.following[link]
    some[n_some : n_some + N_AT_ONCE - 1] = some[0]
    links.heads[cluster] = -1
    return n_some


@kernel
def join_clusters(vectors: ByteCodes, starts: Starts, probes: Keys, first: int, keys: Keys) -> None:
    """Find the nearest to each of consecutive rows in some clusters, itself left out.

    Parameters
    ----------
    vectors : ByteCodes
    starts : int64 (n_clusters + 1,)
        Cluster c is the rows ``starts[c]`` to ``starts[c + 1]``.
    probes : int64 (n_rows, 1 + n_probes)
        Lists of the clusters that each row is compared with.
    first : int
        The first of the rows.
    keys : int64 (n_rows, 1 + n_wanted)
        Written: see `empty_keys`.

    Notes
    -----
    Rows side by side are compared with much the same clusters, and share the reading of them.
    """
    n_probes, n_wanted = probes.shape[1] - 1, keys.shape[1] - 1
    panel = _new_panel(ROWS_JOINED, vectors.codes.shape[1])
    lists = empty_best_keys(ROWS_JOINED, n_wanted, N_MASKED)
    links = _new_links(len(starts) - 1, ROWS_JOINED * n_probes)
    for begin in range(0, len(keys), ROWS_JOINED):
        n_rows, row = min(ROWS_JOINED, len(keys) - begin), first + begin
        _write_queries(vectors, row, n_rows, panel)
        for place in range(_link_probes(probes[begin:], n_rows, links)):
            cluster = links.clusters[place]
            n_some = _take_chain(cluster, n_probes, links, panel.some)
            start, stop = starts[cluster], starts[cluster + 1]
            _offer_range(panel, n_some, vectors, start, stop, lists, n_wanted, row)
        for i in range(n_rows):
            write_best(lists, i, keys[begin + i])


@kernel
def _holds(keys: Keys, wanted: np.int64) -> bool:
    """Tell whether `wanted` is among `keys`, without making an array of answers."""
    found = False
    for key in keys:
        found |= key == wanted
    return found


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


@kernel
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


@kernel
def _select_diverse(vectors: ByteCodes, keys: Keys, chosen: Keys, pruner: _Pruner) -> None:
    """Fill `chosen` with candidates that no better chosen one is nearer to, then with the rest.

    The heuristic of Malkov and Yashunin, "HNSW" (2018), Algorithm 4, with pruned ones kept: a
    candidate that a chosen one already leads to is worth an edge only if there is room.

    Parameters
    ----------
    vectors : ByteCodes
    keys : int64 (1 + n_candidates,)
        A list; overwritten.
    chosen : int64 (n_neighbours,)
        Filled, padded with `LOWEST`.
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
        chosen[count] = keys[best]
        keys[best] = LOWEST
        count += 1
        n_left = _drop_occluded(vectors, keys, n_left, pruner) if count < len(chosen) else 0
    for place in range(1, 1 + n_candidates):
        if count < len(chosen) and keys[place] != LOWEST:
            chosen[count] = keys[place]
            count += 1
    chosen[count:] = LOWEST


@kernel
def prune_candidates(
    vectors: ByteCodes,
    start: int,
    near: Keys,
    far: Keys,
    row_of_far: Ids,
    edges: Keys,
) -> None:
    """Choose the out-edges of consecutive rows from two lists of candidates.

    Parameters
    ----------
    vectors : ByteCodes
    start : int
        The first of the rows, as many as there are lists in `near`.
    near, far : int64 (n_rows, 1 + n_near), (n_rows, 1 + n_far)
        Lists of rows, and of places in `row_of_far`.
    row_of_far : int32
    edges : int64 (n, n_neighbours)
        Filled from `start` on, padded with `LOWEST`.
    """
    n_near, n_far = near.shape[1] - 1, far.shape[1] - 1
    both = np.empty(1 + n_near + n_far, np.int64)
    pruner = _new_pruner(vectors.codes.shape[1], n_near + n_far)
    for i in range(len(near)):
        for place in range(len(both)):
            both[place] = near[i, place] if place <= n_near else LOWEST
        for place in range(1, far.shape[1]):
            if far[i, place] == LOWEST:
                break
            other = row_of_far[row_of(far[i, place])]
            key = _key(similarity_in(far[i, place]), other)
            if other != start + i and not _holds(near[i], key):
                insert_key(both, key)
        _select_diverse(vectors, both, edges[start + i], pruner)


@kernel
def reverse_edges(edges: Keys) -> tuple[Starts, Keys]:
    """Return the rows that point to each row, as starts (n + 1,) and keys, by falling row."""
    starts = np.zeros(edges.shape[0] + 1, np.int64)
    for row in range(edges.shape[0]):
        for key in edges[row]:
            if key != LOWEST:
                starts[row_of(key) + 1] += 1
    for row in range(edges.shape[0]):
        starts[row + 1] += starts[row]
    free = starts[1:].copy()
    keys = np.empty(starts[-1], np.int64)
    for row in range(edges.shape[0]):
        for key in edges[row]:
            if key != LOWEST:
                other = row_of(key)
                free[other] -= 1
                keys[free[other]] = _key(similarity_in(key), row)
    return starts, keys


@kernel
def add_reverse_edges(
    vectors: ByteCodes, start: int, stop: int, edges: Keys, reverse_starts: Starts, reverse: Keys
) -> None:
    """Choose the out-edges of consecutive rows anew, among them and those that point to them.

    Parameters
    ----------
    vectors : ByteCodes
    start, stop : int
    edges : int64 (n, n_neighbours)
        Overwritten.
    reverse_starts, reverse : int64
        See `reverse_edges`. Of those of a hub only the nearest are looked at.
    """
    capacity = -(-4 * edges.shape[1] // KEYS_AT_ONCE) * KEYS_AT_ONCE
    both, lists = np.empty(1 + capacity, np.int64), empty_best_keys(1, capacity, 1)
    pruner = _new_pruner(vectors.codes.shape[1], capacity)
    for row in range(start, stop):
        for key in edges[row]:
            if key != LOWEST:
                add_key(lists, 0, key, capacity)
        for place in range(reverse_starts[row], reverse_starts[row + 1]):
            key = reverse[place]
            if key > lists.least[0] and not _holds(edges[row], key):
                add_key(lists, 0, key, capacity)
        write_best(lists, 0, both)
        _select_diverse(vectors, both, edges[row], pruner)


@kernel
def write_neighbours(edges: Keys, nodes: Ids, neighbours: Ids) -> None:
    """Write the nodes that each node points to, padded with -1.

    Parameters
    ----------
    edges : int64 (n, n_neighbours)
        Of rows.
    nodes : int32 (n,)
        The node that each row is of.
    neighbours : int32 (n, n_neighbours)
    """
    for row in range(len(edges)):
        for place in range(edges.shape[1]):
            key = edges[row, place]
            neighbours[nodes[row], place] = nodes[row_of(key)] if key != LOWEST else -1


@kernel
def hash_rows(bits: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row of `bits` (n, d), mixed like splitmix64 at each number."""
    hashes = np.zeros(bits.shape[0], np.uint64)
    for row in range(bits.shape[0]):
        state = np.uint64(0)
        for t in range(bits.shape[1]):
            state = (state ^ np.uint64(bits[row, t])) * np.uint64(0xBF58476D1CE4E5B9)
            state ^= state >> np.uint64(29)
            state += np.uint64(0x9E3779B97F4A7C15)
        hashes[row] = state
    return hashes


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
