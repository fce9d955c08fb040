"""The walk of a neighbour graph.

Similarity is the inner product, to which a node may add a bias of its own. Lists are descending,
ties by smaller id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.exact import dots_1x4, insert_sorted
from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Vectors = NDArray[np.float32]

__all__ = ["Beam", "Graph", "beam_search", "search_rows"]

_LAST_STAMP = np.int32(2**31 - 1)


class Graph(NamedTuple):
    """The arrays of a `longtail.index.graph.GraphIndex`.

    Attributes
    ----------
    vectors : float32 (n_nodes, d)
    bias : float32 (n_nodes,) or (0,)
    neighbours : int32 (n_nodes, M)
        Padded with -1 at the end of a row.
    entries : int32 (n_entries,)
    member_starts, members : int32 (n_nodes + 1,), (n_rows,)
        The rows behind each node, in ascending order.
    """

    vectors: Vectors
    bias: Vectors
    neighbours: Ids
    entries: Ids
    member_starts: Ids
    members: Ids


class Beam(NamedTuple):
    """The best nodes that a walk has seen, best first, and whether their edges are to be followed.

    Attributes
    ----------
    ids, similarities, is_open : int32, float32, bool (beam,)
    """

    ids: Ids
    similarities: Vectors
    is_open: NDArray[np.bool_]


@kernel
def _offer(
    query: Vectors, graph: Graph, fresh: Ids, n_fresh: int, size: int, beam: Beam
) -> tuple[int, int]:
    """Offer `fresh` nodes to the beam; return its size and the first place that changed."""
    capacity, first_change, last = len(beam.ids), len(beam.ids), n_fresh - 1
    for j in range(0, n_fresh, 4):
        values = dots_1x4(
            query,
            graph.vectors,
            fresh[j],
            fresh[min(j + 1, last)],
            fresh[min(j + 2, last)],
            fresh[min(j + 3, last)],
        )
        for t in range(min(4, n_fresh - j)):
            node, value = fresh[j + t], values[t]
            if len(graph.bias):
                value += graph.bias[node]
            if size == capacity and value < beam.similarities[capacity - 1]:
                continue
            place = insert_sorted(beam.ids, beam.similarities, size, node, value)
            if place < 0:
                continue
            for behind in range(min(size, capacity - 1), place, -1):
                beam.is_open[behind] = beam.is_open[behind - 1]
            beam.is_open[place] = True
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
def beam_search(query: Vectors, graph: Graph, stamps: Ids, fresh: Ids, beam: Beam) -> int:
    """Walk the graph best-first from the entry nodes; return how many nodes the beam holds.

    Algorithm 1 of Jayaram Subramanya et al., "DiskANN" (NeurIPS 2019), with several entry nodes.

    Parameters
    ----------
    query : float32 (d,)
    graph : Graph
    stamps : int32 (n_nodes + 1,)
        Scratch, zeros at first and kept between calls: the last call that saw each node; the
        last element counts the calls.
    fresh : int32 (max(M, n_entries),)
        Scratch.
    beam : Beam
        Out.
    """
    if stamps[-1] == _LAST_STAMP:
        stamps[:] = 0
    stamps[-1] += 1
    stamp = stamps[-1]
    n_fresh = _keep_unseen(graph.entries, stamps, stamp, fresh)
    size, _ = _offer(query, graph, fresh, n_fresh, 0, beam)
    place = 0
    while place < size:
        if not beam.is_open[place]:
            place += 1
            continue
        beam.is_open[place] = False
        n_fresh = _keep_unseen(graph.neighbours[beam.ids[place]], stamps, stamp, fresh)
        size, first_change = _offer(query, graph, fresh, n_fresh, size, beam)
        place = min(place + 1, first_change)
    return size


@kernel
def _expand_members(graph: Graph, beam: Beam, size: int, ids: Ids, similarities: Vectors) -> None:
    """Replace each node by the rows that share its vector, ordered by similarity, then row."""
    filled, starts = 0, graph.member_starts
    for place in range(size):
        node, value = beam.ids[place], beam.similarities[place]
        if filled == len(ids) and value < similarities[-1]:
            break
        for position in range(starts[node], starts[node + 1]):
            if insert_sorted(ids, similarities, filled, graph.members[position], value) < 0:
                break
            filled = min(filled + 1, len(ids))


@kernel
def search_rows(
    queries: Vectors,
    start: int,
    stop: int,
    graph: Graph,
    beam: int,
    stamps: Ids,
    ids: Ids,
    similarities: Vectors,
) -> None:
    """Answer rows `start` to `stop` of `queries` by walks that keep so many nodes.

    `stamps` is as in `beam_search`; `ids` and `similarities` (n_queries, k) are filled, padded with
    -1 and -inf.
    """
    fresh = np.empty(max(graph.neighbours.shape[1], len(graph.entries)), np.int32)
    best = Beam(np.empty(beam, np.int32), np.empty(beam, np.float32), np.empty(beam, np.bool_))
    ids[start:stop] = -1
    similarities[start:stop] = -np.inf
    for row in range(start, stop):
        size = beam_search(queries[row], graph, stamps, fresh, best)
        _expand_members(graph, best, size, ids[row], similarities[row])
