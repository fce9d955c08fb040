"""A trained default model laid out for serving: its parts as the arrays of one compiled call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.compiled.parts import no_ids
from longtail.compiled.scratch import label_beam, log_ranks_of
from longtail.compiled.walk_starts import homes_of, unsure_below
from longtail.index.biased import some_of
from longtail.index.graph import GraphIndex
from longtail.index.stored import search_bias_of
from longtail.kernels.answer_parts import Answerer, Head
from longtail.kernels.arrays import read_only
from longtail.kernels.coded_graph import NO_BIAS, NO_CODES, CodedGraph
from longtail.kernels.label_links import Relations
from longtail.kernels.packed_codes import pack_rows
from longtail.kernels.sparse_lookup import SplitRows
from longtail.kernels.wide_network import Network
from longtail.row_store import are_common, float_rows, no_numbers, packed_neighbours, some_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longtail.blend.blend import Blend
    from longtail.blend.label_head import LabelHead
    from longtail.blend.relations import LabelRelations, RelationSizes
    from longtail.blend.score_network import ScoreNetwork
    from longtail.index.protocol import VectorIndex
    from longtail.kernels.rows import Rows
    from longtail.row_store import RowStore
    from longtail.scorers.sparse_label_vectors import SparseLabelVectors

    Floats = NDArray[np.float32]

__all__ = ["laid_out", "network_laid_out", "without_edges"]


def laid_out(
    blend: Blend,
    tokens: Rows,
    store: RowStore,
    related: RelationSizes,
    steps: tuple[Floats | None, Floats | None] = (None, None),
    *,
    is_last: bool = False,
) -> Answerer:
    """Return all arrays of a model as kernels read them.

    Parameters
    ----------
    blend : Blend
    tokens : Rows
        The vectors of tokens, stored already: see `RowStore.tokens`.
    store : RowStore
        How vectors and weights are kept. As int8, training points have 4-bit codes alone.
    related : RelationSizes
        Those of the blend's relations; all 0 without any.
    steps : pair of float32 (1,) or None
        Between two codes of the labels, and of the points as int8; None for what fits them.
    is_last : bool
        Nobody else needs the blend: it lets go of its relations and linear classifiers once they
        are laid out. Of millions of labels, they are large.

    Raises
    ------
    InputError
        If the network was learnt from another number of sources than the blend has.
    """
    blend.network.check_sources(blend.n_sources)
    search, only_codes = blend.search, store.dtype == "int8"
    # First what needs most room beside its result, and then leaves some.
    has_relations, relations = blend.relations is not None, _relations(blend.relations, store)
    if is_last:
        blend.let_go("relations")
    linear, linear_bias = _split(blend.linear, len(tokens.values), store), blend.linear.bias
    if is_last:
        blend.let_go("linear")
    labels = _graph(search.label_index, store, step=steps[0])
    points = _graph(
        search.point_index, store, only_codes=only_codes, step=steps[1] if only_codes else None
    )
    heads = _heads(blend.heads, labels, store)
    every = np.zeros(0) if blend.is_read is None else blend.is_read
    sizes = search.sizes
    return Answerer(
        tokens=tokens,
        labels=labels,
        label_of_row=search.label_of_row,
        homes=homes_of(search, points, store.n_threads),
        unsure_below=unsure_below(points, labels, sizes.n_near_labels, label_beam(sizes)),
        points=points,
        point_starts=search.label_starts,
        point_labels=search.label_ids,
        popular=search.popular,
        frequent=no_ids(),
        node_bias=no_numbers(),
        heads=heads,
        n_heads=len(heads),
        further_scale=np.float32(blend.further_scale),
        further_text_scale=np.float32(blend.further_text_scale),
        linear=linear,
        linear_bias=linear_bias,
        is_read=read_only(every, np.bool_),
        relations=relations,
        has_relations=has_relations,
        commonness=read_only(blend.commonness, np.float32),
        tail_weights=read_only(blend.tail_weights, np.float32),
        network=network_laid_out(blend.network, search.n_candidates(related.n_candidates)),
    )


def _graph(
    index: VectorIndex, store: RowStore, *, only_codes: bool = False, step: Floats | None = None
) -> CodedGraph:
    """Return an index as a graph; one without edges has all its vectors for entries.

    Codes are `step` (1,) apart; None for what fits the vectors. They are made of the vectors as
    these are kept, so that a model which is changed later has the same ones.
    """
    if isinstance(index, GraphIndex):
        vectors, neighbours, entries = index.vectors, index.neighbours, index.entries
        member_starts, members = index.member_starts, index.members
    else:
        vectors = read_only(index.to_arrays()["vectors"], np.float32)
        every = np.arange(len(vectors) + 1, dtype=np.int32)
        neighbours = np.empty((len(vectors), 0), np.int32)
        member_starts, entries, members = every, every[:-1], every[:-1]
    rows = store.rows(vectors[:0] if only_codes else vectors)
    kept = None if only_codes else lambda some: float_rows(some_rows(rows, some))
    codes, step = pack_rows(vectors, store.n_threads, step, kept)
    bias, looked_at = search_bias_of(index), entries if neighbours.shape[1] else entries[:0]
    return CodedGraph(
        read_only(codes, np.uint8),
        read_only(step, np.float32),
        rows,
        packed_neighbours(neighbours),
        entries=read_only(entries, np.int32),
        member_starts=read_only(member_starts, np.int32),
        members=read_only(members, np.int32),
        bias=bias,
        entry_codes=read_only(codes[looked_at], np.uint8) if len(looked_at) else NO_CODES,
        entry_bias=read_only(some_of(bias, looked_at), np.float32),
    )


def without_edges(graph: CodedGraph) -> CodedGraph:
    """Return a graph as an index without edges, which is scanned: all its nodes are entries.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.layout import without_edges
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> len(without_edges(model.scorer.parts.points).entries)
    20
    """
    every = np.arange(len(graph.codes), dtype=np.int32)
    return graph._replace(
        neighbours=packed_neighbours(np.empty((len(every), 0), np.int32)),
        entries=read_only(every, np.int32),
        entry_codes=NO_CODES,
        entry_bias=NO_BIAS,
    )


def _heads(heads: Sequence[LabelHead], labels: CodedGraph, store: RowStore) -> tuple[Head, ...]:
    """Return heads as they are kept: the first one's vectors are those that are searched."""
    rows = [labels.rows, *(store.stored(head.rows) for head in heads[1:])]
    return tuple(
        Head(vectors, head.row_of_label, head.bias, np.float32(head.scale))
        for vectors, head in zip(rows, heads, strict=True)
    )


def _split(linear: SparseLabelVectors, n_tokens: int, store: RowStore) -> SplitRows:
    """Return the weights of linear classifiers."""
    weights = linear.matrix(n_tokens)
    return store.split(weights, are_common(weights))


def _relations(relations: LabelRelations | None, store: RowStore) -> Relations:
    """Return what label texts say; empty where there are none."""
    if relations is None:
        none = store.no_split()
        return Relations(none, none.rare)
    n_labels, is_common = relations.texts.n_labels, relations.is_common
    texts = relations.texts.matrix(len(is_common))
    postings = (relations.posting_starts, relations.posting_labels, relations.posting_weights)
    links = (relations.link_starts, relations.link_labels, relations.vote_weights)
    return Relations(
        SplitRows(store.sparse(*postings, n_labels), *store.common(texts, is_common)),
        store.sparse(*links, n_labels),
    )


def network_laid_out(network: ScoreNetwork, width: int) -> Network:
    """Return the network with outputs first, and the logarithms of all ranks.

    Parameters
    ----------
    network : ScoreNetwork
    width : int
        Most candidates of a point.
    """
    arrays: dict[str, Any] = network.to_arrays()
    turned = {name: read_only(arrays[name].T, np.float32) for name in ("matrix1", "matrix2")}
    return Network(**arrays | turned, log_ranks=log_ranks_of(width))
