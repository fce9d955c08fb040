"""The walk of a neighbour graph over 4-bit codes, and the exact scores of what it finds.

Most vectors that a walk looks at are looked at once and left: for them an inner product of codes is
near enough, and reads an eighth of the memory. The best are scored again from the vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import kernel
from longtail.kernels.packed_codes import MIDDLE, packed_dots
from longtail.kernels.prefetch import prefetch_pair, prefetch_row
from longtail.kernels.rows import Rows, row_dot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int8]
    Packed = NDArray[np.uint8]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]

__all__ = ["CodedGraph", "Walk", "nearest_members", "new_walk", "walk_graph"]

_LAST_STAMP = np.int32(2**31 - 1)
_KEY_BITS = np.int64(32)
_IS_OPEN = np.int64(1 << 31)
_NODE = np.int64((1 << 31) - 1)
_LOWEST = np.int64(-(1 << 62))
_AT_ONCE = 2  # nodes whose edges are followed together: waits for memory overlap
_FEWEST_STARTS = 8
_SPARE = 4  # of half as many again as are wanted, and these, the vectors are looked at


class CodedGraph(NamedTuple):
    """A neighbour graph with codes; see `longtail.index.graph.GraphIndex` for the rest.

    ``codes`` is (n_nodes, width) uint8, and ``step`` (1,) what lies between two of them, see
    `longtail.kernels.packed_codes`. ``rows`` holds the vectors themselves; without any,
    similarities are those of the codes. An index without edges is scanned: its entries are all.
    """

    codes: Packed
    step: Floats
    rows: Rows
    neighbours: Ids
    entries: Ids
    member_starts: Ids
    members: Ids


class Walk(NamedTuple):
    """Scratch of one thread: which nodes were seen under which stamp, and the beam.

    ``stamps`` is (n_nodes + 1,), zeros at first; its last element counts the walks. ``fresh`` and
    ``offers`` have room for what is looked at together, ``keys`` for the beam.
    """

    stamps: Ids
    fresh: Ids
    offers: Keys
    keys: Keys


def new_walk(graph: CodedGraph, beam: int, n_starts: int = 0) -> Walk:
    """Return scratch for walks of a graph, from at most so many starts."""
    n_fresh = max(_AT_ONCE * graph.neighbours.shape[1], len(graph.entries), n_starts, 1)
    return Walk(
        np.zeros(len(graph.codes) + 1, np.int32),
        np.empty(n_fresh, np.int32),
        np.empty(n_fresh, np.int64),
        np.empty(beam, np.int64),
    )


@kernel
def _insert(keys: Keys, size: int, key: np.int64) -> int:
    """Insert into a descending list of room for ``len(keys)``; return the place."""
    place = 0
    for other in keys[:size]:  # all compared, many at once: quicker than a search that guesses
        place += 1 if other > key else 0
    for behind in range(min(size, len(keys) - 1), place, -1):
        keys[behind] = keys[behind - 1]
    keys[place] = key
    return place


@kernel
def _keep_unseen(nodes: Ids, codes: Packed, stamps: Ids, fresh: Ids, n_fresh: int) -> int:
    """Note the nodes not yet seen, have their codes fetched, and return how many there are."""
    stamp = stamps[-1]
    for node in nodes:
        if not 0 <= node < len(codes) or n_fresh == len(fresh):  # padding, or a damaged file
            break
        # No branch: whether a node was seen cannot be guessed.
        fresh[n_fresh] = node
        n_fresh += 1 if stamps[node] != stamp else 0
        stamps[node] = stamp
        prefetch_pair(codes, node)
    return n_fresh


@kernel
def _offers(query: Codes, codes: Packed, fresh: Ids, least: np.int64, offers: Keys) -> int:
    """Write the keys of nodes that are above `least`, and return how many."""
    n_offers = 0
    for node in fresh:
        key = np.int64(packed_dots(query, codes, node)) << _KEY_BITS | np.int64(node) | _IS_OPEN
        offers[n_offers] = key
        n_offers += 1 if key > least else 0
    return n_offers


@kernel
def walk_graph(query: Codes, graph: CodedGraph, starts: Ids, walk: Walk) -> int:
    """Fill ``walk.keys`` with near nodes, nearest first, and return how many.

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
    n_fresh = _keep_unseen(starts, codes, stamps, fresh, 0)
    if n_fresh < _FEWEST_STARTS or neighbours.shape[1] == 0:
        n_fresh = _keep_unseen(graph.entries, codes, stamps, fresh, n_fresh)
    size = place = 0
    while n_fresh:
        least = keys[size - 1] if size == len(keys) else _LOWEST
        for key in offers[: _offers(query, codes, fresh[:n_fresh], least, offers)]:
            if size < len(keys) or key > keys[size - 1]:
                prefetch_pair(neighbours, key & _NODE)
                place = min(place, _insert(keys, size, key))
                size = min(size + 1, len(keys))
        n_fresh = n_followed = 0
        while place < size and (n_followed < _AT_ONCE or n_fresh == 0):
            if keys[place] & _IS_OPEN:
                keys[place] &= ~_IS_OPEN
                nodes = neighbours[keys[place] & _NODE]
                n_fresh = _keep_unseen(nodes, codes, stamps, fresh, n_fresh)
                n_followed += 1
            place += 1
    return size


@kernel
def nearest_members(
    point: Floats,
    query: Codes,
    scale: np.float32,
    graph: CodedGraph,
    starts: Ids,
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
    starts : int32
        See `walk_graph`.
    walk : Walk
    ids, similarities : int32, float32 (k,)
        Written up to the number that is returned: best first, ties by smaller id.
    """
    size = walk_graph(query, graph, starts, walk)
    size = min(size, len(ids) + len(ids) // 2 + _SPARE)  # codes hardly err by more
    keys, rows, first_members, members = walk.keys, graph.rows, graph.member_starts, graph.members
    has_rows, too_much = len(rows.values) > 0, np.float32(0)
    if has_rows:
        for place in range(size):
            prefetch_row(rows.values, keys[place] & _NODE)
    else:
        for code in query:
            too_much += MIDDLE * np.float32(code)
    filled = 0
    for place in range(size):
        node = keys[place] & _NODE
        if has_rows:
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
