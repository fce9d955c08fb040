"""Approximate search by walking a graph of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.errors import InputError
from longtail.index.protocol import as_queries, as_vectors, check_k, read_only
from longtail.kernels.exact import exact_topk
from longtail.kernels.graph import (
    add_reverse_edges,
    hash_rows,
    join_candidates,
    mark_reachable,
    merge_candidates,
    project_rows,
    prune_candidates,
    search_rows,
)
from longtail.kernels.jit import over_row_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray

    Ids = NDArray[np.int32]
    Starts = NDArray[np.int64]
    Vectors = NDArray[np.float32]

__all__ = ["GraphIndex"]

DEFAULT_BEAM = 160
MAX_EXACT_BUILD = 5_000
_ARRAY_NAMES = ("vectors", "neighbours", "entries", "member_starts", "members")
_N_FAR = 24
_SEEDS_PER_ROOT = 4
_LARGEST_CLUSTER = 1024
_N_JOINED = 1024
_MIN_PROBES = 6


class GraphIndex:
    """Search that looks at a few thousand vectors, however many there are.

    Each distinct vector is a node with at most `n_neighbours` edges: to near ones in different
    directions, some of them far (see `build`). A query scores the entry nodes, about the square
    root of all, then follows the edges of the best nodes seen, until the best `beam` of them have
    all been followed. Rows with equal vectors share one node, so they cannot close a circle.

    Use `build` or `from_arrays`; the arrays may be read-only memory maps. `query` releases the
    global lock and may be called from several threads at once.

    Parameters
    ----------
    vectors : float32 (n_nodes, d)
        The distinct vectors.
    neighbours : int32 (n_nodes, n_neighbours)
        Out-edges, padded with -1.
    entries : int32 (n_entries,)
        Where a search begins; from them every node can be reached.
    member_starts : int32 (n_nodes + 1,)
    members : int32 (n_rows,)
        The rows behind node i are ``members[member_starts[i]:member_starts[i + 1]]``.
    beam : int, default 160
        Nodes kept in view: more find more and take longer. At least k are kept.
    n_threads : int, default 1
        Threads for a query of many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import GraphIndex
    >>> vectors = np.eye(4, dtype=np.float32)[[0, 1, 1, 2]]
    >>> index = GraphIndex.build(vectors, seed=0)
    >>> index.query(vectors[1:2], k=3)[0].tolist()
    [[1, 2, 0]]
    """

    def __init__(
        self,
        vectors: ArrayLike,
        neighbours: ArrayLike,
        entries: ArrayLike,
        member_starts: ArrayLike,
        members: ArrayLike,
        *,
        beam: int = DEFAULT_BEAM,
        n_threads: int = 1,
    ) -> None:
        self.vectors = as_vectors(vectors)
        self.neighbours = read_only(neighbours, np.int32)
        self.entries = read_only(entries, np.int32)
        self.member_starts = read_only(member_starts, np.int32)
        self.members = read_only(members, np.int32)
        self.beam = beam
        self.n_threads = n_threads
        self._free_stamps: list[Ids] = []

    @classmethod
    def build(
        cls,
        vectors: ArrayLike,
        *,
        n_neighbours: int = 32,
        seed: int = 0,
        n_threads: int = 1,
        beam: int = DEFAULT_BEAM,
    ) -> GraphIndex:
        """Build the graph of the rows of `vectors`.

        The candidates of a node are its nearest nodes (exact up to 5,000 nodes; beyond, the nearest
        of the about 1,000 in the clusters whose centres are nearest) and the nearest of a random
        sample, which gives the edges that leave a cluster. They are thinned out as in HNSW (Malkov
        and Yashunin, 2018), once alone and once with the edges that point back.

        The same seed gives the same bytes, with any number of threads.

        Parameters
        ----------
        vectors : array (n_rows, d)
            Finite; of unit length for the thinning to be well founded.
        n_neighbours : int, default 32
            The most edges that leave a node, at least 2.
        seed : int, default 0
        n_threads : int, default 1
            For the building and for later queries.
        beam : int, default 160
            See the class.

        Raises
        ------
        InputError
            If the vectors are not a finite (n, d) matrix with n > 0, or `n_neighbours` is below 2.
        """
        if n_neighbours < 2:
            raise InputError(f"n_neighbours must be at least 2, got {n_neighbours}.")
        matrix = as_vectors(vectors)
        if len(matrix) == 0:
            raise InputError("A graph index needs at least one vector, got none.")
        if not np.isfinite([matrix.min(), matrix.max()]).all():  # a mask would be large
            raise InputError("The vectors hold NaN or infinity. Pass finite numbers.")
        nodes, member_starts, members = _group_equal_rows(matrix)
        builder = _Builder(nodes, n_neighbours, seed, n_threads)
        neighbours = builder.build()
        return cls(
            nodes,
            neighbours,
            _with_unreachable(neighbours, builder.entries),
            member_starts,
            members,
            beam=beam,
            n_threads=n_threads,
        )

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, NDArray[np.generic]],
        *,
        beam: int = DEFAULT_BEAM,
        n_threads: int = 1,
    ) -> GraphIndex:
        """Make the index again from `to_arrays`, without copying them.

        Raises
        ------
        InputError
            If an array is missing or they do not belong together.
        """
        if missing := [name for name in _ARRAY_NAMES if name not in arrays]:
            raise InputError(f"A graph index needs the array {missing[0]!r}. Build it again.")
        index = cls(*(arrays[name] for name in _ARRAY_NAMES), beam=beam, n_threads=n_threads)
        _check_parts(index)
        return index

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the five arrays that the constructor takes, by name."""
        return {name: getattr(self, name) for name in _ARRAY_NAMES}

    def near_rows(self, n_near: int) -> Ids:
        """See `VectorIndex.near_rows`: where the edges lead, so that nothing is searched.

        Of rows with equal vectors, the first stands for all.
        """
        first_rows = self.members[self.member_starts[:-1]]
        edges = self.neighbours[:, :n_near]
        of_node = np.where(edges >= 0, first_rows[edges], np.int32(-1))
        return of_node[self.node_of_row()]

    def node_of_row(self) -> Ids:
        """Return the node of each row, int32 (n_rows,)."""
        nodes = np.empty(len(self.members), np.int32)
        every_node = np.arange(len(self.vectors), dtype=np.int32)
        nodes[self.members] = np.repeat(every_node, np.diff(self.member_starts))
        return nodes

    def query(self, queries: ArrayLike, k: int) -> tuple[Ids, Vectors]:
        """Return ids (n, k) and inner products (n, k); see `VectorIndex.query`.

        Raises
        ------
        InputError
            If the queries have another dimension, are not finite, or `k` is below 1.
        """
        check_k(k)
        matrix = as_queries(queries, self.vectors.shape[1])
        ids = np.empty((len(matrix), k), np.int32)
        similarities = np.empty((len(matrix), k), np.float32)
        beam = min(max(self.beam, k), len(self.vectors))

        def work(start: int, stop: int) -> None:
            stamps = self._borrow_stamps()
            search_rows(
                matrix,
                start,
                stop,
                self.vectors,
                self.neighbours,
                self.entries,
                self.member_starts,
                self.members,
                beam,
                stamps,
                ids,
                similarities,
            )
            self._free_stamps.append(stamps)

        over_row_chunks(work, len(matrix), n_threads=self.n_threads, chunk=128)
        return ids, similarities

    def _borrow_stamps(self) -> Ids:
        """Take scratch nobody uses now: clearing n_nodes numbers a query would cost too much."""
        try:
            return self._free_stamps.pop()
        except IndexError:
            return np.zeros(len(self.vectors) + 1, np.int32)


class _Candidates:
    """The best nodes found so far for each node, descending, padded with -1 and -inf."""

    def __init__(self, n_nodes: int, capacity: int) -> None:
        self.ids = np.full((n_nodes, capacity), -1, np.int32)
        self.similarities = np.full((n_nodes, capacity), -np.inf, np.float32)

    def add(self, rows: Ids, ids: Ids, similarities: Vectors) -> None:
        """Merge what was found for `rows`; disjoint rows may be added from several threads."""
        merge_candidates(rows, ids, similarities, self.ids, self.similarities)


class _Builder:
    """Builds the edges between distinct vectors: candidates, thinning out, edges back."""

    def __init__(self, vectors: Vectors, n_neighbours: int, seed: int, n_threads: int) -> None:
        self.vectors = vectors
        self.n_neighbours = n_neighbours
        self.n_threads = n_threads
        self.random = np.random.default_rng(seed)
        self.every_node = np.arange(len(vectors), dtype=np.int32)
        self.entries = self._sample(int(np.ceil(np.sqrt(len(vectors)))))
        self.near = _Candidates(len(vectors), 2 * n_neighbours)
        self.far = _Candidates(len(vectors), _N_FAR)

    def build(self) -> Ids:
        """Return the neighbours (n_nodes, n_neighbours)."""
        n_nodes = len(self.vectors)
        seeds = self._sample(min(n_nodes, int(np.ceil(_SEEDS_PER_ROOT * np.sqrt(n_nodes)))))
        nearest_seed = self._scan(seeds, _N_FAR + 1, self.far)
        if n_nodes <= MAX_EXACT_BUILD:
            self._scan(self.every_node, self.near.ids.shape[1] + 1, self.near)
            return self._connect(self.every_node)
        # A seed and the nodes nearest to it are a cluster.
        order, starts = _grouped(nearest_seed, len(seeds))
        parts = np.split(order, starts[1:-1])
        clusters = [leaf for part in parts for leaf in self._split(part)]
        self._scan_clusters(clusters)
        return self._connect(np.concatenate(clusters))

    def _sample(self, size: int) -> Ids:
        """Draw distinct nodes, in ascending order."""
        drawn = self.random.choice(len(self.vectors), size, replace=False)
        return np.sort(drawn).astype(np.int32)

    def _scan(self, among: Ids, k: int, candidates: _Candidates) -> Ids:
        """Add to every node the `k` nearest of `among`, exactly; return where the nearest is."""
        block = as_vectors(self.vectors[among])
        nearest = np.empty(len(self.vectors), np.int32)

        def work(start: int, stop: int) -> None:
            places, similarities = _exact(self.vectors[start:stop], block, k)
            nearest[start:stop] = places[:, 0]
            ids = np.where(places >= 0, among[places], np.int32(-1))
            candidates.add(self.every_node[start:stop], ids, similarities)

        over_row_chunks(work, len(self.vectors), n_threads=self.n_threads, chunk=256)
        return nearest

    def _split(self, rows: Ids) -> Iterator[Ids]:
        """Halve along the line through two random nodes until a cluster is not too large."""
        if len(rows) <= _LARGEST_CLUSTER:
            yield from [rows] if len(rows) else []
            return
        one, other = self.random.choice(rows, 2, replace=False)
        direction = self.vectors[one] - self.vectors[other]
        places = np.empty(len(rows), np.float32)
        over_row_chunks(
            lambda start, stop: project_rows(self.vectors, rows, direction, start, stop, places),
            len(rows),
            n_threads=self.n_threads,
            chunk=8192,
        )
        order = np.argpartition(places, len(rows) // 2)
        yield from self._split(rows[order[: len(rows) // 2]])
        yield from self._split(rows[order[len(rows) // 2 :]])

    def _scan_clusters(self, clusters: list[Ids]) -> None:
        """Add to every node its nearest of the clusters whose centres are nearest."""
        members = np.concatenate(clusters)
        starts = np.concatenate([[0], np.cumsum([len(cluster) for cluster in clusters])])
        centres = _unit_means(self.vectors, clusters)
        for probe in self._probes(centres).T:
            self._join(*_grouped(probe, len(clusters)), members, starts)

    def _join(
        self,
        rows: Ids,
        row_starts: Starts,
        members: Ids,
        member_starts: Starts,
    ) -> None:
        """Add to every row the nearest of the cluster it is grouped with."""
        near = self.near

        def work(first: int, last: int) -> None:
            start, stop = member_starts[first], member_starts[last]
            own = members[start:stop]
            join_candidates(
                0,
                last - first,
                self.vectors,
                rows,
                row_starts[first : last + 1],
                own,
                member_starts[first : last + 1] - start,
                as_vectors(self.vectors[own]),  # side by side, and a copy of these alone
                near.ids,
                near.similarities,
            )

        # A row is in one group only, so no two threads write to the same list.
        over_row_chunks(work, len(row_starts) - 1, n_threads=self.n_threads, chunk=8)

    def _probes(self, centres: Vectors) -> Ids:
        """Return for every node the nearest centres, enough of them for `_N_JOINED` nodes."""
        n_wanted = max(_MIN_PROBES, _N_JOINED * len(centres) // len(self.vectors))
        probes = np.empty((len(self.vectors), min(n_wanted, len(centres))), np.int32)

        def work(start: int, stop: int) -> None:
            probes[start:stop] = _exact(self.vectors[start:stop], centres, probes.shape[1])[0]

        over_row_chunks(work, len(probes), n_threads=self.n_threads, chunk=256)
        return probes

    def _connect(self, order: Ids) -> Ids:
        """Choose the edges of every node from its candidates, then also from the edges back.

        An `order` in which nodes that are near come together keeps their vectors in the cache.
        """
        forward = np.empty((len(self.vectors), self.n_neighbours), np.int32)
        similarities = np.empty(forward.shape, np.float32)

        def prune(start: int, stop: int) -> None:
            prune_candidates(
                order[start:stop],
                self.vectors,
                self.near.ids,
                self.near.similarities,
                self.far.ids,
                self.far.similarities,
                forward,
                similarities,
            )

        over_row_chunks(prune, len(order), n_threads=self.n_threads, chunk=256)
        del self.near, self.far  # the edges back need the room
        reverse = _reverse_edges(forward, similarities)
        neighbours = np.empty_like(forward)

        def add_back(start: int, stop: int) -> None:
            nodes = order[start:stop]
            add_reverse_edges(nodes, self.vectors, forward, similarities, *reverse, neighbours)

        over_row_chunks(add_back, len(order), n_threads=self.n_threads, chunk=256)
        return neighbours


def _exact(queries: Vectors, vectors: Vectors, k: int) -> tuple[Ids, Vectors]:
    """Return the `k` nearest of `vectors` to each query, and the inner products."""
    ids = np.empty((len(queries), k), np.int32)
    similarities = np.empty((len(queries), k), np.float32)
    exact_topk(queries, vectors, 0, len(queries), ids, similarities)
    return ids, similarities


def _grouped(group_of_node: Ids, n_groups: int) -> tuple[Ids, Starts]:
    """Return the nodes ordered by group, and where each group starts (n_groups + 1,)."""
    order = np.argsort(group_of_node, kind="stable").astype(np.int32)
    starts = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(group_of_node, minlength=n_groups), out=starts[1:])
    return order, starts


def _unit_means(vectors: Vectors, groups: list[Ids]) -> Vectors:
    """Return the direction of the mean of each group of rows, zero where there is none."""
    sums = np.stack([np.add.reduceat(vectors[rows], [0])[0] for rows in groups])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return as_vectors(sums / np.where(lengths > 0, lengths, 1))


def _reverse_edges(forward: Ids, similarities: Vectors) -> tuple[Starts, Ids, Vectors]:
    """Return the nodes that point to each node, as starts (n + 1,), a flat list, similarities."""
    is_edge = forward >= 0
    starts = np.concatenate([[0], np.cumsum(is_edge.sum(axis=1))])
    edges = csr_array(
        (similarities[is_edge], forward[is_edge], starts), (len(forward), len(forward))
    ).tocsc()  # counts instead of comparing, and keeps the order of the nodes
    return edges.indptr.astype(np.int64), edges.indices.astype(np.int32, copy=False), edges.data


def _group_equal_rows(matrix: Vectors) -> tuple[Vectors, Ids, Ids]:
    """Return the distinct rows in order of first appearance, and the rows behind each of them."""
    hashes = hash_rows(matrix.view(np.uint32))
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    firsts, node_of_row = np.unique(first[group], return_inverse=True)
    members = np.argsort(node_of_row, kind="stable").astype(np.int32)
    member_starts = np.zeros(len(firsts) + 1, np.int32)
    np.cumsum(np.bincount(node_of_row, minlength=len(firsts)), out=member_starts[1:])
    nodes = matrix if len(firsts) == len(matrix) else matrix[firsts]
    return as_vectors(nodes), member_starts, members


def _check_parts(index: GraphIndex) -> None:
    """Refuse arrays that would lead a kernel out of bounds."""
    n_nodes, n_rows = len(index.vectors), len(index.members)
    starts = index.member_starts
    fits = (
        index.neighbours.ndim == 2
        and len(index.neighbours) == n_nodes
        and index.entries.ndim == starts.ndim == index.members.ndim == 1
        and len(starts) == n_nodes + 1
        and starts[0] == 0
        and starts[-1] == n_rows
        and bool((np.diff(starts) >= 0).all())
        and _is_within(index.neighbours, -1, n_nodes)
        and _is_within(index.entries, 0, n_nodes)
        and _is_within(index.members, 0, n_rows)
    )
    if not fits:
        raise InputError(
            f"The arrays of the graph index do not belong together: {n_nodes} vectors, neighbours "
            f"{index.neighbours.shape}, {n_rows} members. Build it again."
        )


def _is_within(numbers: Ids, low: int, high: int) -> bool:
    """Tell whether all numbers are at least `low` and below `high`."""
    return numbers.size == 0 or (int(numbers.min()) >= low and int(numbers.max()) < high)


def _with_unreachable(neighbours: Ids, entries: Ids) -> Ids:
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
