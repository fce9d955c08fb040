"""The walk of a neighbour graph over 4-bit codes, and the exact scores of what it finds.

Most vectors that a walk looks at are looked at once and left: for them an inner product of codes is
near enough, and reads an eighth of the memory. The best are scored again from the vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.coded_graph import (
    AT_ONCE,
    HIGHEST_KEY,
    IS_OPEN,
    KEY_BITS,
    LAST_NODE,
    LOWEST_KEY,
    NODE_BITS,
    CodedGraph,
    Walk,
    n_edges,
)
from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import lean_kernel
from longtail.kernels.lanes import KEYS_AT_ONCE, insert_key
from longtail.kernels.packed_codes import MIDDLE, packed_products
from longtail.kernels.prefetch import prefetch_pair, prefetch_whole
from longtail.kernels.rows import quantise, row_dot
from longtail.kernels.walk_lanes import MOST_IN_REGISTERS, insert_products, keep_unseen_edges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int8]
    Packed = NDArray[np.uint8]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]

__all__ = [
    "cosine_of",
    "excess_of",
    "first_homes",
    "log_nodes",
    "nearest_members",
    "node_of",
    "similarity_at",
    "similarity_by",
    "similarity_of",
    "walk_graph",
    "walk_on",
    "walk_wider",
    "write_similarities_at",
]

_LAST_STAMP = np.int32(2**31 - 1)
_FEWEST_STARTS = 8
_AHEAD = 8  # rows
_SPARE = 4  # of half as many again as are wanted, and these, the vectors are looked at


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
def node_of(key: Any) -> Any:
    """Return the node that a key is of."""
    return (key >> NODE_BITS) & LAST_NODE


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
        key = _key(fresh[offer], products[offer])
        if key > keys[last]:
            prefetch_pair(neighbours, np.int64(fresh[offer]) * degree)
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
    while place < len(keys) and n_followed < n_most and keys[place] != LOWEST_KEY:
        key = keys[place]
        if key & IS_OPEN:
            keys[place] = key & ~IS_OPEN
            first = node_of(key) * degree
            n_fresh = keep_unseen_edges(
                graph.neighbours, first, degree, graph.codes, stamps, fresh, n_fresh
            )
            n_followed += 1
        place += 1
    return n_fresh, place


@lean_kernel
def walk_graph(
    query: Codes, scale: np.float32, graph: CodedGraph, starts: Ids, n_starts: int, walk: Walk
) -> int:
    """Fill ``walk.keys`` from its second place with near nodes, nearest first; return how many.

    A best-first walk as in `longtail.kernels.graph.beam_search`, two nodes at a time. `query` are
    the codes of a point, and `scale` what they are multiplied with. A key holds a
    similarity, in whole numbers, above a node and whether its edges are still to be followed: so
    the beam is one sorted list of numbers. `starts` are nodes to begin with; where they are few,
    the walk begins at the entries, too.
    """
    _forget(walk)
    codes, stamps, fresh, entries = graph.codes, walk.stamps, walk.fresh, graph.entries
    place = len(walk.keys)
    n_fresh = _keep_unseen(starts, n_starts, codes, stamps, fresh, 0)
    if n_fresh < _FEWEST_STARTS and len(graph.entry_codes):
        _forget(walk)  # or an entry that is a start would come twice
        _begin_at_entries(query, scale, graph, walk)
        n_fresh, place = _keep_unseen(starts, n_starts, codes, stamps, fresh, 0), 1
    elif n_fresh < _FEWEST_STARTS or n_edges(graph) == 0:
        n_fresh = _keep_unseen(entries, len(entries), codes, stamps, fresh, n_fresh)
    return _go_on(query, scale, graph, n_fresh, place, walk)


@lean_kernel
def _begin_at_entries(query: Codes, scale: np.float32, graph: CodedGraph, walk: Walk) -> None:
    """Fill an empty beam with the nearest entries, from codes that lie side by side."""
    entries, places, products = graph.entries, walk.fresh, walk.products
    n_entries = min(len(entries), len(graph.entry_codes), len(places))
    for place in range(n_entries):
        places[place] = place
    packed_products(query, graph.entry_codes, places, n_entries, products)
    if len(graph.entry_bias):
        _add_bias(graph.entry_bias, places, n_entries, _steps_of_one(scale, graph), products)
    last = np.uint32(len(graph.codes) - 1)
    for place in range(n_entries):
        places[place] = min(np.uint32(entries[place]), last)  # beyond it in a damaged file
    _insert_all(places, n_entries, products, graph.neighbours, n_edges(graph), walk.keys)
    # The others are not noted: those that are met again are not near enough for the beam.
    for place in range(1, len(walk.keys)):
        key = walk.keys[place]
        if key != LOWEST_KEY:
            walk.stamps[node_of(key)] = walk.stamps[-1]
            if place < len(walk.log):
                walk.log[place] = key
                walk.log[0] = place


@lean_kernel
def walk_on(
    query: Codes, scale: np.float32, graph: CodedGraph, starts: Ids, n_starts: int, walk: Walk
) -> int:
    """Go on with a walk that has ended from further nodes; return how many are in the beam."""
    n_fresh = _keep_unseen(starts, n_starts, graph.codes, walk.stamps, walk.fresh, 0)
    return _go_on(query, scale, graph, n_fresh, len(walk.keys), walk)


@lean_kernel
def log_nodes(
    query: Codes, scale: np.float32, graph: CodedGraph, nodes: Ids, n_nodes: int, walk: Walk
) -> None:
    """Append the nodes that a walk has not met to its log, and follow none of their edges."""
    n_fresh = _keep_unseen(nodes, n_nodes, graph.codes, walk.stamps, walk.fresh, 0)
    if n_fresh:
        _compare(query, scale, graph, walk.fresh, n_fresh, walk.products)
        _log(walk.fresh, n_fresh, walk.products, walk.log)


@lean_kernel
def walk_wider(
    query: Codes, scale: np.float32, graph: CodedGraph, size: int, walk: Walk, wide: Walk
) -> int:
    """Go on with a longer beam where a walk has ended; return how many nodes are in that.

    Parameters
    ----------
    query, scale, graph : int8, float, CodedGraph
    size : int
        How many nodes are in the beam of the walk.
    walk, wide : Walk
        The same scratch with another beam; what the first one had no room for is in its log.
    """
    keys, longer, log = walk.keys, wide.keys, walk.log
    longer[:] = LOWEST_KEY
    for place in range(size + 1):
        longer[place] = keys[place]
    if size < len(keys) - 1:
        return size  # nothing was left out
    least = keys[size] & ~IS_OPEN
    for i in range(1, log[0] + 1):
        if longer[-1] < log[i] < least:
            insert_key(longer, log[i])
    return _go_on(query, scale, graph, 0, 1, wide)


@lean_kernel
def _forget(walk: Walk) -> None:
    """Empty the beam, and take all nodes for unseen."""
    stamps, keys = walk.stamps, walk.keys
    walk.log[0] = 0
    if stamps[-1] == _LAST_STAMP:
        stamps[:] = 0
    stamps[-1] += 1
    keys[:] = LOWEST_KEY
    keys[0] = HIGHEST_KEY


@lean_kernel
def _go_on(
    query: Codes, scale: np.float32, graph: CodedGraph, n_fresh: int, place: int, walk: Walk
) -> int:
    """Compare the nodes in ``walk.fresh``, then follow edges as long as there are open nodes.

    Which nodes are followed next, from a place in the beam on, is chosen before those that came
    last are compared: so the memory that it takes is on its way meanwhile. Return how many nodes
    are in the beam.
    """
    _, fresh, coming, products, keys, _ = walk
    degree, n_coming = n_edges(graph), 1
    while n_coming:
        n_coming, place = _follow(graph, AT_ONCE, walk.stamps, keys, place, coming)
        if n_fresh:
            _compare(query, scale, graph, fresh, n_fresh, products)
            _log(fresh, n_fresh, products, walk.log)
            changed = _insert_all(fresh, n_fresh, products, graph.neighbours, degree, keys)
            place = min(place, changed)
        while n_coming == 0 and place < len(keys) and keys[place] != LOWEST_KEY:
            n_coming, place = _follow(graph, 1, walk.stamps, keys, place, coming)
        fresh, coming = coming, fresh
        n_fresh = n_coming
    size = len(keys) - 1
    while size and keys[size] == LOWEST_KEY:
        size -= 1
    return size


@lean_kernel
def _compare(
    query: Codes, scale: np.float32, graph: CodedGraph, nodes: Ids, n_nodes: int, products: Ids
) -> None:
    """Write how similar some nodes are in whole numbers: products of codes, and what bias adds."""
    packed_products(query, graph.codes, nodes, n_nodes, products)
    if len(graph.bias):
        _add_bias(graph.bias, nodes, n_nodes, _steps_of_one(scale, graph), products)


@lean_kernel
def _add_bias(bias: Floats, nodes: Ids, n_nodes: int, steps: np.float32, products: Ids) -> None:
    """Add to products what the bias of each of some nodes is in them."""
    for i in range(n_nodes):
        products[i] += np.int32(bias[nodes[i]] * steps)


@lean_kernel
def _steps_of_one(scale: np.float32, graph: CodedGraph) -> np.float32:
    """Return how many of the whole numbers a similarity of 1 is; 0 where no vector has a length."""
    size = scale * graph.step[0]
    return np.float32(1) / size if size > 0 else np.float32(0)


@lean_kernel
def excess_of(query: Codes) -> np.float32:
    """Return what a product with any row is too large by."""
    total = np.int32(0)
    for code in query:
        total += np.int32(code)
    return MIDDLE * np.float32(total)


@lean_kernel
def _log(fresh: Ids, n_fresh: int, products: Ids, log: Keys) -> None:
    """Append the keys of nodes to a log, as far as it goes."""
    n = log[0]
    n_most = min(n_fresh, len(log) - 1 - n)
    for i in range(n_most):
        log[1 + n + i] = _key(fresh[i], products[i])
    log[0] = n + n_most


@lean_kernel
def _key(node: Any, product: Any) -> np.int64:
    """Return the key of a node that is still open."""
    return np.int64(product) << KEY_BITS | np.int64(node) << NODE_BITS | IS_OPEN


@lean_kernel
def similarity_at(
    place: int, query: Codes, scale: np.float32, graph: CodedGraph, walk: Walk
) -> np.float32:
    """Return how similar the node at a place of the beam is, from 1, as its codes tell."""
    return similarity_of(walk.keys[place], excess_of(query), scale, graph.step[0])


@lean_kernel
def similarity_of(
    key: np.int64, too_much: np.float32, scale: np.float32, step: np.float32
) -> np.float32:
    """Return how similar the node of a key is; `too_much` is the `excess_of` the query."""
    return similarity_by(key >> KEY_BITS, too_much, scale, step)


@lean_kernel
def cosine_of(
    key: np.int64, too_much: np.float32, scale: np.float32, graph: CodedGraph
) -> np.float32:
    """Return how similar the node of a key is without its bias."""
    product = key >> KEY_BITS
    if len(graph.bias):
        product -= np.int64(np.int32(graph.bias[node_of(key)] * _steps_of_one(scale, graph)))
    return similarity_by(product, too_much, scale, graph.step[0])


@lean_kernel
def similarity_by(
    product: Any, too_much: np.float32, scale: np.float32, step: np.float32
) -> np.float32:
    """Return how similar a node is whose codes have a product with the query; see above."""
    return np.float32((np.float32(product) - too_much) * scale * step)


@lean_kernel
def first_homes(walk: Walk, n_most: int, homes: Ids, starts: Ids) -> int:
    """Write the homes of the nearest nodes of a beam, and return how many."""
    n = 0
    for place in range(1, min(n_most, len(starts)) + 1):
        node = node_of(walk.keys[place])
        if node < len(homes):
            starts[n] = homes[node]
            n += 1
    return n


@lean_kernel
def nearest_members(
    point: Floats,
    query: Codes,
    scale: np.float32,
    graph: CodedGraph,
    size: int,
    walk: Walk,
    ids: Ids,
    similarities: Floats,
) -> int:
    """Order the rows that a walk has found by their vectors, and return how many there are.

    Parameters
    ----------
    point : float32 (d,)
    query, scale : int8, float
        The codes of the point, see `packed_products`, and what they are multiplied with.
    graph : CodedGraph
    size : int
        How many nodes are in the beam; see `walk_graph`.
    walk : Walk
    ids, similarities : int32, float32 (k,)
        Written up to the number that is returned: best first, ties by smaller id.
    """
    size = min(size, len(ids) + len(ids) // 2 + _SPARE)  # codes hardly err by more
    keys, rows, first_members, members = walk.keys, graph.rows, graph.member_starts, graph.members
    bias = graph.bias
    has_rows = len(rows.values) > 0
    too_much = np.float32(0) if has_rows else excess_of(query)
    for place in range(1, min(_AHEAD, size) + 1 if has_rows else 0):
        prefetch_whole(rows.values, node_of(keys[place]))
    filled = 0
    for place in range(1, size + 1):
        node = node_of(keys[place])
        if has_rows:
            if place + _AHEAD <= size:
                prefetch_whole(rows.values, node_of(keys[place + _AHEAD]))
            value = row_dot(point, rows, node) + (bias[node] if len(bias) else np.float32(0))
        else:
            value = similarity_of(keys[place], too_much, scale, graph.step[0])
        if filled == len(ids) and value < similarities[filled - 1]:
            continue
        first, after = first_members[node], first_members[node + 1]
        for position in range(max(first, 0), min(after, len(members))):
            if insert_sorted(ids, similarities, filled, members[position], value) < 0:
                break
            filled = min(filled + 1, len(ids))
    return filled


@lean_kernel
def write_similarities_at(
    place: int,
    vectors: Floats,
    codes: Codes,
    graph: CodedGraph,
    walk: Walk,
    similarities: Floats,
) -> None:
    """Write how similar the node is that a walk from the entries ends with at a place of its beam.

    Parameters
    ----------
    place : int
        From 1; the last one there is where there are fewer.
    vectors : float32 (n, d)
    codes : int8
        Scratch, zeros behind the vector.
    graph, walk : CodedGraph, Walk
    similarities : float32 (n,)
        Written.
    """
    for row in range(len(vectors)):
        scale = quantise(vectors[row], codes)
        size = walk_graph(codes, scale, graph, walk.fresh, 0, walk)
        similarities[row] = similarity_at(min(place, size), codes, scale, graph, walk)
