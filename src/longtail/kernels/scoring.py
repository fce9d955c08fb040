"""The compiled steps from a point's features to scored labels, one row at a time.

A row is computed the same way whatever batch it is in, so one text alone and in a batch get the
same numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.exact import dot
from longtail.kernels.jit import fast_kernel, kernel
from longtail.kernels.rows import row_dot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.rows import Rows

__all__ = [
    "LEAST_STEP_OF_LOGITS",
    "add_residual",
    "angle_logits",
    "best_labels",
    "fuse_scores",
    "label_logits",
    "logistic_rows",
    "merge_shortlists",
]

LEAST_STEP_OF_LOGITS = 1e-4  # of a label that would be more probable than the best one, below that


@fast_kernel
def add_residual(
    features: NDArray[np.float32],
    matrix: NDArray[np.float32],
    bias: NDArray[np.float32],
    start: int,
    stop: int,
    final: NDArray[np.float32],
) -> None:
    """Write ``final[i] = v + ReLU(R v + b)`` for the rows v of `features`."""
    for i in range(start, stop):
        for d in range(matrix.shape[0]):
            change = dot(matrix[d], features[i]) + bias[d]
            final[i, d] = features[i, d] + max(change, np.float32(0))


@fast_kernel
def label_logits(
    features: NDArray[np.float32],
    vectors: NDArray[np.float32],
    bias: NDArray[np.float32],
    labels: NDArray[np.int32],
    start: int,
    stop: int,
    logits: NDArray[np.float32],
) -> None:
    """Write ``logits[i, j] = w_l . x_i + b_l`` for the shortlisted labels l = ``labels[i, j]``.

    Padding (-1) is left as it is.
    """
    for i in range(start, stop):
        for j in range(labels.shape[1]):
            label = labels[i, j]
            if label >= 0:
                logits[i, j] = dot(vectors[label], features[i]) + bias[label]


@fast_kernel
def angle_logits(
    points: NDArray[np.float32],
    rows: Rows,
    row_of_label: NDArray[np.int32],
    bias: NDArray[np.float32],
    scale: np.float32,
    labels: NDArray[np.int32],
    start: int,
    stop: int,
    logits: NDArray[np.float32],
) -> None:
    """Write ``logits[i, j] = scale * w_l . x_i + b_l`` for the candidates l = ``labels[i, j]``.

    w_l is row ``row_of_label[l]``, or zero where that is -1. Padding (-1) is left as it is.
    """
    for i in range(start, stop):
        for j in range(labels.shape[1]):
            label = labels[i, j]
            if label < 0:
                continue
            row = row_of_label[label]
            cosine = row_dot(points[i], rows, row) if row >= 0 else np.float32(0)
            logits[i, j] = scale * cosine + bias[label]


@kernel
def merge_shortlists(
    representative_ids: NDArray[np.int32],
    representative_similarities: NDArray[np.float32],
    label_of_representative: NDArray[np.int32],
    point_ids: NDArray[np.int32],
    point_similarities: NDArray[np.float32],
    label_starts: NDArray[np.int32],
    label_ids: NDArray[np.int32],
    point_weight: float,
    start: int,
    stop: int,
    nearness: NDArray[np.float32],
    votes: NDArray[np.float32],
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:
    """Merge near label representatives and the labels of near points into one shortlist a row.

    A label's score is ``(1 - point_weight) * c + point_weight * n``: c is the largest similarity of
    its representatives, n the sum of the similarities of the near points that carry it, divided by
    the row's largest such sum. Missing parts count as zero. The best ``labels.shape[1]`` are kept,
    descending, ties by smaller id, padded with -1 and -inf.

    `nearness` and `votes` are scratch, one number a label: -inf and 0, and left so.
    """
    for i in range(start, stop):
        n_votes = _n_votes(point_ids[i], label_starts)
        touched = np.empty(representative_ids.shape[1] + n_votes, np.int32)
        n_touched = 0
        for j in range(representative_ids.shape[1]):
            if representative_ids[i, j] < 0:
                break
            label = label_of_representative[representative_ids[i, j]]
            if nearness[label] == -np.inf:
                touched[n_touched] = label
                n_touched += 1
            nearness[label] = max(nearness[label], representative_similarities[i, j])
        n_touched, most = _collect_votes(
            point_ids[i],
            point_similarities[i],
            label_starts,
            label_ids,
            nearness,
            votes,
            touched,
            n_touched,
        )
        merged = np.empty(n_touched, np.float32)
        for t in range(n_touched):
            label = touched[t]
            share = votes[label] / most if most > 0 else np.float32(0)
            merged[t] = (1 - point_weight) * nearness[label] + point_weight * share
            nearness[label] = -np.inf
            votes[label] = 0
        _keep_best(touched[:n_touched], merged, labels[i], scores[i])


@kernel
def _n_votes(point_ids: NDArray[np.int32], label_starts: NDArray[np.int32]) -> int:
    """Count the labels of some points, one on several points as often."""
    n_votes = 0
    for point in point_ids:
        if point < 0:
            break
        n_votes += label_starts[point + 1] - label_starts[point]
    return n_votes


@kernel
def _collect_votes(
    point_ids: NDArray[np.int32],
    point_similarities: NDArray[np.float32],
    label_starts: NDArray[np.int32],
    label_ids: NDArray[np.int32],
    nearness: NDArray[np.float32],
    votes: NDArray[np.float32],
    touched: NDArray[np.int32],
    n_touched: int,
) -> tuple[int, np.float32]:
    """Add the similarity of each point to its labels; return what is touched and the largest sum.

    A label not yet touched is noted in `touched`, with a nearness of 0.
    """
    most = np.float32(0)
    for j in range(len(point_ids)):
        point = point_ids[j]
        if point < 0:
            break
        for t in range(label_starts[point], label_starts[point + 1]):
            label = label_ids[t]
            if nearness[label] == -np.inf:
                touched[n_touched] = label
                n_touched += 1
                nearness[label] = 0
            votes[label] += max(point_similarities[j], np.float32(0))
            most = max(most, votes[label])
    return n_touched, most


@kernel
def fuse_scores(
    nearness: NDArray[np.float32],
    logits: NDArray[np.float32],
    reranker_logits: NDArray[np.float32],
    alpha: float,
    beta: float,
    as_in_code: bool,
    start: int,
    stop: int,
    scores: NDArray[np.float32],
) -> None:
    """Combine the three scores of each shortlisted label; see `longtail.scorers.fusion`.

    `reranker_logits` may have no columns: then there is no re-ranker. Padding has a nearness of
    -inf and keeps a score of -inf.
    """
    has_reranker = reranker_logits.shape[1] > 0
    for i in range(start, stop):
        most_classified = most_near = 1.0
        if as_in_code:
            most_classified = most_near = 1e-30
            for j in range(nearness.shape[1]):
                if nearness[i, j] == -np.inf:
                    break
                logit = float(logits[i, j])
                if has_reranker:
                    logit = beta * reranker_logits[i, j] + (1 - beta) * logit
                most_classified = max(most_classified, _sigmoid(logit))
                most_near = max(most_near, _sigmoid(float(nearness[i, j])))
        for j in range(nearness.shape[1]):
            if nearness[i, j] == -np.inf:
                scores[i, j] = -np.inf
                continue
            logit = float(logits[i, j])
            if as_in_code and has_reranker:
                logit = beta * reranker_logits[i, j] + (1 - beta) * logit
            score = (
                alpha * _sigmoid(logit) / most_classified
                + (1 - alpha) * _sigmoid(float(nearness[i, j])) / most_near
            )
            if has_reranker and not as_in_code:
                score = beta * _sigmoid(float(reranker_logits[i, j])) + (1 - beta) * score
            scores[i, j] = score


@kernel
def _sigmoid(logit: float) -> float:
    """Return the logistic function of a number."""
    return 1.0 / (1.0 + math.exp(-logit))


@kernel
def logistic_rows(
    scores: NDArray[np.float32],
    slope: float,
    intercept: float,
    first: float,
    first_slope: float,
    probabilities: NDArray[np.float32],
) -> None:
    """Write the probabilities of scores (n, k), which may be the same array.

    In the first column `first` is added, and `first_slope` to the slope; no other column is above
    it. What is not finite becomes -inf: it is padding.
    """
    step = LEAST_STEP_OF_LOGITS if first_slope != 0 or first < 0 else 0.0
    for i in range(scores.shape[0]):
        most = np.float64(np.inf)
        for j in range(scores.shape[1]):
            score = np.float64(scores[i, j])
            logit = slope * score + intercept
            if j == 0:
                logit += first + first_slope * score
                most = logit - step
            elif logit > most:
                logit = most
                most -= step
            probabilities[i, j] = _sigmoid(logit) if np.isfinite(score) else -np.inf


@kernel
def best_labels(
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
    start: int,
    stop: int,
    best_ids: NDArray[np.int32],
    best_scores: NDArray[np.float32],
) -> None:
    """Write the best ``best_ids.shape[1]`` labels of each row, descending, ties by smaller id.

    Padding of `labels` (-1) comes last in a row.
    """
    for i in range(start, stop):
        n_labels = 0
        while n_labels < labels.shape[1] and labels[i, n_labels] >= 0:
            n_labels += 1
        _keep_best(labels[i, :n_labels], scores[i, :n_labels], best_ids[i], best_scores[i])


@kernel
def _keep_best(
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
    best_ids: NDArray[np.int32],
    best_scores: NDArray[np.float32],
) -> None:
    """Write the best labels in descending order, ties by smaller id, padded with -1 and -inf.

    One whole number holds a falling score and a rising label, so one plain sort does; sorting
    places instead took twice as long.
    """
    best_ids[:] = -1
    best_scores[:] = -np.inf
    bits = (scores + np.float32(0)).view(np.int32)  # a sum, because -0.0 must tie with 0.0
    keys = np.empty(len(labels), np.int64)
    for place in range(len(labels)):
        keys[place] = (-_ordered(np.int64(bits[place])) << 32) | np.int64(labels[place])
    keys.sort()
    best_bits = best_scores.view(np.int32)
    for place in range(min(len(best_ids), len(keys))):
        best_ids[place] = keys[place] & 0xFFFFFFFF
        best_bits[place] = _ordered(-(keys[place] >> 32))


@kernel
def _ordered(bits: np.int64) -> np.int64:
    """Turn a float32's bits into a number of the same order, or back: negative ones run down."""
    return bits ^ 0x7FFFFFFF if bits < 0 else bits
