"""Where the walks of a compiled model start, and which points are to be walked for longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.compiled.row_store import some_nodes, vectors_of
from longtail.kernels.arrays import read_only
from longtail.kernels.code_search import CodedGraph, n_edges, new_walk, write_nearest
from longtail.kernels.jit import over_row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["homes_of", "unsure_below"]

_BEAM = 32
_N_ASKED = 2_000
_UNSURE_SHARE = 0.25
_ROWS_AT_ONCE = 8192


def homes_of(labels: Floats, points: CodedGraph, n_threads: int = 1) -> Ids:
    """Return the node of a training point near each label vector: walks of the points start there.

    Labels near a text are found more surely than points near it, which are more and lie in knots;
    and the point nearest to such a label is near the text, too.

    Parameters
    ----------
    labels : float32 (n, d)
    points : CodedGraph
        One without edges is scanned, and needs no starts.
    n_threads : int

    Returns
    -------
    int32 (n,), or (0,) where none are needed
    """
    if not n_edges(points):
        return read_only(np.zeros(0), np.int32)
    return read_only(_found(labels, points, _BEAM, 1, n_threads)[0], np.int32)


def unsure_below(points: CodedGraph, labels: CodedGraph, n_found: int, beam: int) -> Floats:
    """Return the similarity of the last label found below which some are likely to be missed.

    Below it are a quarter of the training points, and more than half of what walks miss:
    points whose labels are all far away.

    Parameters
    ----------
    points, labels : CodedGraph
    n_found : int
        How many labels are wanted.
    beam : int

    Returns
    -------
    float32 (1,)
        -inf where labels are scanned, or where the model keeps no training points to ask about.
    """
    if not n_edges(labels) or not len(points.codes):
        return read_only(np.full(1, -np.inf), np.float32)
    n_points, dimension = len(points.codes), labels.rows.values.shape[1]
    drawn = np.random.default_rng(0).permutation(n_points)[:_N_ASKED]
    asked = vectors_of(some_nodes(points, drawn), dimension)
    last = _found(asked, labels, beam, n_found)[1]
    return read_only(np.quantile(last, _UNSURE_SHARE, keepdims=True), np.float32)


def _found(
    vectors: Floats, graph: CodedGraph, beam: int, place: int, n_threads: int = 1
) -> tuple[Ids, Floats]:
    """Return the node that a walk ends with at a place, and its similarity, for each vector."""
    nodes, similarities = np.empty(len(vectors), np.int32), np.empty(len(vectors), np.float32)
    vectors = read_only(vectors, np.float32)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        codes = np.zeros(2 * graph.codes.shape[1], np.int8)
        walk = new_walk(graph, beam)
        write_nearest(vectors[rows], codes, graph, walk, place, nodes[rows], similarities[rows])

    over_row_chunks(work, len(vectors), n_threads=n_threads, chunk=_ROWS_AT_ONCE)
    return nodes, similarities
