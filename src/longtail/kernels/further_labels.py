"""Labels that follow the candidates of a point, for those who ask for more than there are.

They are what the search has met on its way: labels of near points, and labels that the walk has
compared with the point and left. To these come the labels whose texts are most like the point's,
and the most frequent ones, which are likely far from a point, too. They are ranked by similarity,
frequency and votes, of which what texts say is one, and put below all candidates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.code_search import cosine_of, excess_of, log_nodes, node_of, similarity_by
from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import inner_kernel, kernel, lean_kernel
from longtail.kernels.label_links import best_sums
from longtail.kernels.packed_codes import packed_products

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.coded_graph import CodedGraph, Walk
    from longtail.kernels.sparse_lookup import SparseRows

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["LEAST_STEP", "largest_biases", "vote_by_text", "write_further"]

N_COMPARED = 128  # of the most frequent labels
_LEAST_VOTE = np.float32(1e-12)  # never quite 0, which marks a label that has no vote
_SLACK = np.float32(1e-3)  # sums in another order are rounded otherwise
_LEAST_SHARE = np.float32(0.1)  # of the largest sum: a text that shares next to nothing is none
LEAST_STEP = np.float32(1e-6)  # between two scores, of their size: a float32 tells them apart


@inner_kernel
def write_further(
    query: NDArray[np.int8],
    scale: np.float32,
    graph: CodedGraph,
    walk: Walk,
    starts: Ids,
    label_of_row: Ids,
    head: Any,
    head_scale: np.float32,
    node_bias: Floats,
    frequent: Ids,
    votes: Floats,
    met: Ids,
    n_met: int,
    n: int,
    ids: Ids,
    scores: Floats,
) -> int:
    """Append further labels to the answer of a point, below its candidates.

    Which labels these are, and their scores, does not depend on how many are asked for.

    Parameters
    ----------
    query, scale, graph, walk
        See `_add_met`; frequent labels that the walk has not met are compared first.
    starts : int32 (at least 1,)
        Scratch.
    label_of_row, head, head_scale, node_bias
        See `_add_met`.
    frequent : int32 (n_frequent,)
        The most frequent labels, the first ones first; see `_add_frequent`.
    votes, met, n_met
        See `_add_met`.
    n : int
        Candidates in the answer, at least 1.
    ids, scores : int32, float32 (k,)
        Written from `n` on.

    Returns
    -------
    int
        How many labels are in `met` now, of which the votes are to be forgotten.
    """
    n_further = _add_voted(
        query,
        scale,
        graph,
        walk,
        starts,
        head,
        head_scale,
        votes,
        met[:n_met],
        ids[n:],
        scores[n:],
    )
    _compare(frequent[:N_COMPARED], head.row_of_label, query, scale, graph, starts, walk)
    n_further, n_met = _add_met(
        query,
        scale,
        graph,
        walk,
        label_of_row,
        head,
        head_scale,
        node_bias,
        votes,
        met,
        n_met,
        ids[n:],
        scores[n:],
        n_further,
    )
    n_further = _add_frequent(frequent, votes, ids[n:], scores[n:], n_further)
    _put_below(scores, n, n_further)
    return n_met


@lean_kernel
def vote_by_text(
    columns: Ids,
    rare: SparseRows,
    n_added: int,
    sums: Floats,
    scale: np.float32,
    named: Ids,
    named_sums: Floats,
    votes: Floats,
    voted: Ids,
    n_voted: int,
) -> int:
    """Let the texts that are most like a point's vote for their labels; see `_vote` of answers.

    A label that no point has is hardly ever found but by its text, and where many are it is seldom
    among the few that become candidates for that.

    Parameters
    ----------
    columns, rare, n_added, sums
        See `best_sums`; there are no sums where labels have no texts.
    scale : float
        What a sum is multiplied with: see `longtail.blend.further_scale`. 0 for no votes.
    named, named_sums : int32, float32 (n_named,)
        Scratch: so many labels are voted for.
    votes : float32 (n_labels,)
        Added to, but for candidates, which are below 0.
    voted : int32 (n_labels,)
        Labels that have votes, to which those are appended that had none.
    n_voted : int

    Returns
    -------
    int
        How many labels have votes now.
    """
    if not scale > 0 or not len(sums):
        return n_voted
    n_named = best_sums(columns, rare, n_added, sums, _LEAST_SHARE, named, named_sums)
    for place in range(n_named):
        label = named[place]
        if votes[label] == 0:
            voted[n_voted] = label  # each label once, so there is room for it
            n_voted += 1
        if votes[label] >= 0:
            votes[label] += max(scale * named_sums[place], _LEAST_VOTE)
    return n_voted


@lean_kernel
def _add_voted(
    query: NDArray[np.int8],
    scale: np.float32,
    graph: CodedGraph,
    walk: Walk,
    starts: Ids,
    head: Any,
    head_scale: np.float32,
    votes: Floats,
    voted: Ids,
    ids: Ids,
    scores: Floats,
) -> int:
    """Write the labels that have votes and are no candidates, best first; return how many.

    See `_add_met`. They come first, so that there no node needs to be looked at for a vote's sake.
    """
    n, step, too_much = 0, graph.step[0], excess_of(query)
    for first in range(0, len(voted), len(starts)):
        some = voted[first : first + len(starts)]
        for i in range(len(some)):
            starts[i] = _node_at(some[i], head.row_of_label, graph)
        if len(graph.codes):
            packed_products(query, graph.codes, starts, len(some), walk.products)
        for i in range(len(some)):
            label = some[i]
            if votes[label] < 0:
                continue
            is_there = head.row_of_label[label] == starts[i] and len(graph.codes) > 0
            own = similarity_by(walk.products[i], too_much, scale, step)
            logit = head_scale * own if is_there else np.float32(0)
            n = _offer(label, logit + head.bias[label] + votes[label], ids, scores, n)
            votes[label] = -1
    return n


@lean_kernel
def _node_at(label: Any, row_of_label: Ids, graph: CodedGraph) -> Any:
    """Return the node of a label, and the first one for a label without."""
    row = row_of_label[label]
    return row if 0 <= row < len(graph.codes) else np.int32(0)


@lean_kernel
def _compare(
    labels: Ids,
    row_of_label: Ids,
    query: NDArray[np.int8],
    scale: np.float32,
    graph: CodedGraph,
    starts: Ids,
    walk: Walk,
) -> None:
    """Note in the log how similar some labels are that the walk has not met."""
    n = 0
    for place in range(len(labels)):
        row = row_of_label[labels[place]]
        if row >= 0:
            starts[n] = row
            n += 1
        if n and (n == len(starts) or place == len(labels) - 1):
            log_nodes(query, scale, graph, starts, n, walk)
            n = 0


@lean_kernel
def _add_met(
    query: NDArray[np.int8],
    scale: np.float32,
    graph: CodedGraph,
    walk: Walk,
    label_of_row: Ids,
    head: Any,
    head_scale: np.float32,
    node_bias: Floats,
    votes: Floats,
    met: Ids,
    n_met: int,
    ids: Ids,
    scores: Floats,
    n: int,
) -> tuple[int, int]:
    """Write the labels that a search has met and that were not offered yet, best first.

    The score of a label is what the head says of it, its similarity taken from the codes, plus its
    votes; a label without a node is taken to be at a right angle to the point. Most nodes are too
    far for any label to be among the best, and which labels they have is not looked up.

    Parameters
    ----------
    query, scale : int8, float
        The codes of the point, and what they are multiplied with; see `nearest_members`.
    graph, walk : CodedGraph, Walk
        Of the labels; every node in the walk's log has been met.
    label_of_row : int32 (n_rows,)
    head : Head
        Over the vectors of the graph.
    head_scale : float
        In place of the head's own: see `longtail.blend.further_scale`.
    node_bias : float32 (n_nodes,)
        See `largest_biases`.
    votes : float32 (n_labels,)
        0 for labels that were not met, and below for candidates and labels that were offered. On
        return, below 0 also for those that are offered here.
    met : int32 (n_labels,)
        Begins with the labels that have votes; those of the walk are appended.
    n_met : int
        How many have votes.
    ids, scores : int32, float32 (size,)
        Written as far as there are labels: descending, ties by smaller id.
    n : int
        How many are there.

    Returns
    -------
    n_written, n_met : int
    """
    log, first_members, members = walk.log, graph.member_starts, graph.members
    too_much = excess_of(query)
    for key in log[1 : log[0] + 1]:
        node = node_of(key)
        logit = head_scale * cosine_of(key, too_much, scale, graph)
        if n == len(ids) and logit + node_bias[node] + _SLACK < scores[n - 1]:
            continue
        for place in range(max(first_members[node], 0), min(first_members[node + 1], len(members))):
            label = _label_at(members[place], label_of_row, len(votes))
            if label < 0 or votes[label] < 0:
                continue
            met[n_met] = label  # each label once, so there is room for it
            n_met += 1
            n = _offer(label, logit + head.bias[label], ids, scores, n)
            votes[label] = -1
    return n, n_met


@lean_kernel
def _label_at(row: int, label_of_row: Ids, n_labels: int) -> Any:
    """Return the label of a row, -1 where there is none."""
    label = label_of_row[row] if 0 <= row < len(label_of_row) else np.int32(-1)
    return label if 0 <= label < n_labels else np.int32(-1)


@kernel
def largest_biases(graph: CodedGraph, label_of_row: Ids, bias: Floats, node_bias: Floats) -> None:
    """Write the largest bias of a label of each node, of which most have one.

    Parameters
    ----------
    graph : CodedGraph
        Of the labels.
    label_of_row : int32 (n_rows,)
    bias : float32 (n_labels,)
    node_bias : float32 (n_nodes,)
        Written.
    """
    starts, members = graph.member_starts, graph.members
    for node in range(len(node_bias)):
        node_bias[node] = -np.inf
        for place in range(max(starts[node], 0), min(starts[node + 1], len(members))):
            label = _label_at(members[place], label_of_row, len(bias))
            if label >= 0:
                node_bias[node] = max(node_bias[node], bias[label])


@lean_kernel
def _offer(label: Any, score: np.float32, ids: Ids, scores: Floats, n: int) -> int:
    """Put a label into a sorted list where it belongs, and return how long that is now."""
    own = score if np.isfinite(score) else np.float32(0)  # of a damaged file
    if n < len(ids) or own >= scores[n - 1]:
        insert_sorted(ids, scores, n, label, own)
        n = min(n + 1, len(ids))
    return n


@lean_kernel
def _add_frequent(frequent: Ids, votes: Floats, ids: Ids, scores: Floats, n: int) -> int:
    """Append the most frequent of the labels that nobody has met; return how many there are now.

    Parameters
    ----------
    frequent : int32 (n_frequent,)
        Labels, each once.
    votes : float32 (n_labels,)
        0 for a label that was not met.
    ids, scores : int32, float32 (size,)
        All get the score of the last one before them.
    n : int
        How many there are.
    """
    least = scores[n - 1] if n else np.float32(0)
    for label in frequent:
        if n == len(ids):
            break
        if votes[label] == 0:
            ids[n] = label
            scores[n] = least
            n += 1
    return n


@lean_kernel
def _put_below(scores: Floats, n: int, n_further: int) -> None:
    """Move the scores of further labels below those of candidates, each below the one before.

    Two further labels stay as far apart as they are; only equal ones are parted. So the first
    labels of a longer answer are those of a shorter one, with the same scores.

    Parameters
    ----------
    scores : float32 (size,)
        First those of candidates, then those of further labels; both descending.
    n, n_further : int
        How many there are of each; at least one candidate.
    """
    before = scores[n] if n_further else np.float32(0)
    for place in range(n, n + n_further):
        above, own = scores[place - 1], scores[place]
        scores[place] = above - max(before - own, LEAST_STEP * (np.float32(1) + abs(above)))
        before = own
