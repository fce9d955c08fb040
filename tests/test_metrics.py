"""The metrics, against values worked out by hand, a plain implementation, and napkinXC."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail.errors import InputError
from longtail.metrics import (
    by_frequency_quantile,
    coverage_at_k,
    evaluate,
    inverse_propensities,
    ndcg_at_k,
    precision_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
    recall_at_k,
)
from longtail.metrics.hits import true_among
from ranked_labels import IDS, TRUTH, WEIGHTS, csr, falling


@pytest.mark.parametrize("n_points", [0, 5, 4100])  # none, some, more than are looked at together
def test_true_labels_are_found_among_others(n_points):
    random = np.random.default_rng(n_points)
    truth = random.random((n_points, 7)) < 0.3
    ids = random.integers(-1, 7, (n_points, 4))
    expected = np.take_along_axis(truth, np.maximum(ids, 0), axis=1) & (ids >= 0)
    np.testing.assert_array_equal(true_among(ids, csr_array(truth)), expected)


HALF = 1 / math.log2(3)  # the discount of the second place; of the third it is 1/2


class TestByHand:
    def test_precision(self):
        assert precision_at_k(IDS, TRUTH, 1) == pytest.approx(1 / 3)  # point 0
        assert precision_at_k(IDS, TRUTH, 2) == pytest.approx(2 / 6)
        assert precision_at_k(IDS, TRUTH, 3) == pytest.approx(4 / 9)

    def test_recall(self):
        assert recall_at_k(IDS, TRUTH, 2) == pytest.approx((1 / 2 + 1 + 0) / 3)
        assert recall_at_k(IDS, TRUTH, 3) == pytest.approx((1 + 1 + 1 / 3) / 3)

    def test_ndcg(self):
        best = [1 + HALF, 1, 1 + HALF + 1 / 2]  # of min(3, |y|) = 2, 1 and 3 places
        expected = ((1 + 1 / 2) / best[0] + HALF / best[1] + (1 / 2) / best[2]) / 3
        assert ndcg_at_k(IDS, TRUTH, 3) == pytest.approx(expected)

    def test_ps_precision_is_a_ratio_of_means(self):
        # Reached at 1: 2 (point 0). Attainable at 1: 2, 4 and 3.
        assert ps_precision_at_k(IDS, TRUTH, 1, WEIGHTS) == pytest.approx(2 / 9)
        # Reached at 3: 2 + 1, 4, 3. Attainable: 2 + 1, 4, 3 + 2 + 1.
        assert ps_precision_at_k(IDS, TRUTH, 3, WEIGHTS) == pytest.approx(10 / 13)

    def test_ps_ndcg_is_a_ratio_of_means(self):
        norms = [1 + HALF, 1, 1 + HALF + 1 / 2]
        reached = (2 + 1 / 2) / norms[0] + 4 * HALF / norms[1] + (3 / 2) / norms[2]
        best = (2 + HALF) / norms[0] + 4 / norms[1] + (3 + 2 * HALF + 1 / 2) / norms[2]
        assert ps_ndcg_at_k(IDS, TRUTH, 3, WEIGHTS) == pytest.approx(reached / best)

    def test_coverage_counts_labels_that_have_a_test_point(self):
        assert coverage_at_k(IDS, TRUTH, 1) == pytest.approx(1 / 4)  # label 1 of 0, 1, 2, 3
        assert coverage_at_k(IDS, TRUTH, 3) == pytest.approx(4 / 4)

    def test_inverse_propensities(self):
        c = (math.log(1000) - 1) * 3.6**0.6
        expected = [1 + c * 2.6**-0.6, 1 + c * 12.6**-0.6]
        assert inverse_propensities([0, 10], 1000, 0.6, 2.6) == pytest.approx(expected)

    def test_inverse_propensities_of_a_tiny_training_set_are_one(self):
        assert inverse_propensities([0, 1, 2], 2).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("b", [0.0, -1.0, math.nan, math.inf])
def test_propensities_need_a_b_above_0(b):
    with pytest.raises(InputError, match="a B above 0"):
        inverse_propensities([0, 1], 100, 0.5, b)


@pytest.mark.parametrize("wrong", [{"a": ".5"}, {"b": None}, {"n_points": "100"}])
def test_propensities_need_numbers(wrong):
    with pytest.raises(InputError, match=r"n_points is .*an A from 0 to 10 and a B above 0"):
        inverse_propensities([0, 1], **({"n_points": 100} | wrong))


def test_labels_of_training_that_no_test_point_has_may_have_propensities_too():
    truth, ids = csr([[0, 1]], 2), np.array([[1, 0]])
    weights = np.array([3.0, 1.0, 9.0])
    assert ps_precision_at_k(ids, truth, 1, weights) == pytest.approx(1 / 3)


def test_same_numbers_as_napkinxc():
    # Fractions printed by napkinxc.metrics 0.7.2 (PrecisionAtK, NDCGAtK, RecallAtK, PSPrecisionAtK,
    # PSNDCGAtK, CoverageAtK) for this example; point 5 has no labels.
    true_labels = [[0, 7], [1, 5], [3, 6, 10], [1, 4, 8], [3, 6], [], [2, 9], [0, 7, 8]]
    ids = (5 * np.arange(8)[:, np.newaxis] + 7 * np.arange(5)) % 12
    truth = csr(true_labels, 12)
    report = evaluate(
        ids,
        falling(ids),
        truth,
        train_label_counts=[40, 21, 0, 7, 1, 3, 90, 2, 12, 1, 0, 5],
        n_train_points=150,
        recall_ks=[2, 5],
    )
    expected = {
        "P@1": 0.375,
        "P@3": 0.2083333333,
        "P@5": 0.15,
        "nDCG@1": 0.375,
        "nDCG@3": 0.3086598408,
        "nDCG@5": 0.3339232591,
        "PSP@1": 0.3630145153,
        "PSP@3": 0.3371155814,
        "PSP@5": 0.381945832,
        "PSnDCG@1": 0.3630145153,
        "PSnDCG@3": 0.3596356136,
        "PSnDCG@5": 0.3797475119,
        "coverage@1": 0.2727272727,
        "coverage@3": 0.4545454545,
        "coverage@5": 0.5454545455,
        "R@2": 0.2916666667,
        "R@5": 0.3333333333,
    }
    assert list(report) == list(expected)
    assert report == pytest.approx({name: 100 * value for name, value in expected.items()})


@st.composite
def problems(draw):
    """Rankings (distinct labels, some padded), true labels, counts of training points, k."""
    n_labels, n_points = draw(st.integers(3, 9)), draw(st.integers(1, 6))
    width = draw(st.integers(1, n_labels))
    rankings = st.permutations(range(n_labels)).map(lambda labels: labels[:width])
    rows = draw(st.lists(rankings, min_size=n_points, max_size=n_points))
    shown = draw(st.lists(st.integers(0, width), min_size=n_points, max_size=n_points))
    padded = [row[:n] + [-1] * (width - n) for row, n in zip(rows, shown, strict=True)]
    labels = st.sets(st.integers(0, n_labels - 1)).map(sorted)
    truth = draw(st.lists(labels, min_size=n_points, max_size=n_points))
    n_seen = draw(st.integers(1, n_labels))  # the last labels may be unseen in training
    counts = draw(st.lists(st.integers(0, 50), min_size=n_seen, max_size=n_seen))
    return np.array(padded), truth, n_labels, counts, draw(st.integers(1, width))


@given(problems())
@settings(max_examples=60, deadline=None)
def test_same_numbers_as_the_formulas_in_plain_python(problem):
    ids, true_labels, n_labels, counts, k = problem
    report = evaluate(
        ids,
        falling(ids),
        csr(true_labels, n_labels),
        train_label_counts=counts,
        n_train_points=60,
        ks=[k],
        recall_ks=[k],
    )
    expected = _naive_report(ids.tolist(), true_labels, n_labels, counts, 60, k)
    assert report == pytest.approx({name: 100 * value for name, value in expected.items()})


@given(problems(), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_frequency_bins_add_up_to_the_whole(problem, n_bins):
    ids, true_labels, n_labels, counts, k = problem
    truth = csr(true_labels, n_labels)
    bins = by_frequency_quantile(
        ids, truth, k, train_label_counts=counts, n_train_points=60, n_bins=n_bins
    )
    weights = inverse_propensities(counts + [0] * (n_labels - len(counts)), 60)
    assert sum(part.n_labels for part in bins) == n_labels
    assert max(p.n_labels for p in bins) - min(p.n_labels for p in bins) <= 1
    assert sum(part.precision for part in bins) == pytest.approx(precision_at_k(ids, truth, k))
    whole = ps_precision_at_k(ids, truth, k, weights)
    assert sum(part.ps_precision for part in bins) == pytest.approx(whole)
    frequencies = [part.mean_frequency for part in bins]
    assert frequencies == sorted(frequencies, reverse=True)


def test_frequency_bins_by_hand():
    # Label 4 is unseen in training and belongs to the tail with label 0.
    head, tail = by_frequency_quantile(
        IDS, TRUTH, 3, train_label_counts=[1, 20, 9, 4], n_train_points=30, n_bins=2
    )
    assert (head.n_labels, head.mean_frequency) == (3, pytest.approx(11.0))
    assert (tail.n_labels, tail.mean_frequency) == (2, pytest.approx(0.5))
    assert (head.precision, tail.precision) == (pytest.approx(3 / 9), pytest.approx(1 / 9))


def test_more_bins_than_labels_is_an_error():
    with pytest.raises(InputError, match="5 labels can be cut into 1 to 5 bins"):
        by_frequency_quantile(IDS, TRUTH, 1, train_label_counts=[1] * 5, n_train_points=9, n_bins=6)


@given(problems())
@settings(max_examples=25, deadline=None)
def test_perfect_predictions_reach_one(problem):
    _, true_labels, n_labels, counts, k = problem
    true_labels = [labels or [0] for labels in true_labels]
    truth = csr(true_labels, n_labels)
    weights = inverse_propensities(counts + [0] * (n_labels - len(counts)), 60)
    ranked = [sorted(labels, key=lambda label: -weights[label]) for labels in true_labels]
    ids = np.array([labels + [-1] * (n_labels - len(labels)) for labels in ranked])
    for value in (
        ndcg_at_k(ids, truth, k),
        ps_precision_at_k(ids, truth, k, weights),
        ps_ndcg_at_k(ids, truth, k, weights),
        recall_at_k(ids, truth, n_labels),
        coverage_at_k(ids, truth, n_labels),
        precision_at_k(ids, truth, min(map(len, true_labels))),
    ):
        assert value == pytest.approx(1.0)


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_order_of_points_does_not_matter(problem, random):
    ids, true_labels, n_labels, counts, k = problem
    order = list(range(len(ids)))
    random.shuffle(order)
    options = {"train_label_counts": counts, "n_train_points": 60, "ks": [k], "recall_ks": [k]}
    truth = csr(true_labels, n_labels)
    before = evaluate(ids, falling(ids), truth, **options)
    after = evaluate(ids[order], falling(ids[order]), truth[order], **options)
    assert after == pytest.approx(before)


def test_agrees_with_scikit_learn_where_the_definitions_agree():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    truth = (rng.random((40, 12)) < 0.3).astype(int)
    truth[:, 0] = 1  # scikit-learn leaves points without labels out, published tables do not
    scores = rng.permuted(np.tile(np.arange(12.0), (40, 1)), axis=1)  # no ties
    ids = np.argsort(-scores, axis=1)
    for k in (1, 3, 12):
        expected = metrics.ndcg_score(truth, scores, k=k)
        assert ndcg_at_k(ids, csr_array(truth), k) == pytest.approx(expected)
        chosen = np.zeros_like(truth)
        np.put_along_axis(chosen, ids[:, :k], 1, axis=1)
        expected = metrics.precision_score(truth, chosen, average="samples")
        assert precision_at_k(ids, csr_array(truth), k) == pytest.approx(expected)
        expected = metrics.recall_score(truth, chosen, average="samples")
        assert recall_at_k(ids, csr_array(truth), k) == pytest.approx(expected)


def _naive_report(rankings, truth, n_labels, counts, n_train_points, k):
    """Every metric from its formula, point by point (the paper's A.5, with ratios of means)."""
    counts = counts + [0] * (n_labels - len(counts))
    c = (math.log(n_train_points) - 1) * 2.5**0.55
    weight = [1 + c * (count + 1.5) ** -0.55 for count in counts]
    n_points = len(rankings)
    sums = dict.fromkeys(("P", "nDCG", "PSP", "PSnDCG", "R", "best PSP", "best PSnDCG"), 0.0)
    covered = set()
    for ranking, labels in zip(rankings, truth, strict=True):
        norm = sum(1 / math.log2(place + 2) for place in range(min(k, len(labels)))) or 1.0
        heaviest = sorted((weight[label] for label in labels), reverse=True)[:k]
        sums["best PSP"] += sum(heaviest) / k
        sums["best PSnDCG"] += sum(w / math.log2(i + 2) for i, w in enumerate(heaviest)) / norm
        for place, label in enumerate(ranking[:k]):
            if label in labels:
                covered.add(label)
                sums["P"] += 1 / k
                sums["R"] += 1 / len(labels)
                sums["PSP"] += weight[label] / k
                sums["nDCG"] += 1 / math.log2(place + 2) / norm
                sums["PSnDCG"] += weight[label] / math.log2(place + 2) / norm
    present = {label for labels in truth for label in labels}
    return {
        f"P@{k}": sums["P"] / n_points,
        f"nDCG@{k}": sums["nDCG"] / n_points,
        f"PSP@{k}": sums["PSP"] / (sums["best PSP"] or 1.0),
        f"PSnDCG@{k}": sums["PSnDCG"] / (sums["best PSnDCG"] or 1.0),
        f"coverage@{k}": len(covered) / (len(present) or 1),
        f"R@{k}": sums["R"] / n_points,
    }
