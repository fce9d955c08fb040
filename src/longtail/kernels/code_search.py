"""The walk of a neighbour graph over 4-bit codes, and the exact scores of what it finds.

Most vectors that a walk looks at are looked at once and left: for them an inner product of codes is
near enough, and reads an eighth of the memory. The best are scored again from the vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import lean_kernel
from longtail.kernels.lanes import KEYS_AT_ONCE, LANES, insert_key
from longtail.kernels.packed_codes import MIDDLE, packed_products
from longtail.kernels.packed_ids import N_SPARE
from longtail.kernels.prefetch import prefetch_pair, prefetch_whole
from longtail.kernels.rows import Rows, row_dot
from longtail.kernels.walk_lanes import MOST_IN_REGISTERS, insert_products, keep_unseen_edges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int8]
    Packed = NDArray[np.uint8]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]

__all__ = ["CodedGraph", "Walk", "n_edges", "nearest_members", "new_walk", "walk_graph"]

_LAST_STAMP = np.int32(2**31 - 1)
_KEY_BITS = np.int64(32)
_IS_OPEN = np.int64(1)  # the last bit: a node keeps its place when it is closed
_NODE_BITS, _LAST_NODE = np.int64(1), np.int64((1 << 31) - 1)
_LOWEST, _HIGHEST = np.int64(-(1 << 62)), np.int64(1 << 62)
_AT_ONCE = 2  # nodes whose edges are followed together: waits for memory overlap
_FEWEST_STARTS = 8
_AHEAD = 8  # rows
_SPARE = 4  # of half as many again as are wanted, and these, the vectors are looked at


class CodedGraph(NamedTuple):
    """A neighbour graph with codes; see `longtail.index.graph.GraphIndex` for the rest.

    ``codes`` is (n_nodes, width) uint8, and ``step`` (1,) what lies between two of them, see
    `longtail.kernels.packed_codes`. ``rows`` holds the vectors themselves; without any,
    similarities are those of the codes. ``neighbours`` are as many ids a node, of `pack_ids`. An
    index without edges is scanned: its entries are all.
    """

    codes: Packed
    step: Floats
    rows: Rows
    neighbours: Packed
    entries: Ids
    member_starts: Ids
    members: Ids


class Walk(NamedTuple):
    """Scratch of one thread: which nodes were seen under which stamp, and the beam.

    ``stamps`` is (n_nodes + 1,), zeros at first; its last element counts the walks. ``fresh`` and
    ``coming`` have room for what is looked at together, ``products`` for what comes of it, and
    ``keys`` for the beam, see `insert_key`.
    """

    stamps: Ids
    fresh: Ids
    coming: Ids
    products: Ids
    keys: Keys


def new_walk(graph: CodedGraph, beam: int, n_starts: int = 0) -> Walk:
    """Return scratch for walks of a graph, from at most so many starts.

    The beam is rounded up to a multiple of eight.
    """
    n_fresh = max(_AT_ONCE * n_edges(graph), len(graph.entries) + n_starts, 1)
    n_fresh = -(-n_fresh // LANES) * LANES + LANES  # what is written behind them is no node
    return Walk(
        np.zeros(len(graph.codes) + 1, np.int32),
        np.zeros(n_fresh, np.int32),
        np.zeros(n_fresh, np.int32),
        np.zeros(n_fresh, np.int32),
        np.empty(-(-beam // KEYS_AT_ONCE) * KEYS_AT_ONCE + 1, np.int64),
    )


@lean_kernel
def n_edges(graph: CodedGraph) -> int:
    """Return how many edges each node has room for."""
    return (len(graph.neighbours) - N_SPARE) // max(len(graph.codes), 1)


@lean_kernel
def _keep_unseen(
    nodes: Ids, n_nodes: int, codes: Packed, stamps: Ids, fresh: Ids, n_fresh: int
) -> int:
    """Note the nodes not yet seen, have their codes fetched; return how many there are now."""
    stamp = stamps[-1]
    for place in range(min(n_nodes, len(fresh) - n_fresh)):
        node = np.uint32(nodes[place])
        if node >= np.uint32(len(codes)):  # a damaged file
            continue
        # No branch: whether a node was seen cannot be guessed.
        fresh[n_fresh] = node
        n_fresh += 1 if stamps[node] != stamp else 0
        stamps[node] = stamp
        prefetch_whole(codes, node)
    return n_fresh


@lean_kernel
def _node_of(key: Any) -> Any:
    """Return the node that a key is of."""
    return (key >> _NODE_BITS) & _LAST_NODE


@lean_kernel
def _insert_all(
    fresh: Ids, n_fresh: int, products: Ids, neighbours: Packed, degree: int, keys: Keys
) -> int:
    """Put nodes into the beam, have their edges fetched; return the first place that changed."""
    if len(keys) // KEYS_AT_ONCE <= MOST_IN_REGISTERS:
        first: int = insert_products(keys, fresh, products, n_fresh, neighbours, degree)
        return first
    place, last = len(keys), len(keys) - 1
    for offer in range(n_fresh):
        node = np.int64(fresh[offer])
        key = np.int64(products[offer]) << _KEY_BITS | node << _NODE_BITS | _IS_OPEN
        if key > keys[last]:
            prefetch_pair(neighbours, node * degree)
            place = min(place, insert_key(keys, key) + 1)
    return place


@lean_kernel
def _follow(
    graph: CodedGraph, n_most: int, stamps: Ids, keys: Keys, place: int, fresh: Ids
) -> tuple[int, int]:
    """Follow the edges of the nearest nodes that are still open, from a place in the beam on.

    Return how many nodes are now in `fresh`, and the place where to go on.
    """
    n_fresh = n_followed = 0
    degree = n_edges(graph)
    while place < len(keys) and n_followed < n_most and keys[place] != _LOWEST:
        key = keys[place]
        if key & _IS_OPEN:
            keys[place] = key & ~_IS_OPEN
            first = _node_of(key) * degree
            n_fresh = keep_unseen_edges(
                graph.neighbours, first, degree, graph.codes, stamps, fresh, n_fresh
            )
            n_followed += 1
        place += 1
    return n_fresh, place


@lean_kernel
def walk_graph(query: Codes, graph: CodedGraph, starts: Ids, n_starts: int, walk: Walk) -> int:
    """Fill ``walk.keys`` from its second place with near nodes, nearest first; return how many.

    A best-first walk as in `longtail.kernels.graph.beam_search`, two nodes at a time. A key holds a
    similarity, in whole numbers, above a node and whether its edges are still to be followed: so
    the beam is one sorted list of numbers. `starts` are nodes to begin with; where they are few,
    the walk begins at the entries.

    Which nodes are followed next is chosen before those that came last are compared: so the
    memory that it takes is on its way meanwhile.
    """
    codes, neighbours = graph.codes, graph.neighbours
    stamps, fresh, coming, products, keys = walk
    if stamps[-1] == _LAST_STAMP:
        stamps[:] = 0
    stamps[-1] += 1
    keys[:] = _LOWEST
    keys[0] = _HIGHEST
    degree, entries = n_edges(graph), graph.entries
    n_fresh = _keep_unseen(starts, n_starts, codes, stamps, fresh, 0)
    if n_fresh < _FEWEST_STARTS or degree == 0:
        n_fresh = _keep_unseen(entries, len(entries), codes, stamps, fresh, n_fresh)
    place = 1
    while n_fresh:
        n_coming, place = _follow(graph, _AT_ONCE, stamps, keys, place, coming)
        packed_products(query, codes, fresh, n_fresh, products)
        place = min(place, _insert_all(fresh, n_fresh, products, neighbours, degree, keys))
        while n_coming == 0 and place < len(keys) and keys[place] != _LOWEST:
            n_coming, place = _follow(graph, 1, stamps, keys, place, coming)
        fresh, coming = coming, fresh
        n_fresh = n_coming
    size = len(keys) - 1
    while size and keys[size] == _LOWEST:
        size -= 1
    return size


@lean_kernel
def nearest_members(
    point: Floats,
    query: Codes,
    scale: np.float32,
    graph: CodedGraph,
    starts: Ids,
    n_starts: int,
    walk: Walk,
    ids: Ids,
    similarities: Floats,
) -> int:
    """Find rows near a point by codes, order them by their vectors, and return how many.

    Parameters
    ----------
    point : float32 (d,)
    query, scale : int8, float
        The codes of the point, see `packed_products`, and what they are multiplied with.
    graph : CodedGraph
    starts, n_starts : int32, int
        See `walk_graph`.
    walk : Walk
    ids, similarities : int32, float32 (k,)
        Written up to the number that is returned: best first, ties by smaller id.
    """
    size = walk_graph(query, graph, starts, n_starts, walk)
    size = min(size, len(ids) + len(ids) // 2 + _SPARE)  # codes hardly err by more
    keys, rows, first_members, members = walk.keys, graph.rows, graph.member_starts, graph.members
    has_rows, too_much = len(rows.values) > 0, np.float32(0)
    if has_rows:
        for place in range(1, min(_AHEAD, size) + 1):
            prefetch_whole(rows.values, _node_of(keys[place]))
    else:
        for t in range(len(query)):
            too_much += MIDDLE * np.float32(query[t])
    filled = 0
    for place in range(1, size + 1):
        node = _node_of(keys[place])
        if has_rows:
            if place + _AHEAD <= size:
                prefetch_whole(rows.values, _node_of(keys[place + _AHEAD]))
            value = row_dot(point, rows, node)
        else:
            value = (np.float32(keys[place] >> _KEY_BITS) - too_much) * scale * graph.step[0]
        if filled == len(ids) and value < similarities[filled - 1]:
            continue
        first, after = first_members[node], first_members[node + 1]
        for position in range(max(first, 0), min(after, len(members))):
            if insert_sorted(ids, similarities, filled, members[position], value) < 0:
                break
            filled = min(filled + 1, len(ids))
    return filled
