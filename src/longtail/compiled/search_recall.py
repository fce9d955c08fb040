"""How much of what an exact search would find the graph of labels finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.compiled.parts import dimension_of
from longtail.compiled.scratch import count_places, new_scratch
from longtail.index.exact import ExactIndex
from longtail.kernels.code_search import (
    nearest_members,
    similarity_at,
    walk_graph,
    walk_on,
    walk_wider,
)
from longtail.kernels.coded_graph import LAST_NODE, NODE_BITS
from longtail.kernels.rows import quantise
from longtail.row_store import float_rows, neighbours_of, some_nodes, vectors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.compiled.scorer import CompiledScorer
    from longtail.kernels.answer_parts import AnswerScratch
    from longtail.kernels.coded_graph import CodedGraph

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["MANY", "LabelRecall", "has_bias", "label_recall", "n_queries"]

MANY = 100  # labels of a long answer

# Training points, or labels, that are searched for: as many as make so many products with labels.
_LEAST_QUERIES, _MOST_QUERIES, _MOST_PRODUCTS = 200, 2_000, 100_000_000


class LabelRecall(NamedTuple):
    """Which share of the labels that are nearest to a point a walk finds, from 0 to 1.

    Attributes
    ----------
    of_candidates : float
        Of the nearest ``sizes.n_near_labels``, those that become candidates.
    of_hundred : float
        Of the nearest `MANY`, those that the walk meets. What it meets and leaves follows the
        candidates in a longer answer.
    """

    of_candidates: float
    of_hundred: float


def label_recall(scorer: CompiledScorer) -> LabelRecall:
    """Return the share of the nearest labels of some training points that the walk finds.

    Where labels have a bias, which is added to their similarity, these are the labels of the
    largest logits, by the vectors that are searched. A model that looks at no near points keeps
    none: there, some labels take their place.

    Examples
    --------
    Two labels are scanned, so none is missed.

    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.search_recall import label_recall
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> label_recall(LongtailClassifier().fit(texts, labels).predictor_.scorer)
    LabelRecall(of_candidates=1.0, of_hundred=1.0)
    """
    graph, sizes = scorer.parts.labels, scorer.sizes
    asked = _asked(scorer)
    drawn = np.random.default_rng(0).permutation(len(asked.codes))[: n_queries(scorer)]
    queries = vectors_of(some_nodes(asked, drawn), dimension_of(scorer.parts))
    n_near = sizes.n_near_points if asked is scorer.parts.points else 0
    edges = neighbours_of(asked)[drawn, :n_near]
    k, many = (min(n, len(graph.codes)) for n in (sizes.n_near_labels, MANY))
    exact = ExactIndex(float_rows(graph.rows), bias=graph.bias)
    nodes, similarities = exact.query(queries, max(k, many))
    scratch = new_scratch(scorer.parts, sizes, scorer.related, count_places(scorer.parts))
    n_found = n_met = 0
    for place, (near, query) in enumerate(zip(edges, queries, strict=True)):
        found = _walked(scorer, query, _starts(scorer, near), scratch)
        n_found += int((found >= similarities[place, k - 1] - 1e-5).sum())
        n_met += int(np.isin(nodes[place, :many], _met(scratch)).sum())
    n_queried = max(len(queries), 1)
    return LabelRecall(n_found / (k * n_queried), n_met / (many * n_queried))


def _met(scratch: AnswerScratch) -> NDArray[np.int64]:
    """Return the nodes that the last walk has compared with its query."""
    log = scratch.label_walk.log
    return log[1 : log[0] + 1] >> NODE_BITS & LAST_NODE


def _walked(scorer: CompiledScorer, query: Floats, starts: Ids, scratch: AnswerScratch) -> Floats:
    """Return the similarities of the labels that an answer would find, as `answer_bag` walks."""
    graph, walk, codes = scorer.parts.labels, scratch.label_walk, scratch.codes
    ids, similarities = scratch.found, scratch.found_similarities
    scale = np.float32(quantise(query, codes))  # Python makes a float of it
    walk_graph(codes, scale, graph, starts, 0, walk)
    size = walk_on(codes, scale, graph, starts, len(starts), walk)
    last = similarity_at(min(len(ids), size), codes, scale, graph, walk)
    if last < scorer.parts.unsure_below[0]:
        size = walk_wider(codes, scale, graph, size, walk, scratch.wide_walk)
        walk = scratch.wide_walk
    n = nearest_members(query, codes, scale, graph, size, walk, ids, similarities)
    return similarities[:n]


def has_bias(scorer: CompiledScorer) -> bool:
    """Return whether labels have a bias, by which the walk finds frequent ones sooner.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.search_recall import has_bias
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> has_bias(LongtailClassifier().fit(texts, labels).predictor_.scorer)
    True
    """
    return len(scorer.parts.labels.bias) > 0


def n_queries(scorer: CompiledScorer) -> int:
    """Return how many points, or labels, `label_recall` searches for.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.search_recall import n_queries
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> n_queries(LongtailClassifier().fit(texts, labels).predictor_.scorer)
    20
    """
    fitting = _MOST_PRODUCTS // max(len(scorer.parts.labels.codes), 1)
    return min(max(_LEAST_QUERIES, min(fitting, _MOST_QUERIES)), len(_asked(scorer).codes))


def _asked(scorer: CompiledScorer) -> CodedGraph:
    """Return the points, where the model keeps any; else the labels."""
    points = scorer.parts.points
    return points if len(points.codes) else scorer.parts.labels


def _starts(scorer: CompiledScorer, near: Ids) -> Ids:
    """Return where the walk for a training point begins: at the labels of points near it."""
    points, sizes = scorer.parts.points, scorer.sizes
    rows = points.members[points.member_starts[near[near >= 0]]]
    labels = [scorer.labels_of_point(int(row))[: sizes.n_voted] for row in rows]
    found = np.unique(np.concatenate([np.zeros(0, np.int32), *labels]))
    nodes = scorer.parts.heads[0].row_of_label[found]
    return np.array(nodes[nodes >= 0][: sizes.n_voted], np.int32)
