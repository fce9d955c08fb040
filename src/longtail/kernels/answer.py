"""One point at a time from its bag of tokens to its best labels: the whole of a prediction.

What `longtail.blend.encoded.EncodedScorer` does batch by batch is done here by one compiled call, a
row at a time, with scratch that stays in the processor's cache. Whatever a damaged file
says, nothing is read or written out of bounds: every id that comes from a table is compared with
the length of the table that it points into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.bag_vector import unit_bag_vector
from longtail.kernels.blend import SMALLEST_SIMILARITY
from longtail.kernels.byte_rows import split_query
from longtail.kernels.code_search import (
    first_homes,
    nearest_members,
    similarity_at,
    walk_graph,
    walk_on,
    walk_wider,
)
from longtail.kernels.exact import insert_sorted
from longtail.kernels.further_labels import LEAST_STEP, vote_by_text, write_further
from longtail.kernels.jit import inner_kernel, kernel, lean_kernel
from longtail.kernels.label_angles import label_angles
from longtail.kernels.label_links import add_links, match_texts, sharpen, strongest_links
from longtail.kernels.prefetch import prefetch_line
from longtail.kernels.rows import quantise
from longtail.kernels.sparse_lookup import add_rare_margins, clear_sums, common_margins, span_of
from longtail.kernels.wide_network import blend_candidates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.answer_parts import Answerer, AnswerScratch
    from longtail.kernels.label_links import Relations

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["LEAST_LEFT", "answer_bag", "answer_bags", "near_rows"]

_N_HOMES = 16
LEAST_LEFT = np.float32(0.1)  # of how far scores are apart, however little a text says


@kernel
def answer_bags(
    model: Any,
    scratch: Any,
    row_starts: Any,
    columns: Ids,
    values: Floats,
    start: int,
    stop: int,
    ids: Ids,
    scores: Floats,
) -> None:
    """Write the best labels of some bags and their scores.

    Parameters
    ----------
    model, scratch : Handle
        Of an `Answerer` and of an `AnswerScratch` of this thread alone.
    row_starts, columns, values : int32, int32, float32
        As in `longtail.data.bags.Bags`.
    start, stop : int
        The bags to answer.
    ids, scores : int32, float32 (n, k)
        Written: descending, ties by smaller id, padded with -1 and -inf.
    """
    own, room = model.parts, scratch.parts
    for row in range(start, stop):
        bag = slice(row_starts[row], row_starts[row + 1])
        answer_bag(own, room, columns[bag], values[bag], ids[row], scores[row])


@kernel
def near_rows(
    model: Any, scratch: Any, columns: Ids, values: Floats, ids: Ids, similarities: Floats
) -> int:
    """Find the training points nearest to one bag, and return how many; see `nearest_members`."""
    own, room = model.parts, scratch.parts
    if not len(ids) or not unit_bag_vector(columns, values, own.tokens, room.point):
        return 0
    scale = quantise(room.point, room.codes)
    size = walk_graph(room.codes, scale, own.labels, room.starts, 0, room.label_walk)
    return _near_points(own, room, scale, size, ids, similarities)


@inner_kernel
def answer_bag(
    model: Answerer,
    scratch: AnswerScratch,
    columns: Ids,
    values: Floats,
    ids: Ids,
    scores: Floats,
) -> None:
    """Answer one bag; see `answer_bags`."""
    ids[:] = -1
    scores[:] = -np.inf
    if not unit_bag_vector(columns, values, model.tokens, scratch.point):
        return  # nothing is known of it, so nothing is said
    scale = quantise(scratch.point, scratch.codes)
    n_matches = n_touched = n_products = 0
    if model.has_relations:
        n_matches, n_touched, n_products = _relate(model.relations, columns, values, scratch)
    n, n_voted, nearness = _gather(model, scratch, scale, n_matches, n_touched)
    candidates, met = scratch.candidates[:n], scratch.voted[:n_voted]
    if n:
        _score(model, scratch, columns, values, n)
        for c in range(n):
            scratch.commonness[c] = model.commonness[scratch.candidates[c]]
        blend_candidates(
            scratch.evidence,
            n,
            scratch.commonness,
            nearness,
            model.network,
            scratch.network,
            scratch.scores,
        )
        _keep_best(candidates, scratch.scores, model.tail_weights, ids, scores)
        _tell(model.tail_weights, model.network.for_order[0], n, ids, scores)
        if n < len(ids) and len(model.frequent):
            told = (columns, model.relations.texts.rare, n_products, scratch.text_sums)
            room = (scratch.named, scratch.named_sums, scratch.votes, scratch.voted)
            n_voted = vote_by_text(*told, model.further_text_scale, *room, n_voted)
            n_met = write_further(
                scratch.codes,
                scale,
                model.labels,
                scratch.label_walk,
                scratch.starts,
                model.label_of_row,
                model.heads[0],
                model.further_scale,
                model.node_bias,
                model.frequent,
                scratch.votes,
                scratch.voted,
                n_voted,
                n,
                ids,
                scores,
            )
            met = scratch.voted[:n_met]
        _believe_less(len(columns), model.network.brevity, ids, scores)
    for label in met:
        scratch.votes[label] = 0
    for label in candidates:
        scratch.votes[label] = 0
    for label in scratch.touched[:n_touched]:
        scratch.links[label] = 0
    if model.has_relations:
        clear_sums(columns, model.relations.texts.rare, n_products, scratch.text_sums)


@lean_kernel
def _tell(tail_weights: Floats, share: np.float32, n: int, ids: Ids, scores: Floats) -> None:
    """Take from scores what counted for the order alone; see `longtail.blend.rarity.told_scores`.

    There are `n` candidates; which scores are the first ones does not depend on how many are asked
    for.
    """
    if share == 0:
        return
    above = np.float32(np.inf)
    for j in range(min(n, len(ids))):
        own = scores[j] - share * tail_weights[ids[j]]
        if not np.isfinite(own):
            own = np.float32(0)  # of a damaged file
        if own >= above:
            own = above - LEAST_STEP * (np.float32(1) + abs(above))
        scores[j] = above = own


@lean_kernel
def _believe_less(n_tokens: int, brevity: Floats, ids: Ids, scores: Floats) -> None:
    """Lower the scores of a text of few tokens; see `longtail.blend.brevity.Brevity`."""
    usual, lost, shrunk, middle = brevity[0], brevity[1], brevity[2], brevity[3]
    missing = usual - np.log(np.float32(1 + n_tokens))
    if not missing > 0 or (lost == 0 and shrunk == 0):
        return
    factor = max(np.float32(1) - shrunk * missing, LEAST_LEFT)
    for j in range(len(ids)):
        if ids[j] >= 0:
            score = middle + (scores[j] - middle) * factor - lost * missing
            scores[j] = score if np.isfinite(score) else np.float32(0)


@lean_kernel
def _relate(
    relations: Relations, columns: Ids, values: Floats, scratch: AnswerScratch
) -> tuple[int, int, int]:
    """Find the labels that the text names, and note in `scratch.links` what they are linked to."""
    n_matches, n_products = match_texts(
        columns,
        values,
        relations.texts,
        scratch.text_sums,
        scratch.dense,
        scratch.likely,
        scratch.likely_sums,
        scratch.matches,
        scratch.match_strengths,
    )
    matches, strengths = scratch.matches[:n_matches], scratch.match_strengths[:n_matches]
    sharpen(strengths)
    n_touched = add_links(matches, strengths, relations.links, scratch.links, scratch.touched)
    return n_matches, n_touched, n_products


@lean_kernel
def _gather(
    model: Answerer, scratch: AnswerScratch, scale: np.float32, n_matches: int, n_touched: int
) -> tuple[int, int, np.float32]:
    """Note the candidates, each once, and their votes; return how many and the nearest point's.

    As `longtail.kernels.blend.gather_candidates` has it: labels that were found, popular ones,
    matches and what they are linked to, then the labels of near points that have the most votes.
    The walk of the labels starts from the matches, that of the points from the homes of what it
    has found; then it goes on from the labels of near points.
    """
    point, codes, graph, walk = scratch.point, scratch.codes, model.labels, scratch.label_walk
    touched, matches = scratch.touched[:n_touched], scratch.matches[:n_matches]
    n_linked = strongest_links(touched, scratch.links, scratch.linked, scratch.linked_votes)
    linked, row_of_label = scratch.linked[:n_linked], model.heads[0].row_of_label
    n_starts = _add_nodes(matches, row_of_label, scratch.starts, 0)
    n_starts = _add_nodes(linked, row_of_label, scratch.starts, n_starts)
    size = walk_graph(codes, scale, graph, scratch.starts, n_starts, walk)
    n_near = 0
    if len(scratch.near):
        near, similarities = scratch.near, scratch.near_similarities
        n_near = _near_points(model, scratch, scale, size, near, similarities)
    votes, voted = scratch.votes, scratch.voted
    n_voted = _vote(
        scratch.near[:n_near],
        scratch.near_similarities,
        model.point_starts,
        model.point_labels,
        votes,
        voted,
    )
    voted = voted[:n_voted]
    best = voted
    if n_voted > len(scratch.best_voted):
        strongest_links(voted, votes, scratch.best_voted, scratch.best_votes)
        best = scratch.best_voted
    n_starts = _add_nodes(best, row_of_label, scratch.starts, 0)
    size = walk_on(codes, scale, graph, scratch.starts, n_starts, walk)
    n_found = min(size, len(scratch.found))
    if n_found and similarity_at(n_found, codes, scale, graph, walk) < model.unsure_below[0]:
        size = walk_wider(codes, scale, graph, size, walk, scratch.wide_walk)
        walk = scratch.wide_walk
    n_found = nearest_members(
        point, codes, scale, graph, size, walk, scratch.found, scratch.found_similarities
    )
    rows, own = scratch.found[:n_found], (votes, scratch.candidates, scratch.candidate_votes)
    for t in range(n_found):
        row = rows[t]
        rows[t] = model.label_of_row[row] if 0 <= row < len(model.label_of_row) else -1
    n = _join(rows, *own, 0)
    n = _join(model.popular, *own, n)
    n = _join(matches, *own, n)
    n = _join(linked, *own, n)
    n = _join(best, *own, n)
    return n, n_voted, scratch.near_similarities[0] if n_near else np.float32(0)


@lean_kernel
def _near_points(
    model: Answerer,
    scratch: AnswerScratch,
    scale: np.float32,
    size: int,
    near: Ids,
    similarities: Floats,
) -> int:
    """Find near points from the `size` nodes of the walk of the labels; return how many."""
    point, codes, walk = scratch.point, scratch.codes, scratch.point_walk
    n_most = min(size, _N_HOMES)
    n_starts = first_homes(scratch.label_walk, n_most, model.homes, scratch.starts)
    size = walk_graph(codes, scale, model.points, scratch.starts, n_starts, walk)
    return nearest_members(point, codes, scale, model.points, size, walk, near, similarities)


@lean_kernel
def _add_nodes(labels: Ids, row_of_label: Ids, nodes: Ids, n: int) -> int:
    """Append the nodes of labels that have any, and return how many there are."""
    for label in labels:
        if 0 <= label < len(row_of_label) and row_of_label[label] >= 0 and n < len(nodes):
            nodes[n] = row_of_label[label]
            n += 1
    return n


@lean_kernel
def _vote(
    near: Ids, similarities: Floats, starts: Ids, labels: Ids, votes: Floats, voted: Ids
) -> int:
    """Let near points vote for their labels; note which, and return how many."""
    n_voted = 0
    for point in near:
        prefetch_line(starts, point)
    for point in near:
        if 0 <= point < len(starts) - 1:
            prefetch_line(labels, starts[point])
    for j in range(len(near)):
        if not 0 <= near[j] < len(starts) - 1:
            continue
        # Never quite 0, which would mark a label that has no vote.
        weight = max(similarities[j], SMALLEST_SIMILARITY) ** 2
        first, after = span_of(starts, near[j], len(labels))
        for place in range(first, after):
            label = labels[place]
            if not 0 <= label < len(votes):
                continue
            if votes[label] == 0 and n_voted < len(voted):
                voted[n_voted] = label
                n_voted += 1
            votes[label] += weight
    return n_voted


@lean_kernel
def _join(labels: Ids, votes: Floats, candidates: Ids, candidate_votes: Floats, n: int) -> int:
    """Append labels that are not there yet; a negative vote marks those that are."""
    for label in labels:
        if not 0 <= label < len(votes) or votes[label] < 0 or n == len(candidates):
            continue
        candidates[n] = label
        candidate_votes[n] = votes[label]
        votes[label] = -1
        n += 1
    return n


@lean_kernel
def _score(model: Answerer, scratch: AnswerScratch, columns: Ids, values: Floats, n: int) -> None:
    """Write what each source says of each candidate."""
    candidates, evidence = scratch.candidates[:n], scratch.evidence
    n_heads = model.n_heads
    split_query(scratch.point, scratch.split)
    for h in range(len(model.heads)):  # a number that the compiler knows
        if h == n_heads:
            break
        head = model.heads[h]
        label_angles(
            scratch.point,
            scratch.split,
            scratch.places,
            head.rows,
            head.row_of_label,
            head.bias,
            head.scale,
            candidates,
            evidence[h],
        )
    _weigh_features(model, scratch, columns, values, candidates, evidence[n_heads])
    for c in range(n):
        evidence[n_heads + 1, c] = scratch.candidate_votes[c]
    if model.has_relations:
        texts, sums = model.relations.texts, scratch.text_sums
        own = evidence[n_heads + 2]
        common_margins(columns, values, texts, candidates, scratch.dense, own)
        for c in range(n):
            own[c] += sums[candidates[c]]
            evidence[n_heads + 3, c] = scratch.links[candidates[c]]
    for source in evidence:
        for c in range(n):  # a sort of what is no number, in a damaged file, would leave its bounds
            if not np.isfinite(source[c]):
                source[c] = 0


@lean_kernel
def _weigh_features(
    model: Answerer,
    scratch: AnswerScratch,
    columns: Ids,
    values: Floats,
    candidates: Ids,
    margins: Floats,
) -> None:
    """Write what the linear classifiers say of each candidate."""
    n_read = _take_read(columns, values, model.is_read, scratch.read_columns, scratch.read_values)
    read, weights = scratch.read_columns[:n_read], scratch.read_values[:n_read]
    common_margins(read, weights, model.linear, candidates, scratch.dense, margins)
    add_rare_margins(read, weights, model.linear.rare, candidates, scratch.slots, margins)
    for c in range(len(candidates)):
        margins[c] += model.linear_bias[candidates[c]]


@lean_kernel
def _take_read(
    columns: Ids,
    values: Floats,
    is_read: NDArray[np.bool_],
    read_columns: Ids,
    read_values: Floats,
) -> int:
    """Copy the entries that are read, scaled to unit length; no `is_read` means that all are."""
    n, square = 0, np.float32(0)
    for j in range(len(columns)):
        if len(is_read) == 0 or is_read[columns[j]]:
            read_columns[n] = columns[j]
            read_values[n] = values[j]
            square += values[j] * values[j]
            n += 1
    if len(is_read) and square > 0:
        length = np.float32(np.sqrt(square))
        for j in range(n):
            read_values[j] /= length
    return n


@lean_kernel
def _keep_best(
    candidates: Ids, blended: Floats, tail_weights: Floats, ids: Ids, scores: Floats
) -> None:
    """Write the best candidates, descending, ties by smaller id."""
    n_kept = 0
    for c in range(len(candidates)):
        label = candidates[c]
        score = blended[c] + tail_weights[label] + np.float32(0)  # -0.0 ties with 0.0
        if not np.isfinite(score):
            score = np.float32(0)  # of a damaged file
        if n_kept < len(ids) or score >= scores[n_kept - 1]:
            insert_sorted(ids, scores, n_kept, label, score)
            n_kept = min(n_kept + 1, len(ids))
