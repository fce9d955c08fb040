"""A neighbour graph with further rows, or without some: only what lies near them is linked anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.index.biased import as_bias, some_of, with_biased
from longtail.index.graph import GraphIndex
from longtail.index.graph_building import codes_of, grouped, hashes_of, reachable_entries
from longtail.index.protocol import without_own
from longtail.kernels.arrays import read_only
from longtail.kernels.graph_building import (
    add_reverse_edges,
    keys_of_listed,
    prune_candidates,
)
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.nearest_codes import LOWEST, empty_keys, nearest_keys, row_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.byte_codes import ByteCodes

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]
    Mask = NDArray[np.bool_]

__all__ = ["with_rows", "without_rows"]

_CANDIDATES_PER_EDGE = 2  # as in building
_ROWS_AT_ONCE, _LOOKED_AT_ONCE = 64, 1 << 16


def with_rows(
    index: GraphIndex, vectors: Floats, bias: Floats | None = None, n_threads: int = 1
) -> GraphIndex:
    """Return an index that has further rows behind those of a given one, which stays as it is.

    New nodes are linked as in HNSW (Malkov and Yashunin, 2018, Algorithm 1): the nearest nodes are
    thinned out, and each of those that are left chooses among its edges and the one back. What is
    nearest is looked for among all nodes, the new ones included, and not by a walk: for few rows it
    takes little, misses nothing, and does not depend on which of them comes first.

    Parameters
    ----------
    index : GraphIndex
    vectors : float32 (n, d)
    bias : float32 (n,) or None
        If the index has biases.
    n_threads : int
        The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import GraphIndex
    >>> from longtail.index.graph_changes import with_rows
    >>> vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
    >>> index = with_rows(GraphIndex.build(vectors[:2]), vectors[2:])
    >>> index.neighbours[:, :2].tolist(), index.query(vectors[2:], k=2)[0].tolist()
    ([[1, 2], [0, 2], [1, 0]], [[2, 1]])
    """
    added = as_bias(bias, len(vectors))
    node_of_row, is_node = _nodes_of(index, vectors, added)
    every = np.concatenate([index.vectors, vectors[is_node]])
    own = np.concatenate([index.bias, some_of(added, np.flatnonzero(is_node))])
    neighbours, n_fresh = index.neighbours, int(is_node.sum())
    if n_fresh:
        neighbours = _linked(codes_of(every, own, n_threads), neighbours, n_fresh, n_threads)
    node_of_row = np.concatenate([index.node_of_row(), node_of_row])
    return _index(index, every, own, neighbours, index.entries, node_of_row)


def without_rows(index: GraphIndex, kept: NDArray[np.int64], n_threads: int = 1) -> GraphIndex:
    """Return an index of some rows of a given one, which stays as it is.

    A node that has lost an edge chooses anew among what is left and where the lost ones led, as in
    Singh et al., "FreshDiskANN" (2021), Algorithm 4.

    Parameters
    ----------
    index : GraphIndex
    kept : int64 (n,)
        Ascending, at least one; rows are numbered anew in their order.
    n_threads : int
        The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import GraphIndex
    >>> from longtail.index.graph_changes import without_rows
    >>> index = GraphIndex.build(np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32))
    >>> without_rows(index, np.array([0, 2])).neighbours[:, :2].tolist()
    [[1, -1], [0, -1]]
    """
    node_of_row = index.node_of_row()[kept]
    stays = np.zeros(len(index.vectors), np.bool_)
    stays[node_of_row] = True
    left, neighbours = np.flatnonzero(stays), index.neighbours
    losing = _losing(neighbours, left, stays)
    if len(losing):
        codes = codes_of(index.vectors, index.bias, n_threads)
        neighbours = _repaired(codes, neighbours, losing, stays, n_threads)
    new_ids = np.full(len(stays) + 1, -1, np.int32)  # the last is that of no node
    new_ids[left] = np.arange(len(left))
    return _index(
        index,
        index.vectors[left],
        some_of(index.bias, left),
        new_ids[neighbours[left]],
        new_ids[index.entries[stays[index.entries]]],
        new_ids[node_of_row],
    )


def _index(
    like: GraphIndex, vectors: Floats, bias: Floats, neighbours: Ids, entries: Ids, node_of_row: Ids
) -> GraphIndex:
    """Return an index with entries at the largest biases, too, and from which all is reached."""
    members, starts = grouped(node_of_row, len(vectors))
    return GraphIndex(
        vectors,
        neighbours,
        reachable_entries(neighbours, with_biased(entries, bias)),
        starts,
        members,
        bias=bias,
        beam_size=like.beam_size,
        n_threads=like.n_threads,
    )


def _nodes_of(index: GraphIndex, vectors: Floats, bias: Floats) -> tuple[Ids, Mask]:
    """Return the node of each new row, and which rows equal no node and no row before them."""
    likely = np.flatnonzero(np.isin(hashes_of(index.vectors), hashes_of(vectors)))
    nodes = {_bytes_of(index.vectors, index.bias, node): node for node in likely.tolist()}
    node_of_row, is_node = np.empty(len(vectors), np.int32), np.zeros(len(vectors), np.bool_)
    n_nodes = len(index.vectors)
    for row in range(len(vectors)):
        node_of_row[row] = nodes.setdefault(_bytes_of(vectors, bias, row), n_nodes)
        is_node[row] = node_of_row[row] == n_nodes
        n_nodes += int(is_node[row])
    return node_of_row, is_node


def _bytes_of(vectors: Floats, bias: Floats, row: int) -> bytes:
    """Return what equal rows have equal."""
    return bytes(vectors[row]) + bytes(bias[row : row + 1])


def _linked(codes: ByteCodes, old: Ids, n_fresh: int, n_threads: int) -> Ids:
    """Return the edges of all nodes, of which the last have none yet."""
    n_old, width = old.shape
    near = _nearest(codes, n_old, _CANDIDATES_PER_EDGE * width, n_threads)
    edges = _thinned_out(codes, near, width, n_threads)
    fresh = np.arange(n_old, n_old + n_fresh)
    changed = np.union1d(edges[edges >= 0], fresh).astype(np.int32)
    neighbours = np.concatenate([old, edges])
    chosen, back = neighbours[changed], _back(edges, fresh, changed)
    over_row_chunks(
        lambda start, stop: add_reverse_edges(codes, changed, start, stop, chosen, *back),
        len(changed),
        n_threads=n_threads,
        chunk=_ROWS_AT_ONCE,
    )
    neighbours[changed] = chosen
    return neighbours


def _nearest(codes: ByteCodes, first: int, n_wanted: int, n_threads: int) -> Keys:
    """Return lists of what is nearest to the rows from the first on, themselves left out."""
    keys = nearest_keys(codes, codes, n_wanted + 1, n_threads, first)
    return without_own(keys, row_of(keys), np.arange(first, first + len(keys)))


def _thinned_out(codes: ByteCodes, near: Keys, width: int, n_threads: int) -> Ids:
    """Return the edges (n, width) that lists of candidates leave."""
    edges, no_far = np.empty((len(near), width), np.int32), np.empty((len(near), 0), np.int32)

    def work(start: int, stop: int) -> None:
        own = slice(start, stop)
        prune_candidates(codes, 0, near[own], no_far[own], edges[own])

    over_row_chunks(work, len(near), n_threads=n_threads, chunk=_ROWS_AT_ONCE)
    return edges


def _back(edges: Ids, sources: NDArray[np.int64], targets: Ids) -> tuple[NDArray[np.int64], Ids]:
    """Return the sources of edges to each target, and where those of each start."""
    which, place = np.nonzero(edges >= 0)
    reached = edges[which, place]
    order = np.argsort(reached, kind="stable")
    starts = np.searchsorted(reached[order], np.append(targets, np.iinfo(np.int32).max))
    return starts, sources[which][order].astype(np.int32)


def _losing(neighbours: Ids, left: NDArray[np.int64], stays: Mask) -> Ids:
    """Return which of the nodes that are left point to one that does not stay."""
    is_gone = np.append(~stays, False)
    loses = [
        is_gone[neighbours[left[start : start + _LOOKED_AT_ONCE]]].any(axis=1)
        for start in range(0, len(left), _LOOKED_AT_ONCE)
    ]
    return left[np.concatenate(loses)].astype(np.int32)


def _repaired(codes: ByteCodes, neighbours: Ids, losing: Ids, stays: Mask, n_threads: int) -> Ids:
    """Return edges of which those of some nodes lead round the nodes that do not stay."""
    changed, width = neighbours.copy(), neighbours.shape[1]

    def work(start: int, stop: int) -> None:
        rows = losing[start:stop]
        listed = read_only(_round(neighbours, rows, stays), np.int32)
        keys = np.empty(listed.shape, np.int64)
        keys_of_listed(codes, rows, listed, keys)
        near = _falling(keys, _CANDIDATES_PER_EDGE * width)
        changed[rows] = _thinned_out(codes, near, width, 1)

    over_row_chunks(work, len(losing), n_threads=n_threads, chunk=_ROWS_AT_ONCE)
    return changed


def _round(neighbours: Ids, rows: Ids, stays: Mask) -> Ids:
    """Return where the edges of some rows lead, and those of what does not stay; -1 for none."""
    own = neighbours[rows]
    is_lost = (own >= 0) & ~stays[own]
    first = np.argsort(~is_lost, axis=1, kind="stable")[:, : int(is_lost.sum(axis=1).max())]
    lost = np.take_along_axis(own, first, axis=1)
    is_one = np.take_along_axis(is_lost, first, axis=1)
    beyond = np.where(is_one[:, :, None], neighbours[lost], np.int32(-1))
    listed = np.concatenate([own, beyond.reshape(len(rows), -1)], axis=1)
    is_there = (listed >= 0) & stays[listed] & (listed != rows[:, None])
    return np.where(is_there, listed, np.int32(-1))


def _falling(keys: Keys, n_wanted: int) -> Keys:
    """Return lists of the largest of keys, each once."""
    keys = -np.sort(-keys, axis=1)
    keys[:, 1:][keys[:, 1:] == keys[:, :-1]] = LOWEST
    lists = empty_keys(len(keys), n_wanted)
    best = -np.sort(-keys, axis=1)[:, : lists.shape[1] - 1]
    lists[:, 1 : 1 + best.shape[1]] = best
    return lists
