"""Candidates of several searches, what each source says of them, and the network that weighs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import fast_kernel, kernel
from longtail.kernels.random_bits import first_random

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Floats = NDArray[np.float32]

__all__ = [
    "CONTEXT_VIEWS_OF_POINT",
    "LARGEST_VIEW",
    "N_CONTEXT_VIEWS",
    "N_VIEWS",
    "VIEWS_OF_POINT",
    "blend_rows",
    "fill_up",
    "gather_candidates",
    "network_scores",
    "view_evidence",
    "view_rows",
]

N_VIEWS = 5  # of each source; see `view_evidence`
N_CONTEXT_VIEWS = 3  # of the candidate and the point themselves
# Which of both are the same for all candidates of a point.
VIEWS_OF_POINT = (2, 4)
CONTEXT_VIEWS_OF_POINT = (2,)
LARGEST_VIEW = np.float32(5)  # standard deviations
FAR_BEHIND = np.float32(-30)  # exp of less than this adds nothing to a float32 sum
SMALLEST_SIMILARITY = np.float32(1e-6)


@kernel
def gather_candidates(
    found: Ids,
    near_points: Ids,
    similarities: Floats,
    label_starts: Ids,
    label_ids: Ids,
    n_voted: int,
    start: int,
    stop: int,
    scratch: Floats,
    labels: Ids,
    votes: Floats,
) -> None:
    """Join the labels that searches found with those of near points, each label once.

    For points `start` to `stop`. The vote of a near point for each of its labels is its squared
    similarity. First come the labels of `found`, in their order, then labels of near points, as far
    as they are not there yet; what is too many for a row is left out.

    Parameters
    ----------
    found : int32 (n, n_found)
        May hold -1 anywhere and labels twice.
    near_points : int32 (n, n_near)
        Rows of the training data; -1 for none.
    similarities : float32 (n, n_near)
        Of the near points; what is not above 0 counts as next to nothing.
    label_starts, label_ids : int32 (n_points + 1,) and (n_pairs,)
        The labels of point p are ``label_ids[label_starts[p]:label_starts[p + 1]]``.
    n_voted : int
        Only so many labels of near points count, those with the most votes.
    start, stop : int
    scratch : float32 (n_labels,)
        Zeros, and so again on return; of one thread alone.
    labels : int32 (n, size)
        Written; padded with -1 at the end.
    votes : float32 (n, size)
        Written: the votes for each of `labels`, also for those that were found; padded with 0.
    """
    for i in range(start, stop):
        voted = _vote(near_points[i], similarities[i], label_starts, label_ids, scratch)
        best = voted
        if len(voted) > n_voted:
            best = voted[np.argsort(-scratch[voted])[:n_voted]]
        n_joined = _join(found[i], scratch, labels[i], votes[i], 0)
        n_joined = _join(best, scratch, labels[i], votes[i], n_joined)
        labels[i, n_joined:] = -1
        votes[i, n_joined:] = 0
        for label in voted:
            scratch[label] = 0
        for label in labels[i, :n_joined]:
            scratch[label] = 0


@kernel
def fill_up(labels: Ids, least: int, n_labels: int, seed: int, first: int) -> None:
    """Add labels to rows that have few, as far as there are any: from a random one on, in a row.

    Parameters
    ----------
    labels : int32 (n, size)
        Distinct in each row, padded with -1 at the end; changed.
    least : int
        Labels of a row, at most `size`.
    n_labels, seed : int
    first : int
        The number of the first row, by which others are drawn for it than for the next.
    """
    wanted = min(least, n_labels)
    for i in range(len(labels)):
        row = labels[i]
        n = 0
        while n < wanted and row[n] >= 0:
            n += 1
        label = np.int64(first_random(seed, first + i) % np.uint64(n_labels))
        while n < wanted:
            if not (row[:n] == label).any():
                row[n] = label
                n += 1
            label = (label + 1) % n_labels


@kernel
def _vote(
    near_points: Ids, similarities: Floats, label_starts: Ids, label_ids: Ids, scratch: Floats
) -> Ids:
    """Add one point's votes to `scratch` and return the labels that have any."""
    n_votes = 0
    for point in near_points:
        if point >= 0:
            n_votes += label_starts[point + 1] - label_starts[point]
    voted = np.empty(n_votes, np.int32)
    n_voted = 0
    for j in range(len(near_points)):
        point = near_points[j]
        if point < 0:
            continue
        # Never quite 0, which would mark a label that has no vote.
        weight = max(similarities[j], SMALLEST_SIMILARITY) ** 2
        for t in range(label_starts[point], label_starts[point + 1]):
            label = label_ids[t]
            if scratch[label] == 0:
                voted[n_voted] = label
                n_voted += 1
            scratch[label] += weight
    return voted[:n_voted]


@kernel
def _join(new: Ids, scratch: Floats, labels: Ids, votes: Floats, n_joined: int) -> int:
    """Append labels that are not there yet; a negative scratch marks those that are."""
    for label in new:
        if label < 0 or scratch[label] < 0 or n_joined == len(labels):
            continue
        labels[n_joined] = label
        votes[n_joined] = scratch[label]
        scratch[label] = -1
        n_joined += 1
    return n_joined


@kernel
def view_evidence(
    evidence: Floats,
    n_candidates: int,
    commonness: Floats,
    nearness: np.float32,
    views: Floats,
) -> None:
    """Write what the network sees of one point's candidates.

    A source has five views: its value, how far that is behind the point's best, the best itself,
    the logarithm of one plus the rank, and the logarithm of the sum of exponents behind the best,
    which is 0 where the best stands alone. Then come the candidate's commonness, the same behind
    the most common candidate, and the nearness of the nearest training point.

    Parameters
    ----------
    evidence : float32 (n_sources, size)
        What each source says of each candidate.
    n_candidates : int
        At least 1; the rest is padding.
    commonness : float32 (size,)
        Of each candidate.
    nearness : float
    views : float32 (size, n_sources * N_VIEWS + N_CONTEXT_VIEWS)
        Written, those of padding excepted.
    """
    n_sources = evidence.shape[0]
    for s in range(n_sources):
        values = evidence[s, :n_candidates]
        best = values.max()
        total = np.float32(0)
        for value in values:
            total += np.exp(max(value - best, FAR_BEHIND))
        spread = np.log(total)
        order = np.argsort(-values, kind="mergesort")  # equal ones in their own order
        for rank in range(n_candidates):
            c = order[rank]
            views[c, N_VIEWS * s] = values[c]
            views[c, N_VIEWS * s + 1] = values[c] - best
            views[c, N_VIEWS * s + 2] = best
            views[c, N_VIEWS * s + 3] = np.log1p(np.float32(rank))
            views[c, N_VIEWS * s + 4] = spread
    most = commonness[:n_candidates].max()
    for c in range(n_candidates):
        views[c, N_VIEWS * n_sources] = commonness[c]
        views[c, N_VIEWS * n_sources + 1] = commonness[c] - most
        views[c, N_VIEWS * n_sources + 2] = nearness


@kernel
def view_rows(
    labels: Ids,
    evidence: Floats,
    commonness: Floats,
    nearness: Floats,
    start: int,
    stop: int,
    views: Floats,
) -> None:
    """Write the views of the candidates of points `start` to `stop`; see `view_evidence`.

    Parameters
    ----------
    labels : int32 (n, size)
        Padded with -1 at the end.
    evidence : float32 (n, n_sources, size)
    commonness : float32 (n_labels,)
    nearness : float32 (n,)
    start, stop : int
    views : float32 (n, size, n_sources * N_VIEWS + N_CONTEXT_VIEWS)
        Written, those of padding excepted.
    """
    own = np.empty(labels.shape[1], np.float32)
    for i in range(start, stop):
        n = _take_commonness(labels[i], commonness, own)
        if n:
            view_evidence(evidence[i], n, own, nearness[i], views[i])


@kernel
def blend_rows(
    labels: Ids,
    evidence: Floats,
    commonness: Floats,
    nearness: Floats,
    centre: Floats,
    scale: Floats,
    matrix1: Floats,
    bias1: Floats,
    matrix2: Floats,
    bias2: Floats,
    last: Floats,
    start: int,
    stop: int,
    scores: Floats,
) -> None:
    """Write the network's score of each candidate of points `start` to `stop`.

    The views of one point at a time are held, in memory that stays in the processor's cache.

    Parameters
    ----------
    labels, evidence, commonness, nearness
        See `view_rows`.
    centre, scale, matrix1, bias1, matrix2, bias2, last
        See `network_scores`.
    start, stop : int
    scores : float32 (n, size)
        Written; padded with -inf.
    """
    own = np.empty(labels.shape[1], np.float32)
    views = np.empty((labels.shape[1], len(centre)), np.float32)
    for i in range(start, stop):
        n = _take_commonness(labels[i], commonness, own)
        scores[i, n:] = -np.inf
        if n:
            view_evidence(evidence[i], n, own, nearness[i], views)
            network_scores(views, n, centre, scale, matrix1, bias1, matrix2, bias2, last, scores[i])


@kernel
def _take_commonness(labels: Ids, commonness: Floats, own: Floats) -> int:
    """Copy the commonness of one point's candidates and return how many there are."""
    n = 0
    while n < len(labels) and labels[n] >= 0:
        own[n] = commonness[labels[n]]
        n += 1
    return n


@fast_kernel
def network_scores(
    views: Floats,
    n_candidates: int,
    centre: Floats,
    scale: Floats,
    matrix1: Floats,
    bias1: Floats,
    matrix2: Floats,
    bias2: Floats,
    last: Floats,
    scores: Floats,
) -> None:
    """Write the score of each candidate of one point: two ReLU layers and a weighted sum.

    Views are centred, scaled and cut to at most `LARGEST_VIEW` first.

    Parameters
    ----------
    views : float32 (size, n_views)
    n_candidates : int
        The rest is padding.
    centre, scale : float32 (n_views,)
    matrix1 : float32 (n_views, n_hidden1)
        Inputs first, so that the inner loop runs over neighbouring numbers.
    bias1 : float32 (n_hidden1,)
    matrix2 : float32 (n_hidden1, n_hidden2)
    bias2, last : float32 (n_hidden2,)
    scores : float32 (size,)
        Written, those of padding excepted.
    """
    inputs = np.empty(len(centre), np.float32)
    hidden1 = np.empty(len(bias1), np.float32)
    hidden2 = np.empty(len(bias2), np.float32)
    for c in range(n_candidates):
        for v in range(len(centre)):
            value = (views[c, v] - centre[v]) * scale[v]
            inputs[v] = min(max(value, -LARGEST_VIEW), LARGEST_VIEW)
        _layer(inputs, matrix1, bias1, hidden1)
        _layer(hidden1, matrix2, bias2, hidden2)
        score = np.float32(0)
        for h in range(len(hidden2)):
            score += hidden2[h] * last[h]
        scores[c] = score


@fast_kernel
def _layer(inputs: Floats, matrix: Floats, bias: Floats, outputs: Floats) -> None:
    """Write ``ReLU(inputs . matrix + bias)``."""
    outputs[:] = bias
    for i in range(len(inputs)):
        value = inputs[i]
        for h in range(len(outputs)):
            outputs[h] += value * matrix[i, h]
    for h in range(len(outputs)):
        outputs[h] = max(outputs[h], np.float32(0))
