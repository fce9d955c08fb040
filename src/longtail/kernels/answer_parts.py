"""What a prediction looks at, and the scratch that it needs: the tuples that kernels are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.kernels.byte_rows import SplitQuery
    from longtail.kernels.coded_graph import CodedGraph, Walk
    from longtail.kernels.label_links import Relations
    from longtail.kernels.rows import Rows
    from longtail.kernels.sparse_lookup import SplitRows
    from longtail.kernels.wide_network import Network, NetworkScratch

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["AnswerScratch", "Answerer", "Head"]


class Head(NamedTuple):
    """One vector a label, scored by angle: see `longtail.blend.label_head.LabelHead`.

    Attributes
    ----------
    rows : Rows
    row_of_label : int32 (n_labels,)
        -1 for a label without a vector.
    bias : float32 (n_labels,)
    scale : float32
    """

    rows: Rows
    row_of_label: Ids
    bias: Floats
    scale: np.float32


class Answerer(NamedTuple):
    """Everything that a prediction looks at; see `longtail.blend.blend.Blend`.

    Attributes
    ----------
    tokens : Rows
        The vectors whose sum is a point's: (n_features, dimension), or four bits a number; see
        `longtail.kernels.bag_vector`.
    labels : CodedGraph
        Of label vectors, which are those of the first head.
    label_of_row : int32 (n_rows,)
        The label of each row that is a member of a node there.
    homes : int32 (n_nodes,)
        Of each node of `labels`, the node of `points` where a walk of these starts from it, or -1;
        (0,) where these are scanned.
    unsure_below : float32 (1,)
        Where the last label found is less similar, the walk of the labels goes on.
    points : CodedGraph
        Of training points.
    point_starts, point_labels : int32 (n_points + 1,), (n_pairs,)
        The labels of point i are ``point_labels[point_starts[i]:point_starts[i + 1]]``.
    popular : int32 (n_popular,)
        Candidates of every point.
    frequent : int32 (n_frequent,)
        Labels that may follow those that a search has met, the most frequent first; without any,
        candidates alone are answered.
    node_bias : float32 (n_nodes,)
        Of the nodes of `labels`: see `largest_biases`; (0,) without `frequent` ones.
    heads : tuple of Head
        Where it is longer than `n_heads`, the rest only makes it as long as that of other models,
        which the same compiled code answers for.
    n_heads : int
    further_scale : float32
        The scale of the first head for labels that follow.
    further_text_scale : float32
        And that of what their texts have in common with the point's.
    linear : SplitRows
        The weights of linear classifiers.
    linear_bias : float32 (n_labels,)
    is_read : bool (n_features,)
        Which features these read; (0,) for all.
    relations : Relations
        Texts of labels, and links between labels.
    has_relations : bool
        Whether there are any.
    commonness : float32 (n_labels,)
        ``log(1 + number of training points)``, which the network is told.
    tail_weights : float32 (n_labels,)
        Added to the network's scores.
    network : Network
        Makes one score of all evidence.
    """

    tokens: Rows
    labels: CodedGraph
    label_of_row: Ids
    homes: Ids
    unsure_below: Floats
    points: CodedGraph
    point_starts: Ids
    point_labels: Ids
    popular: Ids
    frequent: Ids
    node_bias: Floats
    heads: tuple[Head, ...]
    n_heads: int
    further_scale: np.float32
    further_text_scale: np.float32
    linear: SplitRows
    linear_bias: Floats
    is_read: NDArray[np.bool_]
    relations: Relations
    has_relations: bool
    commonness: Floats
    tail_weights: Floats
    network: Network


class AnswerScratch(NamedTuple):
    """Scratch of one thread: of the point's vector, walks, texts, votes, evidence.

    `longtail.compiled.scratch.new_scratch` makes it. ``width`` is the most candidates that a point
    may have, rounded up to what one instruction weighs; ``n_near`` points vote; other sizes are
    those of `SearchSizes` and `RelationSizes`. Between rows, `votes`, `links`, `slots`, `text_sums`
    and `dense` are zeros.

    Attributes
    ----------
    point : float32 (dimension,)
        The point's unit vector.
    codes : int8 (twice the width of the graphs' codes,)
        That vector in eight bits a number, which graphs are walked by.
    split : SplitQuery
        And in sixteen, which heads of int8 are multiplied with.
    places : int32 (width,)
        Of `label_angles`.
    label_walk, wide_walk : Walk
        Walks of the labels; the second one shares all of the first but its longer beam.
    starts : int32 (width,)
        Nodes that the coming walk starts from.
    point_walk : Walk
    found, found_similarities : int32, float32 (n_found,)
        Rows of the nearest labels, in whose place these labels are put then.
    near, near_similarities : int32, float32 (n_near,)
        The nearest training points.
    likely, likely_sums : int32, float32 (n_likely,)
        Labels of which rare features say the most.
    matches, match_strengths : int32, float32 (n_matches,)
        Of these, labels whose texts are most like the point's.
    named, named_sums : int32, float32 (N_NAMED,)
        Labels that may follow the candidates because of their texts.
    linked, linked_votes : int32, float32 (n_linked,)
        Labels to which matches have the strongest links.
    touched : int32 (at most MOST_TOUCHED,)
        Labels to which matches have links, where `links` is to be zero again.
    voted : int32 (n_labels,)
        Labels that have votes, and then all that an answer has met: where `votes` is to be zero
        again.
    best_voted, best_votes : int32, float32 (n_voted,)
        Those with the most votes.
    votes : float32 (n_labels,)
        Of near points; -1 once a label is a candidate.
    links : float32 (n_labels,)
        Sums of the links of matches to a label.
    slots : uint16 (n_labels + N_MORE_SLOTS,)
        Which candidate a label is, from 1; see `add_rare_margins`.
    text_sums : float32 (n_labels,), or (0,) without relations
        What the point and a label's text have of rare features in common.
    dense : float32 (n_places,)
        The point's weights of common features, and one place for all others; see `common_margins`.
    read_columns, read_values : int32, float32 (n_features,)
        The part of the bag that linear classifiers read.
    candidates : int32 (at most width,)
    candidate_votes : float32 (width,)
        The votes that each had when it became one.
    evidence : float32 (n_sources, width)
        A row each of heads, linear classifiers, votes and, with relations, texts and links.
    commonness : float32 (width,)
        Of the candidates.
    network : NetworkScratch
    scores : float32 (width,)
        What the network makes of the evidence.
    """

    point: Floats
    codes: NDArray[np.int8]
    split: SplitQuery
    places: Ids
    label_walk: Walk
    wide_walk: Walk
    starts: Ids
    point_walk: Walk
    found: Ids
    found_similarities: Floats
    near: Ids
    near_similarities: Floats
    likely: Ids
    likely_sums: Floats
    matches: Ids
    match_strengths: Floats
    named: Ids
    named_sums: Floats
    linked: Ids
    linked_votes: Floats
    touched: Ids
    voted: Ids
    best_voted: Ids
    best_votes: Floats
    votes: Floats
    links: Floats
    slots: NDArray[np.uint16]
    text_sums: Floats
    dense: Floats
    read_columns: Ids
    read_values: Floats
    candidates: Ids
    candidate_votes: Floats
    evidence: Floats
    commonness: Floats
    network: NetworkScratch
    scores: Floats
