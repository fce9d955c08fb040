"""Inner loops of the neighbour graph: beam search, and the steps that build the graph.

The graph is one flat array ``neighbours`` (n_nodes, M) int32, padded with -1 at the end of a row.
Similarity is the inner product. Candidate lists are descending, ties by smaller id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.exact import dot, dots_1x4, insert_sorted, products_of_four
from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Vectors = NDArray[np.float32]

__all__ = [
    "add_reverse_edges",
    "beam_search",
    "hash_rows",
    "join_candidates",
    "mark_reachable",
    "merge_candidates",
    "project_rows",
    "prune_candidates",
    "search_rows",
]

_LAST_STAMP = np.int32(2**31 - 1)


@kernel
def _offer(
    query: Vectors,
    vectors: Vectors,
    fresh: Ids,
    n_fresh: int,
    size: int,
    beam_ids: Ids,
    beam_similarities: Vectors,
    is_open: NDArray[np.bool_],
) -> tuple[int, int]:
    """Offer `fresh` nodes to the beam; return its size and the first place that changed."""
    capacity, first_change = len(beam_ids), len(beam_ids)
    for j in range(0, n_fresh, 4):
        last = n_fresh - 1
        values = dots_1x4(
            query,
            vectors,
            fresh[j],
            fresh[min(j + 1, last)],
            fresh[min(j + 2, last)],
            fresh[min(j + 3, last)],
        )
        for t in range(min(4, n_fresh - j)):
            if size == capacity and values[t] < beam_similarities[capacity - 1]:
                continue
            place = insert_sorted(beam_ids, beam_similarities, size, fresh[j + t], values[t])
            if place < 0:
                continue
            for behind in range(min(size, capacity - 1), place, -1):
                is_open[behind] = is_open[behind - 1]
            is_open[place] = True
            size = min(size + 1, capacity)
            first_change = min(first_change, place)
    return size, first_change


@kernel
def _keep_unseen(nodes: Ids, stamps: Ids, stamp: int, fresh: Ids) -> int:
    """Copy the nodes not yet seen under `stamp` to `fresh`, mark them; return how many."""
    n_fresh = 0
    for node in nodes:
        if node < 0:
            break
        if stamps[node] != stamp:
            stamps[node] = stamp
            fresh[n_fresh] = node
            n_fresh += 1
    return n_fresh


@kernel
def beam_search(
    query: Vectors,
    vectors: Vectors,
    neighbours: Ids,
    entries: Ids,
    stamps: Ids,
    fresh: Ids,
    beam_ids: Ids,
    beam_similarities: Vectors,
    is_open: NDArray[np.bool_],
) -> int:
    """Walk the graph best-first from the entry nodes; return how many nodes the beam holds.

    Algorithm 1 of Jayaram Subramanya et al., "DiskANN" (NeurIPS 2019), with several entry nodes.

    Parameters
    ----------
    query : float32 (d,)
    vectors : float32 (n_nodes, d)
    neighbours : int32 (n_nodes, M)
    entries : int32 (n_entries,)
    stamps : int32 (n_nodes + 1,)
        Scratch, zeros at first and kept between calls: the last call that saw each node; the
        last element counts the calls.
    fresh : int32 (max(M, n_entries),)
        Scratch.
    beam_ids, beam_similarities, is_open : int32, float32, bool (beam,)
        Out: the best nodes found, best first. `is_open` is scratch.
    """
    if stamps[-1] == _LAST_STAMP:
        stamps[:] = 0
    stamps[-1] += 1
    stamp = stamps[-1]
    n_fresh = _keep_unseen(entries, stamps, stamp, fresh)
    size, _ = _offer(query, vectors, fresh, n_fresh, 0, beam_ids, beam_similarities, is_open)
    place = 0
    while place < size:
        if not is_open[place]:
            place += 1
            continue
        is_open[place] = False
        n_fresh = _keep_unseen(neighbours[beam_ids[place]], stamps, stamp, fresh)
        size, first_change = _offer(
            query, vectors, fresh, n_fresh, size, beam_ids, beam_similarities, is_open
        )
        place = min(place + 1, first_change)
    return size


@kernel
def _expand_members(
    nodes: Ids,
    node_similarities: Vectors,
    member_starts: Ids,
    members: Ids,
    ids: Ids,
    similarities: Vectors,
) -> None:
    """Replace each node by the rows that share its vector, ordered by similarity, then row."""
    filled = 0
    for place in range(len(nodes)):
        value = node_similarities[place]
        if filled == len(ids) and value < similarities[-1]:
            break
        for position in range(member_starts[nodes[place]], member_starts[nodes[place] + 1]):
            if insert_sorted(ids, similarities, filled, members[position], value) < 0:
                break
            filled = min(filled + 1, len(ids))


@kernel
def search_rows(
    queries: Vectors,
    start: int,
    stop: int,
    vectors: Vectors,
    neighbours: Ids,
    entries: Ids,
    member_starts: Ids,
    members: Ids,
    beam: int,
    stamps: Ids,
    ids: Ids,
    similarities: Vectors,
) -> None:
    """Answer rows `start` to `stop` of `queries`; see `beam_search` for the other arguments.

    `member_starts` (n_nodes + 1,) and `members` (n_rows,) list the rows behind each node, in
    ascending order. `ids` and `similarities` (n_queries, k) are filled, padded with -1 and -inf.
    """
    fresh = np.empty(max(neighbours.shape[1], len(entries)), np.int32)
    beam_ids = np.empty(beam, np.int32)
    beam_similarities = np.empty(beam, np.float32)
    is_open = np.empty(beam, np.bool_)
    ids[start:stop] = -1
    similarities[start:stop] = -np.inf
    for row in range(start, stop):
        size = beam_search(
            queries[row],
            vectors,
            neighbours,
            entries,
            stamps,
            fresh,
            beam_ids,
            beam_similarities,
            is_open,
        )
        _expand_members(
            beam_ids[:size],
            beam_similarities[:size],
            member_starts,
            members,
            ids[row],
            similarities[row],
        )


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
def _holds(ids: Ids, wanted: int) -> bool:
    """Tell whether `wanted` is among `ids`, without making an array of answers."""
    found = False
    for other in ids:
        found |= other == wanted
    return found


@kernel
def merge_candidates(
    rows: Ids, new_ids: Ids, new_similarities: Vectors, ids: Ids, similarities: Vectors
) -> None:
    """Merge found neighbours into the candidate lists of `rows`, leaving out what is there.

    `new_ids` (len(rows), m) may hold -1 and the row itself; both are left out. `ids` and
    `similarities` (n, capacity) are descending, padded with -1 and -inf.
    """
    for i in range(len(rows)):
        row = rows[i]
        for j in range(new_ids.shape[1]):
            new, value = new_ids[i, j], new_similarities[i, j]
            if new < 0 or new == row or value < similarities[row, -1]:
                continue
            if not _holds(ids[row], new):
                insert_sorted(ids[row], similarities[row], ids.shape[1], new, value)


@kernel
def join_candidates(
    first: int,
    last: int,
    vectors: Vectors,
    rows: Ids,
    row_starts: NDArray[np.int64],
    members: Ids,
    member_starts: NDArray[np.int64],
    member_vectors: Vectors,
    ids: Ids,
    similarities: Vectors,
) -> None:
    """Offer the members of the groups `first` to `last` to the rows of the same groups.

    Parameters
    ----------
    first, last : int
    vectors : float32 (n, d)
    rows, members : int32 (n_rows,), (n_members,)
        Those of group g are ``rows[row_starts[g]:row_starts[g + 1]]``, and so for the members. No
        member is in the candidate list of the row yet; a row that is a member is left out.
    row_starts, member_starts : int64 (n_groups + 1,)
    member_vectors : float32 (n_members, d)
    ids, similarities : int32, float32 (n, capacity)
        Descending, padded with -1 and -inf.
    """
    capacity = ids.shape[1]
    largest = 0
    for group in range(first, last):
        largest = max(largest, member_starts[group + 1] - member_starts[group])
    products = np.empty((4, largest + 3), np.float32)
    for group in range(first, last):
        start, end = member_starts[group], member_starts[group + 1]
        row_end = row_starts[group + 1]
        for i in range(row_starts[group], row_end, 4):
            i1, i2, i3 = min(i + 1, row_end - 1), min(i + 2, row_end - 1), min(i + 3, row_end - 1)
            four = rows[i], rows[i1], rows[i2], rows[i3]
            products_of_four(vectors, four, member_vectors, start, end, products)
            for place in range(i, min(i + 4, row_end)):
                row = rows[place]
                worst = similarities[row, -1]
                for j in range(end - start):
                    other, value = members[start + j], products[place - i, j]
                    if value >= worst and other != row:
                        insert_sorted(ids[row], similarities[row], capacity, other, value)
                        worst = similarities[row, -1]


@kernel
def _is_occluded(vectors: Vectors, node: int, similarity: np.float32, chosen: Ids) -> bool:
    """Tell whether one of `chosen` is at least as similar to `node`."""
    last = len(chosen) - 1
    for j in range(0, len(chosen), 4):
        values = dots_1x4(
            vectors[node],
            vectors,
            chosen[j],
            chosen[min(j + 1, last)],
            chosen[min(j + 2, last)],
            chosen[min(j + 3, last)],
        )
        if max(values) >= similarity:
            return True
    return False


@kernel
def _select_diverse(
    vectors: Vectors,
    candidates: Ids,
    similarities: Vectors,
    chosen: Ids,
    chosen_similarities: Vectors,
) -> None:
    """Fill `chosen` with candidates that no better chosen one is nearer to, then with the rest.

    The heuristic of Malkov and Yashunin, "HNSW" (2018), Algorithm 4, with pruned ones kept: a
    candidate that a chosen one already leads to is worth an edge only if there is room.
    """
    chosen[:] = -1
    chosen_similarities[:] = -np.inf
    is_left = candidates >= 0
    count = 0
    for diverse_only in (True, False):
        for place in range(len(candidates)):
            node, similarity = candidates[place], similarities[place]
            if node < 0 or count == len(chosen):
                break
            if not is_left[place]:
                continue
            if diverse_only and _is_occluded(vectors, node, similarity, chosen[:count]):
                continue
            chosen[count], chosen_similarities[count] = node, similarity
            is_left[place] = False
            count += 1


@kernel
def prune_candidates(
    nodes: Ids,
    vectors: Vectors,
    near: Ids,
    near_similarities: Vectors,
    far: Ids,
    far_similarities: Vectors,
    neighbours: Ids,
    similarities: Vectors,
) -> None:
    """Choose the out-edges of `nodes`, and note their similarities, from two candidate lists."""
    n_near, capacity = near.shape[1], near.shape[1] + far.shape[1]
    both = np.empty(capacity, np.int32)
    values = np.empty(capacity, np.float32)
    for node in nodes:
        both[:n_near] = near[node]
        both[n_near:] = -1
        values[:n_near] = near_similarities[node]
        values[n_near:] = -np.inf
        for place in range(far.shape[1]):
            other = far[node, place]
            if other >= 0 and not _holds(near[node], other):
                insert_sorted(both, values, capacity, other, far_similarities[node, place])
        _select_diverse(vectors, both, values, neighbours[node], similarities[node])


@kernel
def project_rows(
    vectors: Vectors, rows: Ids, direction: Vectors, start: int, stop: int, places: Vectors
) -> None:
    """Fill ``places[start:stop]`` with the inner products of those of `rows` and `direction`."""
    for i in range(start, stop):
        places[i] = dot(vectors[rows[i]], direction)


@kernel
def add_reverse_edges(
    nodes: Ids,
    vectors: Vectors,
    forward: Ids,
    forward_similarities: Vectors,
    reverse_starts: NDArray[np.int64],
    reverse: Ids,
    reverse_similarities: Vectors,
    neighbours: Ids,
) -> None:
    """Choose the final out-edges of each of `nodes` from its own and those that point to it.

    `reverse_starts` (n + 1,) and `reverse` list the nodes that point to each node. Of those of a
    hub only the nearest are looked at.
    """
    capacity = 4 * forward.shape[1]
    candidates = np.empty(capacity, np.int32)
    similarities = np.empty(capacity, np.float32)
    unused = np.empty(forward.shape[1], np.float32)
    for node in nodes:
        candidates[:] = -1
        similarities[:] = -np.inf
        for place in range(forward.shape[1]):
            if forward[node, place] >= 0:
                value = forward_similarities[node, place]
                insert_sorted(candidates, similarities, capacity, forward[node, place], value)
        for place in range(reverse_starts[node], reverse_starts[node + 1]):
            other, value = reverse[place], reverse_similarities[place]
            if value >= similarities[-1] and not _holds(forward[node], other):
                insert_sorted(candidates, similarities, capacity, other, value)
        _select_diverse(vectors, candidates, similarities, neighbours[node], unused)


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
