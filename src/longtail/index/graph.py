"""Approximate search by walking a graph of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.assembled import moved_up, taken
from longtail.data.csr import fits_rows, is_within
from longtail.errors import InputError, require_positive
from longtail.index.biased import as_bias, some_of, with_biased
from longtail.index.graph_building import GraphBuilder, group_equal_rows
from longtail.index.protocol import as_queries, as_vectors, check_bounds
from longtail.kernels.arrays import read_only
from longtail.kernels.byte_codes import MAX_DIMENSION
from longtail.kernels.graph import Graph, search_rows
from longtail.kernels.jit import over_row_chunks
from longtail.spares import Spares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    Ids = NDArray[np.int32]
    Vectors = NDArray[np.float32]

__all__ = ["GraphIndex"]

DEFAULT_BEAM = 160
DEFAULT_NEIGHBOURS = 32
_ARRAY_NAMES = ("vectors", "neighbours", "entries", "member_starts", "members")


class GraphIndex:
    """Search that looks at a few thousand vectors, however many there are.

    Each distinct vector is a node with at most `n_neighbours` edges: to near ones in different
    directions, some of them far (see `build`). A query scores the entry nodes: some unlike each
    other, about the square root of all and eight times that beyond 131,072, and those of the
    largest bias, twice the square root; then it follows the edges of the best nodes seen, until the
    best `beam_size` of them have all been followed. Rows with equal vectors share one node, so they
    cannot close a circle.

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
    bias : float32 (n_nodes,) or None
        What is added to the inner products with each node.
    beam_size : int, default 160
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
        bias: ArrayLike | None = None,
        beam_size: int = DEFAULT_BEAM,
        n_threads: int = 1,
    ) -> None:
        self.vectors = as_vectors(vectors)
        self.neighbours = read_only(neighbours, np.int32)
        self.entries = read_only(entries, np.int32)
        self.member_starts = read_only(member_starts, np.int32)
        self.members = read_only(members, np.int32)
        self.bias = as_bias(bias, len(self.vectors))
        self.beam_size = beam_size
        self.n_threads = n_threads
        self._spares: Spares[Ids] = Spares()

    @classmethod
    def build(
        cls,
        vectors: ArrayLike,
        *,
        bias: ArrayLike | None = None,
        n_neighbours: int = DEFAULT_NEIGHBOURS,
        seed: int = 0,
        n_threads: int = 1,
        beam_size: int = DEFAULT_BEAM,
        joined_per_edge: int | None = None,
        in_place: bool = False,
    ) -> GraphIndex:
        """Build the graph of the rows of `vectors`.

        The candidates of a node are the nearest nodes (of all, up to 5,000; beyond, of those in the
        clusters whose centres are nearest) and the nearest of a random sample, which gives the
        edges that leave a cluster. They are thinned out as in HNSW (Malkov and Yashunin, 2018),
        once alone and once with the edges that point back. What is near is told by vectors in seven
        bits a number; see `longtail.kernels.byte_codes`.

        The same seed gives the same bytes, with any number of threads.

        Parameters
        ----------
        vectors : array (n_rows, d)
            No number beyond 1e15, d at most 65,536; of unit length for the thinning to be well
            founded.
        bias : array (n_rows,) or None
            What is added to the inner products with each row. Edges are those of the vectors with
            the bias as a further number of them, which lead more surely to what queries find.
        n_neighbours : int, default 32
            The most edges that leave a node, at least 2.
        seed : int, default 0
        n_threads : int, default 1
            For the building and for later queries.
        beam_size : int, default 160
            See the class.
        joined_per_edge : int, optional
            Nodes of near clusters that each is compared with, for each edge: by default 128 or, if
            that is more, a quarter of the square root of all.
        in_place : bool, default False
            Whether the vectors, a writable float32 array, may be written over: of equal rows the
            graph keeps one, and else those that are left are copied.

        Raises
        ------
        InputError
            If the vectors are not such a matrix with n > 0, or `n_neighbours` is below 2.
        """
        if n_neighbours < 2:
            raise InputError(f"n_neighbours must be at least 2, got {n_neighbours}.")
        matrix = as_vectors(vectors)
        if len(matrix) == 0:
            raise InputError("A graph index needs at least one vector, got none.")
        if matrix.shape[1] > MAX_DIMENSION:
            raise InputError(
                f"A graph index takes at most {MAX_DIMENSION} dimensions, got {matrix.shape[1]}. "
                "Use an ExactIndex."
            )
        check_bounds(matrix)
        node_bias = as_bias(bias, len(matrix))
        firsts, *groups = group_equal_rows(matrix, node_bias, n_threads)
        if len(firsts) < len(matrix):
            own = np.asarray(vectors)
            kept = moved_up(own, firsts) if in_place else taken(matrix, firsts, n_threads)
            matrix, node_bias = read_only(kept, np.float32), some_of(node_bias, firsts)
        builder = GraphBuilder(matrix, node_bias, n_neighbours, seed, n_threads, joined_per_edge)
        neighbours, entries = builder.build()
        parts = (neighbours, with_biased(entries, node_bias), *groups)
        return cls(matrix, *parts, bias=node_bias, beam_size=beam_size, n_threads=n_threads)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[np.generic]], *, beam_size: int = DEFAULT_BEAM
    ) -> GraphIndex:
        """Make the index again from `to_arrays`, without copying them.

        Raises
        ------
        InputError
            If an array is missing or they do not belong together.
        """
        if missing := [name for name in _ARRAY_NAMES if name not in arrays]:
            raise InputError(f"A graph index needs the array {missing[0]!r}. Build it again.")
        parts = [arrays[name] for name in _ARRAY_NAMES]
        index = cls(*parts, bias=arrays.get("bias"), beam_size=beam_size)
        _check_parts(index)
        return index

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the five arrays that the constructor takes, by name, and the bias if any."""
        arrays = {name: getattr(self, name) for name in _ARRAY_NAMES}
        return arrays | ({"bias": self.bias} if len(self.bias) else {})

    def near_rows(self, n_near: int) -> Ids:
        """See `VectorIndex.near_rows`: where the edges lead, so that nothing is searched.

        Of rows with equal vectors, the first stands for all.
        """
        first_rows, nodes = self.members[self.member_starts[:-1]], self.node_of_row()
        near = np.empty((len(nodes), min(n_near, self.neighbours.shape[1])), np.int32)

        def work(start: int, stop: int) -> None:
            edges = self.neighbours[nodes[start:stop], :n_near]
            near[start:stop] = np.where(edges >= 0, first_rows[edges], np.int32(-1))

        over_row_chunks(work, len(nodes), n_threads=self.n_threads, chunk=4096)
        return near

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
        require_positive("k", k)
        matrix = as_queries(queries, self.vectors.shape[1])
        ids = np.empty((len(matrix), k), np.int32)
        similarities = np.empty((len(matrix), k), np.float32)
        beam_size = min(max(self.beam_size, k), len(self.vectors))
        graph = Graph(
            self.vectors,
            self.bias,
            self.neighbours,
            self.entries,
            self.member_starts,
            self.members,
        )

        def work(start: int, stop: int) -> None:
            stamps = self._spares.taken(self._new_stamps)
            search_rows(matrix, start, stop, graph, beam_size, stamps, ids, similarities)
            self._spares.keep(stamps)

        over_row_chunks(work, len(matrix), n_threads=self.n_threads, chunk=128)
        return ids, similarities

    def _new_stamps(self) -> Ids:
        """Return scratch: clearing n_nodes numbers a query would cost too much."""
        return np.zeros(len(self.vectors) + 1, np.int32)


def _check_parts(index: GraphIndex) -> None:
    """Refuse arrays that would lead a kernel out of bounds."""
    n_nodes, n_rows = len(index.vectors), len(index.members)
    starts = index.member_starts
    fits = (
        index.neighbours.ndim == 2
        and len(index.neighbours) == n_nodes
        and index.entries.ndim == starts.ndim == index.members.ndim == 1
        and len(starts) == n_nodes + 1
        and fits_rows(starts, index.members, n_rows)
        and is_within(index.neighbours, -1, n_nodes)
        and is_within(index.entries, 0, n_nodes)
    )
    if not fits:
        raise InputError(
            f"The arrays of the graph index do not belong together: {n_nodes} vectors, neighbours "
            f"{index.neighbours.shape}, {n_rows} members. Build it again."
        )
