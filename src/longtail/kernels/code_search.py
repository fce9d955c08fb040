"""The walk of a neighbour graph over 4-bit codes, and the exact scores of what it finds.

Most vectors that a walk looks at are looked at once and left: for them an inner product of codes is
near enough, and reads an eighth of the memory. The best are scored again from the vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import kernel
from longtail.kernels.lanes import KEYS_AT_ONCE, insert_key
from longtail.kernels.packed_codes import MIDDLE, packed_dots
from longtail.kernels.packed_ids import N_SPARE, id_at
from longtail.kernels.prefetch import prefetch_pair, prefetch_whole
from longtail.kernels.rows import Rows, row_dot

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
    ``offers`` have room for what is looked at together, ``keys`` for the beam, see `insert_key`.
    """

    stamps: Ids
    fresh: Ids
    offers: Keys
    keys: Keys


def new_walk(graph: CodedGraph, beam: int, n_starts: int = 0) -> Walk:
    """Return scratch for walks of a graph, from at most so many starts.

    The beam is rounded up to a multiple of eight.
    """
    n_fresh = max(_AT_ONCE * n_edges(graph), len(graph.entries) + n_starts, 1)
    return Walk(
        np.zeros(len(graph.codes) + 1, np.int32),
        np.empty(n_fresh, np.int32),
        np.empty(n_fresh, np.int64),
        np.empty(-(-beam // KEYS_AT_ONCE) * KEYS_AT_ONCE + 1, np.int64),
    )


@kernel
def n_edges(graph: CodedGraph) -> int:
    """Return how many edges each node has room for."""
    return (len(graph.neighbours) - N_SPARE) // max(len(graph.codes), 1)


@kernel
def _keep_unseen(
    ids: Any, first: int, n_ids: int, codes: Packed, stamps: Ids, fresh: Ids, n_fresh: int
) -> int:
    """Note the nodes among some ids not yet seen, have their codes fetched; return how many.

    Ids are given by their place, since each view of a table costs a count of its users, which
    other threads count, too.
    """
    stamp, n_nodes = stamps[-1], np.uint32(len(codes))
    for place in range(first, first + min(n_ids, len(fresh) - n_fresh)):
        node = id_at(ids, place)
        if node >= n_nodes:  # padding, or a damaged file
            break
        # No branch: whether a node was seen cannot be guessed.
        fresh[n_fresh] = node
        n_fresh += 1 if stamps[node] != stamp else 0
        stamps[node] = stamp
        prefetch_whole(codes, node)
    return n_fresh


@kernel
def _offers(
    query: Codes, codes: Packed, fresh: Ids, n_fresh: int, least: np.int64, offers: Keys
) -> int:
    """Write the keys of nodes that are above `least`, and return how many."""
    n_offers = 0
    for place in range(n_fresh):
        node = np.uint32(fresh[place])
        product = np.int64(packed_dots(query, codes, node))
        key = product << _KEY_BITS | np.int64(node) << _NODE_BITS | _IS_OPEN
        offers[n_offers] = key
        n_offers += 1 if key > least else 0
    return n_offers


@kernel
def _node_of(key: Any) -> Any:
    """Return the node that a key is of."""
    return (key >> _NODE_BITS) & _LAST_NODE


@kernel
def walk_graph(query: Codes, graph: CodedGraph, starts: Ids, n_starts: int, walk: Walk) -> int:
    """Fill ``walk.keys`` from its second place with near nodes, nearest first; return how many.

    A best-first walk as in `longtail.kernels.graph.beam_search`, two nodes at a time. A key holds a
    similarity, in whole numbers, above a node and whether its edges are still to be followed: so
    the beam is one sorted list of numbers. `starts` are nodes to begin with; where they are few,
    the walk begins at the entries.
    """
    codes, neighbours = graph.codes, graph.neighbours
    stamps, fresh, offers, keys = walk.stamps, walk.fresh, walk.offers, walk.keys
    if stamps[-1] == _LAST_STAMP:
        stamps[:] = 0
    stamps[-1] += 1
    keys[:] = _LOWEST
    keys[0] = _HIGHEST
    degree, entries = n_edges(graph), graph.entries
    n_fresh = _keep_unseen(starts, 0, n_starts, codes, stamps, fresh, 0)
    if n_fresh < _FEWEST_STARTS or degree == 0:
        n_fresh = _keep_unseen(entries, 0, len(entries), codes, stamps, fresh, n_fresh)
    last = len(keys) - 1
    place = 1
    while n_fresh:
        for offer in range(_offers(query, codes, fresh, n_fresh, keys[last], offers)):
            key = offers[offer]
            if key > keys[last]:
                prefetch_pair(neighbours, _node_of(key) * degree)
                place = min(place, insert_key(keys, key) + 1)
        n_fresh = n_followed = 0
        while place <= last and (n_followed < _AT_ONCE or n_fresh == 0):
            key = keys[place]
            if key == _LOWEST:
                break
            if key & _IS_OPEN:
                keys[place] = key & ~_IS_OPEN
                edges = _node_of(key) * degree
                n_fresh = _keep_unseen(neighbours, edges, degree, codes, stamps, fresh, n_fresh)
                n_followed += 1
            place += 1
    size = last
    while size and keys[size] == _LOWEST:
        size -= 1
    return size


@kernel
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
        The codes of the point, see `packed_dots`, and what they are multiplied with.
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
