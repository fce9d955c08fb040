"""The scoring kernels, each held to a plain numpy twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.arrays import read_only
from longtail.kernels.scoring import (
    add_residual,
    best_labels,
    fuse_scores,
    label_logits,
    merge_shortlists,
)
from small_numbers import whole_numbers

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def shortlists(seed, n, size, n_ids):
    """Distinct ids in each row, with a different number of them, padded with -1."""
    random = np.random.default_rng(seed)
    ids = np.full((n, size), -1, np.int32)
    for row in ids:
        some = random.permutation(n_ids)[: random.integers(0, size + 1)]
        row[: len(some)] = some
    return read_only(ids, np.int32)


def best_twin(pairs, size):
    """The best of (label, score) pairs: descending, ties by smaller id, padded."""
    best = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:size]
    best += [(-1, -np.inf)] * (size - len(best))
    return [label for label, _ in best], [score for _, score in best]


@few
@given(seeds, st.integers(0, 9), st.integers(1, 40))
def test_add_residual(seed, n, dimension):
    features = whole_numbers(seed, n, dimension)
    matrix, bias = whole_numbers(seed + 1, dimension, dimension), whole_numbers(seed + 2, dimension)
    final = np.empty((n, dimension), np.float32)
    add_residual(features, matrix, bias, 0, n, final)
    expected = features + np.maximum(features @ matrix.T + bias, 0)
    np.testing.assert_array_equal(final, expected)


def test_add_residual_leaves_other_rows_alone():
    features = whole_numbers(0, 5, 3)
    final = np.full((5, 3), 77, np.float32)
    add_residual(features, whole_numbers(1, 3, 3), whole_numbers(2, 3), 1, 3, final)
    assert (final[[0, 3, 4]] == 77).all()
    assert (final[1:3] != 77).all()


@few
@given(seeds, st.integers(0, 9), st.integers(0, 12), st.integers(1, 40))
def test_label_logits(seed, n, size, dimension):
    features, vectors = whole_numbers(seed, n, dimension), whole_numbers(seed + 1, 15, dimension)
    bias, labels = whole_numbers(seed + 2, 15), shortlists(seed, n, size, 15)
    logits = np.full((n, size), 77, np.float32)
    label_logits(features, vectors, bias, labels, 0, n, logits)
    expected = np.take_along_axis(features @ vectors.T + bias, labels, axis=1)
    np.testing.assert_array_equal(logits, np.where(labels >= 0, expected, 77))


def merge_twin(row, representatives, label_of, points, labels_of_points, point_weight, size):
    """One row by the formula, with a dictionary a part."""
    nearness, votes = {}, {}
    for place, similarity in zip(*(part[row] for part in representatives), strict=True):
        if place >= 0:
            label = label_of[place]
            nearness[label] = max(nearness.get(label, -np.inf), similarity)
    for point, similarity in zip(*(part[row] for part in points), strict=True):
        for label in labels_of_points[point] if point >= 0 else []:
            votes[label] = votes.get(label, 0) + max(similarity, 0)
    most = max(votes.values(), default=0) or 1
    scores = {
        int(label): (1 - point_weight) * nearness.get(label, 0)
        + point_weight * votes.get(label, 0) / most
        for label in {*nearness, *votes}
    }
    return best_twin(scores.items(), size)


@few
@given(
    seed=seeds,
    n=st.integers(0, 6),
    n_near=st.integers(0, 10),
    n_near_points=st.integers(0, 10),
    size=st.integers(1, 12),
    point_weight=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_merge_shortlists(seed, n, n_near, n_near_points, size, point_weight):
    random = np.random.default_rng(seed)
    label_of = read_only(random.integers(0, 12, 15), np.int32)
    labels_of_points = [random.permutation(12)[: random.integers(0, 5)] for _ in range(20)]
    starts = np.cumsum([0, *(len(some) for some in labels_of_points)])
    representatives = (shortlists(seed, n, n_near, 15), whole_numbers(seed + 1, n, n_near))
    points = (shortlists(seed + 2, n, n_near_points, 20), whole_numbers(seed + 3, n, n_near_points))
    nearness, votes = np.full(12, -np.inf, np.float32), np.zeros(12, np.float32)
    labels, scores = np.full((n, size), 77, np.int32), np.full((n, size), 77, np.float32)
    merge_shortlists(
        *representatives,
        label_of,
        *points,
        read_only(starts, np.int32),
        read_only(np.concatenate(labels_of_points), np.int32),
        point_weight,
        0,
        n,
        nearness,
        votes,
        labels,
        scores,
    )
    for row in range(n):
        ids, values = merge_twin(
            row, representatives, label_of, points, labels_of_points, point_weight, size
        )
        assert labels[row].tolist() == ids
        np.testing.assert_allclose(scores[row], values, rtol=1e-6, atol=1e-6)
    assert (nearness == -np.inf).all()
    assert (votes == 0).all()


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits.astype(np.float64)))


def fuse_twin(nearness, logits, reranker_logits, alpha, beta, as_in_code):
    near, classified = sigmoid(nearness), sigmoid(logits)
    has_reranker = reranker_logits.shape[1] > 0
    if as_in_code:
        if has_reranker:
            classified = sigmoid(beta * reranker_logits + (1 - beta) * logits)
        classified = classified / classified.max(axis=1, keepdims=True)
        near = near / near.max(axis=1, keepdims=True)
    scores = alpha * classified + (1 - alpha) * near
    if has_reranker and not as_in_code:
        scores = beta * sigmoid(reranker_logits) + (1 - beta) * scores
    return scores


@few
@given(
    seed=seeds,
    n=st.integers(0, 6),
    size=st.integers(1, 9),
    alpha=st.floats(0, 1),
    beta=st.floats(0, 1),
    as_in_code=st.booleans(),
    has_reranker=st.booleans(),
)
def test_fuse_scores(seed, n, size, alpha, beta, as_in_code, has_reranker):
    random = np.random.default_rng(seed)
    nearness, logits, reranker_logits = random.normal(0, 3, (3, n, size)).astype(np.float32)
    reranker_logits = reranker_logits if has_reranker else np.empty((n, 0), np.float32)
    parts = [read_only(part, np.float32) for part in (nearness, logits, reranker_logits)]
    scores = np.empty((n, size), np.float32)
    fuse_scores(*parts, alpha, beta, as_in_code, 0, n, scores)
    expected = fuse_twin(*parts, alpha, beta, as_in_code)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)


@few
@given(seeds, st.booleans())
def test_fuse_scores_of_a_padded_row_are_those_without_padding(seed, as_in_code):
    random = np.random.default_rng(seed)
    parts = [read_only(part, np.float32) for part in random.normal(0, 3, (3, 4, 5))]
    padding = np.full((4, 2), -np.inf, np.float32)
    padded = [read_only(np.hstack([part, padding]), np.float32) for part in parts]
    scores, more = np.empty((4, 5), np.float32), np.empty((4, 7), np.float32)
    fuse_scores(*parts, 0.3, 0.6, as_in_code, 0, 4, scores)
    fuse_scores(*padded, 0.3, 0.6, as_in_code, 0, 4, more)
    np.testing.assert_array_equal(more[:, :5], scores)
    assert (more[:, 5:] == -np.inf).all()


def test_fuse_scores_of_very_large_and_small_logits_are_numbers():
    extremes = read_only([[-1e4, 0, 1e4]], np.float32)
    scores = np.empty((1, 3), np.float32)
    for as_in_code in (False, True):
        fuse_scores(extremes, extremes, extremes, 0.5, 0.5, as_in_code, 0, 1, scores)
        np.testing.assert_allclose(scores, [[0, 0.5, 1]], atol=1e-6)


@few
@given(seeds, st.integers(0, 6), st.integers(0, 12), st.integers(1, 14))
def test_best_labels(seed, n, size, k):
    labels, scores = shortlists(seed, n, size, 40), whole_numbers(seed + 1, n, size)
    best_ids, best_scores = np.full((n, k), 77, np.int32), np.full((n, k), 77, np.float32)
    best_labels(labels, scores, 0, n, best_ids, best_scores)
    for row in range(n):
        there = labels[row] >= 0
        pairs = zip(labels[row][there].tolist(), scores[row][there].tolist(), strict=True)
        ids, values = best_twin(pairs, k)
        assert best_ids[row].tolist() == ids
        assert best_scores[row].tolist() == values


def test_best_labels_orders_every_kind_of_float():
    values = [0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3.4e38, -3.4e38, 1.0, 1.0]
    scores = read_only([values], np.float32)
    labels = read_only([range(2**31 - 1, 2**31 - 11, -1)], np.int32)
    best_ids, best_scores = np.empty((1, 10), np.int32), np.empty((1, 10), np.float32)
    best_labels(labels, scores, 0, 1, best_ids, best_scores)
    ids, expected = best_twin(zip(labels[0].tolist(), scores[0].tolist(), strict=True), 10)
    assert best_ids[0].tolist() == ids  # 0.0 and -0.0 are a tie
    assert best_scores[0].tolist() == expected
