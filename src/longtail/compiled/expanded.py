"""A compiled model as the parts that it was laid out from, so that it can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.blend.candidates import CandidateSearch
from longtail.blend.label_head import LabelHead
from longtail.blend.relations import LabelRelations
from longtail.blend.score_network import ScoreNetwork
from longtail.compiled.blended import BlendedScorer
from longtail.compiled.parts import dimension_of
from longtail.features.bag_encoder import StoredBagEncoder
from longtail.index.exact import ExactIndex
from longtail.index.graph import GraphIndex
from longtail.row_store import (
    check_sparse,
    column_ids,
    float_weights,
    neighbours_of,
    vectors_of,
    whole_rows,
)
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.compiled.scorer import CompiledScorer
    from longtail.index.protocol import VectorIndex
    from longtail.kernels.coded_graph import CodedGraph
    from longtail.kernels.sparse_lookup import SplitRows

__all__ = ["expanded"]

_GRAPH_PARTS = ("entries", "member_starts", "members", "bias")


def expanded(compiled: CompiledScorer) -> BlendedScorer:
    """Return a model of float32 parts that, compiled to the same type, is the same model.

    To the last bit for float32. Numbers of 16 and of 8 bits come back as they are stored, and the
    codes that the search follows are made of them anew, as they were made.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.expanded import expanded
    >>> from longtail.compiled.scorer import CompiledScorer
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> first = CompiledScorer.of(expanded(model.scorer), "float32")
    >>> second = CompiledScorer.of(expanded(first), "float32")
    >>> one, other = (scorer.top_k(model.bags(["wine"]), 2)[1] for scorer in (first, second))
    >>> (one == other).tolist()
    [[True, True]]
    """
    parts = compiled.parts
    dimension = dimension_of(parts)
    search = CandidateSearch(
        label_index=_index(parts.labels, dimension, compiled.sizes.beam_size),
        label_of_row=parts.label_of_row,
        point_index=_index(parts.points, dimension, compiled.sizes.beam_size),
        label_starts=parts.point_starts,
        label_ids=parts.point_labels,
        popular=parts.popular,
        n_labels=len(parts.commonness),
        sizes=compiled.sizes,
        training_rows=compiled.training_rows,
    )
    first, *others = parts.heads
    heads = [LabelHead.of_search(search, first.bias, float(first.scale))]
    heads += [
        LabelHead(head.rows, head.row_of_label, head.bias, float(head.scale)) for head in others
    ]
    return BlendedScorer(
        encoder=StoredBagEncoder(parts.tokens, dimension),
        search=search,
        heads=tuple(heads),
        further_scale=float(parts.further_scale),
        further_text_scale=float(parts.further_text_scale),
        relations=_relations(compiled),
        linear=_label_vectors(parts.linear, parts.linear_bias),
        is_read=parts.is_read if len(parts.is_read) else None,
        commonness=parts.commonness,
        tail_weights=parts.tail_weights,
        network=_network(compiled),
    )


def _index(graph: CodedGraph, dimension: int, beam_size: int) -> VectorIndex:
    """Return an index; one without edges is an exact one."""
    vectors = vectors_of(graph, dimension)
    neighbours = neighbours_of(graph)
    if not neighbours.shape[1]:
        return ExactIndex(vectors, bias=graph.bias)
    arrays = {name: getattr(graph, name) for name in _GRAPH_PARTS}
    arrays |= {"vectors": vectors, "neighbours": neighbours}
    return GraphIndex.from_arrays(arrays, beam_size=beam_size)


def _relations(compiled: CompiledScorer) -> LabelRelations | None:
    """Return what label texts say, where there are any."""
    if not compiled.parts.has_relations:
        return None
    texts, links = compiled.parts.relations
    no_bias = np.zeros(len(texts.common.starts) - 1, np.float32)
    check_sparse(texts.rare, len(no_bias))
    check_sparse(links, len(no_bias))
    return LabelRelations(
        texts=_label_vectors(texts, no_bias),
        posting_starts=np.asarray(texts.rare.starts, np.int64),
        posting_labels=column_ids(texts.rare),
        posting_weights=float_weights(texts.rare),
        link_starts=np.asarray(links.starts, np.int64),
        link_labels=column_ids(links),
        link_weights=float_weights(links),
        taken=np.zeros(len(no_bias), np.float32),
        sizes=compiled.related,
    )


def _label_vectors(rows: SplitRows, bias: NDArray[np.float32]) -> SparseLabelVectors:
    """Return the weights of labels, each label's together."""
    whole = whole_rows(rows, len(bias))
    return SparseLabelVectors(whole.indptr.astype(np.int64), whole.indices, whole.data, bias)


def _network(compiled: CompiledScorer) -> ScoreNetwork:
    """Return the network with inputs first."""
    arrays: dict[str, Any] = compiled.parts.network._asdict()
    del arrays["log_ranks"]
    turned = {name: arrays[name].T for name in ("matrix1", "matrix2")}
    return ScoreNetwork(**arrays | turned)
