"""A compiled model as the parts that it was laid out from, so that it can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.classifiers.blended import BlendedScorer, LabelHead
from longtail.classifiers.candidates import CandidateSearch
from longtail.classifiers.compiled_parts import (
    dimension_of,
    float_rows,
    float_weights,
    token_vectors_of,
    vectors_of,
)
from longtail.classifiers.relations import LabelRelations
from longtail.classifiers.score_network import ScoreNetwork
from longtail.classifiers.sparse_label_vectors import SparseLabelVectors
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.index.exact import ExactIndex
from longtail.index.graph import GraphIndex

if TYPE_CHECKING:
    from longtail.classifiers.compiled import CompiledScorer
    from longtail.index.protocol import VectorIndex
    from longtail.kernels.code_search import CodedGraph

__all__ = ["expanded"]


def expanded(compiled: CompiledScorer) -> BlendedScorer:
    """Return a model of float32 parts that, compiled to the same type, is the same model.

    To the last bit for float32. Numbers of 16 and of 8 bits come back as they are stored; the codes
    that the search follows are made of them anew, and may differ in the last place.
    """
    parts = compiled.parts
    dimension = dimension_of(parts)
    search = CandidateSearch(
        label_index=_index(parts.labels, dimension, compiled.sizes.beam),
        label_of_row=parts.label_of_row,
        point_index=_index(parts.points, dimension, compiled.sizes.beam),
        label_starts=parts.point_starts,
        label_ids=parts.point_labels,
        popular=parts.popular,
        n_labels=len(parts.commonness),
        sizes=compiled.sizes,
    )
    first, *others = parts.heads
    heads = [LabelHead.of_search(search, first.bias, float(first.scale))]
    heads += [
        LabelHead(float_rows(head.rows), head.row_of_label, head.bias, float(head.scale))
        for head in others
    ]
    linear = parts.linear
    return BlendedScorer(
        encoder=UnitBagEncoder(token_vectors_of(parts)),
        search=search,
        heads=tuple(heads),
        relations=_relations(compiled),
        linear=SparseLabelVectors(
            linear.starts, linear.columns, float_weights(linear), parts.linear_bias
        ),
        is_word=parts.is_word if len(parts.is_word) else None,
        commonness=parts.commonness,
        tail_weights=parts.tail_weights,
        network=_network(compiled),
    )


def _index(graph: CodedGraph, dimension: int, beam: int) -> VectorIndex:
    """Return an index; one without edges is an exact one."""
    vectors = vectors_of(graph, dimension)
    if not graph.neighbours.shape[1]:
        return ExactIndex(vectors)
    arrays = {"vectors": vectors, **{name: getattr(graph, name) for name in _GRAPH_PARTS}}
    return GraphIndex.from_arrays(arrays, beam=beam)


def _relations(compiled: CompiledScorer) -> LabelRelations | None:
    """Return what label texts say, where there are any."""
    texts, postings, links = compiled.parts.relations
    if not compiled.parts.has_relations:
        return None
    no_bias = np.zeros(len(texts.starts) - 1, np.float32)
    return LabelRelations(
        texts=SparseLabelVectors(texts.starts, texts.columns, float_weights(texts), no_bias),
        posting_starts=postings.starts,
        posting_labels=postings.columns,
        posting_weights=float_weights(postings),
        link_starts=links.starts,
        link_labels=links.columns,
        link_weights=float_weights(links),
        n_matches=compiled.n_matches,
        n_linked=compiled.n_linked,
    )


def _network(compiled: CompiledScorer) -> ScoreNetwork:
    """Return the network with inputs first."""
    own: Any = compiled.parts.network
    return ScoreNetwork(
        centre=own.centre,
        scale=own.scale,
        matrix1=np.ascontiguousarray(own.matrix1.T),
        bias1=own.bias1,
        matrix2=np.ascontiguousarray(own.matrix2.T),
        bias2=own.bias2,
        last=own.last,
    )


_GRAPH_PARTS = ("neighbours", "entries", "member_starts", "members")
