"""Which nodes of a neighbour graph point to which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.rows import evenly_spaced
from longtail.index.biased import directions, some_of
from longtail.kernels.arrays import read_only
from longtail.kernels.byte_codes import ByteCodes, byte_codes, code_unit, sums_of_ranges
from longtail.kernels.graph_building import (
    add_reverse_edges,
    hash_rows,
    mark_reachable,
    project_rows,
    prune_candidates,
    reverse_edges,
    write_neighbours,
)
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.nearest_codes import (
    LOWEST,
    empty_keys,
    join_clusters,
    nearest_keys,
    nearest_rows,
    row_of,
    rows_in,
    similarity_in,
)
from longtail.kernels.tile_products import has_tiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Starts = NDArray[np.int64]
    Vectors = NDArray[np.float32]

__all__ = [
    "JOINED_PER_EDGE",
    "GraphBuilder",
    "codes_of",
    "group_equal_rows",
    "grouped",
    "hashes_of",
    "reachable_entries",
]

MAX_EXACT_BUILD = 5_000
_N_FAR = 24
_SEEDS_PER_ROOT = 4
_LARGEST_CLUSTER = 1024
# Rows that a row is compared with for each edge, on average: clusters are counted in eights. With
# fewer the nearest are missed, and walks that follow the edges miss what more edges do not replace.
# Of many rows it is a quarter of their square root.
JOINED_PER_EDGE = 128
_MIN_PROBES = 6
# Rows that share the reading of clusters. Where clusters are many and lie apart, few of 256 rows
# would share one: of a million labels, 4,096 are joined in half the time.
_FEWEST_JOINED, _MOST_JOINED, _JOINS = 256, 4096, 256
# Where walks begin. Of few nodes the square root is enough. Vectors of many labels lie in knots of
# a hundred or so that edges hardly lead out of: a walk ends in the wrong one where too few knots
# have an entry, the more often the more nodes there are. So entries are drawn in excess, and those
# most like another one left out.
_MANY_NODES = 131_072
_ENTRIES_PER_ROOT = 8
_DRAWN_PER_ENTRY, _N_ALIKE = 4, 16
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads the bits of a number over those of a hash


class GraphBuilder:
    """Finds the edges between distinct vectors: candidates, thinning out, edges back.

    All of it compares vectors in seven bits a number, and memory holds little more than these and
    the edges: what is near a node is looked for, and thinned out, a few hundred nodes at a time.

    Parameters
    ----------
    vectors : float32 (n, d)
    bias : float32 (n,) or (0,)
        Further numbers of the vectors, so to speak: see `longtail.kernels.byte_codes`.
    n_neighbours : int
        The most edges of a node.
    seed, n_threads : int
    joined_per_edge : int or None
        See `longtail.index.graph.GraphIndex.build`.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index.biased import as_bias
    >>> from longtail.index.graph_building import GraphBuilder
    >>> vectors, no_bias = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32), as_bias(None, 3)
    >>> neighbours, entries = GraphBuilder(vectors, no_bias, 2, seed=0, n_threads=1).build()
    >>> neighbours.tolist()
    [[1, 2], [0, 2], [1, 0]]
    """

    def __init__(
        self,
        vectors: Vectors,
        bias: Vectors,
        n_neighbours: int,
        seed: int,
        n_threads: int,
        joined_per_edge: int | None = None,
    ) -> None:
        self.vectors = read_only(vectors, np.float32)
        self.bias = read_only(bias, np.float32)
        self.n_neighbours = n_neighbours
        self.n_threads = n_threads
        of_many = int(max(JOINED_PER_EDGE, len(vectors) ** 0.5 / 4))
        self._n_joined = n_neighbours * (of_many if joined_per_edge is None else joined_per_edge)
        self._random = np.random.default_rng(seed)

    def build(self) -> tuple[Ids, Ids]:
        """Return the neighbours (n, n_neighbours), padded with -1, and the entries."""
        n_nodes = len(self.vectors)
        seeds = self._sample(min(n_nodes, int(np.ceil(_SEEDS_PER_ROOT * np.sqrt(n_nodes)))))
        seeds = np.concatenate(list(self._split(seeds, 2)))
        unit = code_unit(self.vectors, self.bias)
        entries = self._entries()
        far = self._nearest_seeds(seeds, unit)
        clusters = self._clusters(far[:, 0], len(seeds))
        # From here on a row is a place in this order: near ones lie side by side.
        nodes = np.concatenate(clusters)
        starts = np.cumsum([0, *map(len, clusters)])
        vectors = byte_codes(self.vectors, self.bias, unit, nodes, self.n_threads)
        edges = self._prune(vectors, starts, far, nodes, seeds)
        del far
        self._add_reverse(vectors, edges)
        neighbours = np.empty(edges.shape, np.int32)
        write_neighbours(edges, nodes, neighbours)
        return neighbours, reachable_entries(neighbours, entries)

    def _entries(self) -> Ids:
        """Draw nodes of unlike directions, in ascending order."""
        n_entries = _n_entries(len(self.vectors))
        drawn = self._sample(min(_DRAWN_PER_ENTRY * n_entries, len(self.vectors)))
        vectors = _codes_of_directions(self.vectors[drawn], some_of(self.bias, drawn))
        keys = nearest_keys(vectors, vectors, _N_ALIKE, self.n_threads)
        one, place = np.nonzero(keys[:, 1:] != LOWEST)
        key = keys[one, 1 + place]
        order = np.argsort(-similarity_in(key), kind="stable")
        pairs = np.sort(np.stack([one, row_of(key)], axis=1), axis=1)[order]
        return drawn[_unlike(pairs, len(drawn), n_entries)]

    def _sample(self, size: int) -> Ids:
        """Draw distinct nodes, in ascending order."""
        drawn = self._random.choice(len(self.vectors), size, replace=False)
        return np.sort(drawn).astype(np.int32)

    def _nearest_seeds(self, seeds: Ids, unit: np.float32) -> Ids:
        """Return which seeds are nearest to each node, the nearest first, -1 for none."""
        every_node = np.arange(len(self.vectors), dtype=np.int32)
        vectors, others = (
            byte_codes(self.vectors, self.bias, unit, rows, self.n_threads)
            for rows in (every_node, seeds)
        )
        nearest = np.empty((len(every_node), _N_FAR), np.int32)

        def work(start: int, stop: int) -> None:
            keys = empty_keys(stop - start, _N_FAR)
            nearest_rows(vectors, start, stop, others, keys, has_tiles())
            nearest[start:stop] = rows_in(keys[:, 1:])

        over_row_chunks(work, len(nearest), n_threads=self.n_threads, chunk=256)
        return nearest

    def _clusters(self, nearest_seed: Ids, n_seeds: int) -> list[Ids]:
        """Return nodes that are near the same seed, not too many in one cluster."""
        order, starts = grouped(nearest_seed, n_seeds)
        parts = np.split(order, starts[1:-1])
        return [leaf for part in parts for leaf in self._split(part, _LARGEST_CLUSTER)]

    def _split(self, rows: Ids, largest: int) -> Iterator[Ids]:
        """Halve along the line through two random nodes until a cluster is not too large."""
        if len(rows) <= largest:
            yield from [rows] if len(rows) else []
            return
        one, other = self._random.choice(rows, 2, replace=False)
        direction = self.vectors[one] - self.vectors[other]
        places = np.empty(len(rows), np.float32)
        over_row_chunks(
            lambda start, stop: project_rows(self.vectors, rows, direction, start, stop, places),
            len(rows),
            n_threads=self.n_threads,
            chunk=8192,
        )
        if len(self.bias):
            places += self.bias[rows] * (self.bias[one] - self.bias[other])
        order = np.argpartition(places, len(rows) // 2)
        yield from self._split(rows[order[: len(rows) // 2]], largest)
        yield from self._split(rows[order[len(rows) // 2 :]], largest)

    def _prune(self, vectors: ByteCodes, starts: Starts, far: Ids, nodes: Ids, seeds: Ids) -> Ids:
        """Choose the edges of every row, from the nearest of near clusters and from seeds."""
        n_rows, n_clusters = len(nodes), len(starts) - 1
        centres = _centres(vectors, starts)
        n_probes = min(max(_MIN_PROBES, self._n_joined * n_clusters // n_rows), n_clusters)
        if n_rows <= MAX_EXACT_BUILD:
            n_probes = n_clusters
        row_of_node = np.empty(n_rows, np.int32)
        row_of_node[nodes] = np.arange(n_rows, dtype=np.int32)
        row_of_seed = np.append(row_of_node[seeds], np.int32(-1))  # the last is that of none
        edges = np.empty((n_rows, self.n_neighbours), np.int32)

        def work(start: int, stop: int) -> None:
            probes = empty_keys(stop - start, n_probes)
            nearest_rows(vectors, start, stop, centres, probes, has_tiles())
            near = empty_keys(stop - start, 2 * self.n_neighbours)
            join_clusters(vectors, starts, probes, start, near, has_tiles())
            prune_candidates(vectors, start, near, row_of_seed[far[nodes[start:stop]]], edges)

        chunk = min(max(n_rows // _JOINS, _FEWEST_JOINED), _MOST_JOINED)
        over_row_chunks(work, n_rows, n_threads=self.n_threads, chunk=chunk)
        return edges

    def _add_reverse(self, vectors: ByteCodes, edges: Ids) -> None:
        """Choose the edges of every row anew, from them and those that point to it."""
        reverse, every_row = reverse_edges(edges), np.arange(len(edges), dtype=np.int32)

        def work(start: int, stop: int) -> None:
            add_reverse_edges(vectors, every_row, start, stop, edges, *reverse)

        over_row_chunks(work, len(edges), n_threads=self.n_threads, chunk=256)


def _unlike(pairs: NDArray[np.int64], n_drawn: int, n_left: int) -> NDArray[np.int64]:
    """Thin out what was drawn: of the most alike pairs the second goes, until few are left.

    `pairs` (n_pairs, 2) come as the most alike first. A pair that has lost one already is passed
    over, so that for whatever goes something like it stays.
    """
    is_left, n_to_go = np.ones(n_drawn, np.bool_), n_drawn - n_left
    for first, second in pairs.tolist():
        if n_to_go == 0:
            break
        if first != second and is_left[first] and is_left[second]:
            is_left[second] = False
            n_to_go -= 1
    left = np.flatnonzero(is_left)
    return left[evenly_spaced(n_left, len(left))]


def _n_entries(n_nodes: int) -> int:
    """Return how many nodes walks begin at."""
    per_root = 1 if n_nodes <= _MANY_NODES else _ENTRIES_PER_ROOT
    return int(np.ceil(per_root * np.sqrt(n_nodes)))


def _centres(vectors: ByteCodes, starts: Starts) -> ByteCodes:
    """Return the codes of the direction of the mean of each cluster, zero where there is none."""
    sums = np.empty((len(starts) - 1, 1 + vectors.codes.shape[1]), np.float32)
    sums_of_ranges(vectors, starts, sums)
    return _codes_of_directions(sums[:, 1:], sums[:, 0])


def _codes_of_directions(vectors: Vectors, bias: Vectors) -> ByteCodes:
    """Return the codes of vectors that are made unit ones with their bias, but for zeros."""
    return codes_of(*directions(vectors, bias))


def codes_of(vectors: Vectors, bias: Vectors, n_threads: int = 1) -> ByteCodes:
    """Return the codes of all vectors, with their bias, in a unit that suits these."""
    own, added = read_only(vectors, np.float32), read_only(bias, np.float32)
    every = np.arange(len(own), dtype=np.int32)
    return byte_codes(own, added, code_unit(own, added), every, n_threads)


def grouped(group_of_node: Ids, n_groups: int) -> tuple[Ids, Starts]:
    """Return the nodes ordered by group, and where each group starts (n_groups + 1,)."""
    order = np.argsort(group_of_node, kind="stable").astype(np.int32)
    starts = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(group_of_node, minlength=n_groups), out=starts[1:])
    return order, starts


def hashes_of(vectors: Vectors, n_threads: int = 1) -> NDArray[np.uint64]:
    """Return a hash of each row."""
    bits = read_only(vectors, np.float32).view(np.uint32)
    hashes = np.empty(len(bits), np.uint64)
    over_row_chunks(
        lambda start, stop: hash_rows(bits, start, stop, hashes), len(bits), n_threads=n_threads
    )
    return hashes


def group_equal_rows(matrix: Vectors, bias: Vectors, n_threads: int) -> tuple[Ids, Ids, Ids]:
    """Return the first of each group of equal rows, and which rows are in each group.

    Rows of another bias are others. Groups are in order of first appearance; group i is
    ``members[starts[i]:starts[i + 1]]``.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index.biased import as_bias
    >>> from longtail.index.graph_building import group_equal_rows
    >>> matrix = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    >>> groups = group_equal_rows(matrix, as_bias(None, 3), n_threads=1)
    >>> [part.tolist() for part in groups]  # rows 0 and 2, and row 1
    [[0, 1], [0, 2, 3], [0, 2, 1]]
    """
    hashes = hashes_of(matrix, n_threads)
    if len(bias):
        hashes ^= _ODD * bias.view(np.uint32).astype(np.uint64)
    if len(np.unique(hashes)) == len(hashes):  # as nearly always
        every = np.arange(len(hashes) + 1, dtype=np.int32)
        return every[:-1], every, every[:-1]
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    firsts, group_of_row = np.unique(first[group], return_inverse=True)
    members, starts = grouped(group_of_row.astype(np.int32), len(firsts))
    return firsts.astype(np.int32), starts.astype(np.int32), members


def reachable_entries(neighbours: Ids, entries: Ids) -> Ids:
    """Add entries until every node can be reached from one."""
    n_nodes = len(neighbours)
    is_reached = np.zeros(n_nodes, np.bool_)
    queue = np.empty(n_nodes, np.int32)
    chosen = [int(entry) for entry in entries]
    for entry in chosen:
        if not is_reached[entry]:
            mark_reachable(neighbours, entry, is_reached, queue)
    for node in np.flatnonzero(~is_reached).tolist():
        if not is_reached[node]:
            chosen.append(node)
            mark_reachable(neighbours, node, is_reached, queue)
    return np.array(chosen, np.int32)
