"""The walk of a neighbour graph.

The graph is one flat array ``neighbours`` (n_nodes, M) int32, padded with -1 at the end of a row.
Similarity is the inner product, to which a node may add a bias of its own. Lists are descending,
ties by smaller id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.exact import dots_1x4, insert_sorted
from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Vectors = NDArray[np.float32]

__all__ = ["beam_search", "search_rows"]

_LAST_STAMP = np.int32(2**31 - 1)


@kernel
def _offer(
    query: Vectors,
    vectors: Vectors,
    bias: Vectors,
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
            value = values[t] + bias[fresh[j + t]] if len(bias) else values[t]
            if size == capacity and value < beam_similarities[capacity - 1]:
                continue
            place = insert_sorted(beam_ids, beam_similarities, size, fresh[j + t], value)
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
    bias: Vectors,
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
    bias : float32 (n_nodes,) or (0,)
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
    size, _ = _offer(query, vectors, bias, fresh, n_fresh, 0, beam_ids, beam_similarities, is_open)
    place = 0
    while place < size:
        if not is_open[place]:
            place += 1
            continue
        is_open[place] = False
        n_fresh = _keep_unseen(neighbours[beam_ids[place]], stamps, stamp, fresh)
        size, first_change = _offer(
            query, vectors, bias, fresh, n_fresh, size, beam_ids, beam_similarities, is_open
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
    bias: Vectors,
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
            bias,
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
