"""Where the walks of a compiled model start, and which points are to be walked for longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.index.stored import search_rows_of
from longtail.kernels.arrays import read_only
from longtail.kernels.code_search import write_similarities_at
from longtail.kernels.coded_graph import CodedGraph, n_edges, new_walk
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.own_rows import nearest_own_rows
from longtail.row_store import some_nodes, vectors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.candidates import CandidateSearch

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["homes_of", "unsure_below"]

_N_NEAR = 8  # labels
_MOST_OWN = 32  # points of a label, of which the nearest is its home
_N_ASKED = 2_000
_UNSURE_SHARE = 0.4
_ROWS_AT_ONCE = 8192


def homes_of(search: CandidateSearch, points: CodedGraph, n_threads: int = 1) -> Ids:
    """Return the node of a training point near each label vector: walks of the points start there.

    Labels near a text are found more surely than points near it, which are more and lie in knots;
    and a point near such a label is near the text, too. The nearest of those that have the label is
    as good a start as the nearest of all, and for a label without points that of a label near it.

    Parameters
    ----------
    search : CandidateSearch
    points : CodedGraph
        The points of `search`. One without edges is scanned, and needs no starts.
    n_threads : int

    Returns
    -------
    int32 (n_nodes,), of labels, -1 where there is none; or (0,) where none are needed
    """
    if not n_edges(points):
        return read_only(np.zeros(0), np.int32)
    labels, node_of_row = search_rows_of(search.label_index)
    vectors, node_of_point = search_rows_of(search.point_index)
    row_of_node = np.empty(len(labels), np.int32)
    row_of_node[node_of_row[::-1]] = np.arange(len(node_of_row), dtype=np.int32)[::-1]
    starts, own = _points_of(search.label_of_row[row_of_node], search)
    every = np.arange(len(labels))
    homes = _nearest(labels, every, starts, node_of_point[own], vectors, n_threads)
    without = np.flatnonzero(homes < 0)
    near = search.label_index.near_rows(_N_NEAR)[row_of_node[without]]
    of_near = np.where(near >= 0, homes[node_of_row[near]], np.int32(-1))
    starts = np.concatenate([[0], np.cumsum((of_near >= 0).sum(axis=1))])
    own = of_near[of_near >= 0]
    homes[without] = _nearest(labels, without, starts, own, vectors, n_threads)
    return read_only(homes, np.int32)


def _nearest(
    labels: Floats,
    nodes: NDArray[np.int64],
    starts: NDArray[np.int64],
    own: Ids,
    vectors: Floats,
    n_threads: int,
) -> Ids:
    """Return for each of some nodes of labels the nearest of the points that it may have, or -1.

    Node i of them may have ``own[starts[i]:starts[i + 1]]``, which are rows of `vectors`.
    """
    nearest = np.empty(len(nodes), np.int32)

    def work(start: int, stop: int) -> None:
        some, bounds = labels[nodes[start:stop]], starts[start : stop + 1]
        nearest_own_rows(some, bounds, own, vectors, _MOST_OWN, nearest[start:stop])

    over_row_chunks(work, len(nodes), n_threads=n_threads, chunk=_ROWS_AT_ONCE)
    return nearest


def _points_of(labels: Ids, search: CandidateSearch) -> tuple[NDArray[np.int64], Ids]:
    """Return the training points of some labels, as starts (n_labels + 1,) and rows."""
    shape = len(search.label_starts) - 1, search.n_labels
    ones = np.ones(len(search.label_ids), np.int8)
    by_label = csr_array((ones, search.label_ids, search.label_starts), shape).T.tocsr()[labels]
    return by_label.indptr.astype(np.int64), by_label.indices.astype(np.int32)


def unsure_below(points: CodedGraph, labels: CodedGraph, n_found: int, beam_size: int) -> Floats:
    """Return the similarity of the last label found below which some are likely to be missed.

    Below it are two fifths of the training points, and most of what walks miss:
    points whose labels are all far away.

    Parameters
    ----------
    points, labels : CodedGraph
    n_found : int
        How many labels are wanted.
    beam_size : int

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
    codes, walk = np.zeros(2 * labels.codes.shape[1], np.int8), new_walk(labels, beam_size)
    last = np.empty(len(asked), np.float32)
    write_similarities_at(n_found, read_only(asked, np.float32), codes, labels, walk, last)
    return read_only(np.quantile(last, _UNSURE_SHARE, keepdims=True), np.float32)
