"""The walk of a neighbour graph over 8-bit codes, and the exact scores of what it finds.

Most vectors that a walk looks at are looked at once and left: for them an inner product of codes is
near enough, and reads a quarter of the memory. Those that stay are scored again from the vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import kernel
from longtail.kernels.prefetch import prefetch_row
from longtail.kernels.rows import Rows, code_dots, row_dot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int8]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]

__all__ = ["CodedGraph", "Walk", "nearest_members", "new_walk", "walk_graph"]

_LAST_STAMP = np.int32(2**31 - 1)
_KEY_BITS = np.int64(32)
_IS_OPEN = np.int64(1 << 31)
_NODE = np.int64((1 << 31) - 1)


class CodedGraph(NamedTuple):
    """A neighbour graph with codes; see `longtail.index.graph.GraphIndex` for the rest.

    ``codes`` is (n_nodes, d) int8 and ``code_scales`` (n_nodes,) what they are multiplied with, the
    largest being 1;
    ``rows`` holds the vectors themselves. An index without edges is scanned: its entries are all.
    """

    codes: Codes
    code_scales: Floats
    rows: Rows
    neighbours: Ids
    entries: Ids
    member_starts: Ids
    members: Ids


class Walk(NamedTuple):
    """Scratch of one thread: which nodes were seen under which stamp, and the beam.

    ``stamps`` is (n_nodes + 1,), zeros at first; its last element counts the walks.
    """

    stamps: Ids
    fresh: Ids
    keys: Keys


def new_walk(graph: CodedGraph, beam: int) -> Walk:
    """Return scratch for walks of a graph."""
    n_fresh = max(graph.neighbours.shape[1], len(graph.entries), 1)
    return Walk(
        np.zeros(len(graph.codes) + 1, np.int32),
        np.empty(n_fresh, np.int32),
        np.empty(beam, np.int64),
    )


@kernel
def _insert(keys: Keys, size: int, key: np.int64) -> int:
    """Insert into a descending list of room for ``len(keys)``; return the place."""
    low, n_left = 0, size
    while n_left > 1:  # steps that do not depend on what is found: none is guessed wrong
        half = n_left // 2
        low += half if keys[low + half - 1] > key else 0
        n_left -= half
    low += 1 if n_left and keys[low] > key else 0
    for place in range(min(size, len(keys) - 1), low, -1):
        keys[place] = keys[place - 1]
    keys[low] = key
    return low


@kernel
def _keep_unseen(nodes: Ids, codes: Codes, stamps: Ids, stamp: int, fresh: Ids) -> int:
    """Note the nodes not yet seen, have their codes fetched, and return how many."""
    n_fresh = 0
    for node in nodes:
        if not 0 <= node < len(codes) or n_fresh == len(fresh):  # padding, or a damaged file
            break
        # No branch: whether a node was seen cannot be guessed.
        fresh[n_fresh] = node
        n_fresh += 1 if stamps[node] != stamp else 0
        stamps[node] = stamp
        prefetch_row(codes, node)
    return n_fresh


@kernel
def walk_graph(query: Codes, graph: CodedGraph, walk: Walk) -> int:
    """Fill ``walk.keys`` with near nodes, nearest first, and return how many.

    A best-first walk as in `longtail.kernels.graph.beam_search`. A key holds a similarity, in whole
    numbers, above a node and whether its edges are still to be followed: so the beam is one sorted
    list of numbers.
    """
    codes, scales, neighbours = graph.codes, graph.code_scales, graph.neighbours
    stamps, fresh, keys = walk.stamps, walk.fresh, walk.keys
    if stamps[-1] == _LAST_STAMP:
        stamps[:] = 0
    stamps[-1] += 1
    n_fresh = _keep_unseen(graph.entries, codes, stamps, stamps[-1], fresh)
    size = place = 0
    while True:
        first_change = len(keys)
        for j in range(n_fresh):
            similarity = np.float32(code_dots(query, codes, fresh[j])) * scales[fresh[j]]
            key = np.int64(similarity) << _KEY_BITS | np.int64(fresh[j]) | _IS_OPEN
            if size < len(keys) or key > keys[size - 1]:
                first_change = min(first_change, _insert(keys, size, key))
                size = min(size + 1, len(keys))
        place = min(place, first_change)
        while place < size and not keys[place] & _IS_OPEN:
            place += 1
        if place == size:
            return size
        keys[place] &= ~_IS_OPEN
        nodes = neighbours[keys[place] & _NODE]
        n_fresh = _keep_unseen(nodes, codes, stamps, stamps[-1], fresh)


@kernel
def nearest_members(
    point: Floats,
    query: Codes,
    graph: CodedGraph,
    walk: Walk,
    ids: Ids,
    similarities: Floats,
) -> int:
    """Find rows near a point by codes, order them by their vectors, and return how many.

    Parameters
    ----------
    point : float32 (d,)
    query : int8 (d,)
        The codes of the point.
    graph : CodedGraph
    walk : Walk
    ids, similarities : int32, float32 (k,)
        Written up to the number that is returned: best first, ties by smaller id.
    """
    size = walk_graph(query, graph, walk)
    keys, rows, starts, members = walk.keys, graph.rows, graph.member_starts, graph.members
    for place in range(size):
        prefetch_row(rows.values, keys[place] & _NODE)
    filled = 0
    for place in range(size):
        node = keys[place] & _NODE
        value = row_dot(point, rows, node)
        if filled == len(ids) and value < similarities[filled - 1]:
            continue
        for position in range(max(starts[node], 0), min(starts[node + 1], len(members))):
            if insert_sorted(ids, similarities, filled, members[position], value) < 0:
                break
            filled = min(filled + 1, len(ids))
    return filled
