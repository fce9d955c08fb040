"""The metrics, against values worked out by hand, a plain implementation, and napkinXC."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, save_npz

from longtail.errors import DataFormatError, InputError
from longtail.metrics import (
    by_frequency_quantile,
    coverage_at_k,
    evaluate,
    in_rank_order,
    inverse_propensities,
    ndcg_at_k,
    precision_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
    read_scores,
    recall_at_k,
    set_aside,
    top_k,
)

# Three points, five labels; label 4 has no test point.
#   point 0: true {0, 1}     predicted 1 (hit), 3, 0 (hit)
#   point 1: true {2}        predicted 0, 2 (hit), none
#   point 2: true {0, 1, 3}  predicted 4, 2, 3 (hit)
TRUTH = csr_array(np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 1, 0, 1, 0]], dtype=np.float32))
IDS = np.array([[1, 3, 0], [0, 2, -1], [4, 2, 3]])
SCORES = np.array([[0.9, 0.5, 0.4], [0.8, 0.7, -np.inf], [0.6, 0.5, 0.4]])
WEIGHTS = np.array([1.0, 2.0, 4.0, 3.0, 9.0])
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


def test_same_numbers_as_napkinxc():
    # Fractions printed by napkinxc.metrics 0.7.2 (PrecisionAtK, NDCGAtK, RecallAtK, PSPrecisionAtK,
    # PSNDCGAtK, CoverageAtK) for this example; point 5 has no labels.
    true_labels = [[0, 7], [1, 5], [3, 6, 10], [1, 4, 8], [3, 6], [], [2, 9], [0, 7, 8]]
    ids = (5 * np.arange(8)[:, np.newaxis] + 7 * np.arange(5)) % 12
    truth = _csr(true_labels, 12)
    report = evaluate(
        ids,
        _falling(ids),
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
        _falling(ids),
        _csr(true_labels, n_labels),
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
    truth = _csr(true_labels, n_labels)
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
    truth = _csr(true_labels, n_labels)
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
    truth = _csr(true_labels, n_labels)
    before = evaluate(ids, _falling(ids), truth, **options)
    after = evaluate(ids[order], _falling(ids[order]), truth[order], **options)
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


class TestEvaluate:
    def test_names_and_percent(self):
        report = evaluate(
            IDS,
            SCORES,
            TRUTH,
            train_label_counts=[9, 7, 5, 3, 1],
            n_train_points=20,
            ks=[1, 3],
            recall_ks=[2],
        )
        assert list(report) == [
            *("P@1", "P@3", "nDCG@1", "nDCG@3", "PSP@1", "PSP@3"),
            *("PSnDCG@1", "PSnDCG@3", "coverage@1", "coverage@3", "R@2"),
        ]
        assert report["P@3"] == pytest.approx(400 / 9)
        assert all(type(value) is float for value in report.values())

    def test_scores_set_the_order_and_ties_go_to_the_smaller_id(self):
        ids, scores = np.array([[3, 1, 0]]), np.array([[0.5, 0.5, 0.9]])
        assert in_rank_order(ids, scores).tolist() == [[0, 1, 3]]
        report = _evaluate(ids, scores, _csr([[1]], 4), ks=[1, 2])
        assert (report["P@1"], report["P@2"]) == (0.0, 50.0)

    def test_padding_stays_last(self):
        ids, scores = np.array([[-1, 2, 5]]), np.array([[-np.inf, 0.1, 0.3]])
        assert in_rank_order(ids, scores).tolist() == [[5, 2, -1]]

    def test_unsorted_and_explicitly_zero_truth_is_read_rightly_and_left_alone(self):
        truth = csr_array(
            (np.array([1.0, 0.0, 1.0]), np.array([3, 1, 0]), np.array([0, 3])), shape=(1, 4)
        )
        assert precision_at_k(np.array([[0, 1, 3, 2]]), truth, 4) == 0.5
        assert truth.indices.tolist() == [3, 1, 0]
        assert truth.data.tolist() == [1.0, 0.0, 1.0]

    def test_old_style_matrix_is_accepted(self):
        assert precision_at_k(IDS, csr_matrix(TRUTH), 3) == pytest.approx(4 / 9)

    def test_points_without_labels_count_as_zero(self):
        truth = _csr([[0], []], 2)
        ids = np.array([[0, 1], [0, 1]])
        assert precision_at_k(ids, truth, 1) == 0.5
        assert ndcg_at_k(ids, truth, 1) == 0.5
        assert recall_at_k(ids, truth, 1) == 0.5
        assert ps_ndcg_at_k(ids, truth, 1, np.ones(2)) == 1.0  # no more was attainable

    def test_no_true_label_at_all(self):
        report = _evaluate(np.array([[0, 1]]), np.array([[2.0, 1.0]]), _csr([[]], 3), ks=[1, 2])
        assert set(report.values()) == {0.0}

    def test_labels_that_only_the_truth_or_only_the_model_has(self):
        # The model knows labels 0 to 6, the truth 0 to 8, training counts go to 2.
        ids = np.array([[6, 1], [1, 0]])
        report = _evaluate(ids, _falling(ids), _csr([[8], [1]], 9), ks=[1])
        assert report["P@1"] == 50.0
        weights = inverse_propensities([1, 1, 1, 0, 0, 0, 0, 0, 0], 9)
        assert report["PSP@1"] == pytest.approx(100 * weights[1] / (weights[1] + weights[8]))
        # Labels past the truth's columns are wrong, never taken for another point's label.
        assert precision_at_k(np.array([[3], [5]]), _csr([[2], [0, 2]], 3), 1) == 0.0

    def test_many_points_span_several_chunks(self):
        n_points = 10_000
        ids = np.stack([np.arange(n_points) % 7, np.arange(n_points) % 7 + 7], axis=1)
        truth = _csr([[i % 7 + (7 if i % 2 else 0)] for i in range(n_points)], 14)
        assert precision_at_k(ids, truth, 1) == 0.5
        assert recall_at_k(ids, truth, 2) == 1.0

    def test_big_label_ids_do_not_overflow(self):
        n_labels = 2_000_000_000
        truth = csr_array(
            (np.ones(3), np.array([5, 7, n_labels - 1]), np.array([0, 1, 2, 3])),
            shape=(3, n_labels),
        )
        ids = np.array([[5], [6], [n_labels - 1]], dtype=np.int32)
        assert recall_at_k(ids, truth, 1) == pytest.approx(2 / 3)


class TestFilter:
    pairs = csr_array(np.array([[0, 1, 0, 0, 0], [0] * 5, [0, 0, 0, 0, 1]]))

    def test_pairs_are_removed_and_the_rest_moves_up(self):
        ids, scores = set_aside(IDS, SCORES, self.pairs)
        assert ids.tolist() == [[3, 0, -1], [0, 2, -1], [2, 3, -1]]
        assert scores.tolist() == [[0.5, 0.4, -np.inf], [0.8, 0.7, -np.inf], [0.5, 0.4, -np.inf]]
        assert IDS[0].tolist() == [1, 3, 0]  # the caller's array is left alone

    def test_evaluate_with_a_filter_leaves_the_truth_alone(self):
        report = _evaluate(IDS, SCORES, TRUTH, ks=[2], recall_ks=[2], set_aside=self.pairs)
        assert report["P@2"] == pytest.approx(100 * 3 / 6)
        assert report["R@2"] == pytest.approx(100 * (1 / 2 + 1 + 1 / 3) / 3)

    def test_same_from_the_score_matrix_and_from_its_top_k(self):
        scores = csr_array(np.array([[0, 0.9, 0.1, 0.5], [0.3, 0, 0.2, 0.4]]))
        pairs = csr_array(np.array([[0, 1, 0, 0], [0, 0, 0, 1]]))
        direct = top_k(scores, 3, exclude=pairs)
        later = set_aside(*top_k(scores, 3), pairs)
        assert direct[0].tolist() == later[0].tolist() == [[3, 2, -1], [0, 2, -1]]
        assert direct[1].tolist() == later[1].tolist()

    def test_a_filter_of_another_set_is_an_error(self):
        with pytest.raises(InputError, match="for 2 points, the predictions for 3"):
            set_aside(IDS, SCORES, self.pairs[:2])


class TestTopK:
    def test_ties_zeros_negatives_and_short_rows(self):
        matrix = csr_array(
            (
                np.array([0.5, 0.0, 0.5, 0.7, -1.0]),
                np.array([4, 2, 1, 0, 3]),
                np.array([0, 4, 4, 5]),
            ),
            shape=(3, 5),
        )
        ids, scores = top_k(matrix, 3)
        assert ids.tolist() == [[0, 1, 4], [-1, -1, -1], [3, -1, -1]]
        assert scores.tolist() == [[0.7, 0.5, 0.5], [-np.inf] * 3, [-1.0, -np.inf, -np.inf]]

    @given(
        st.lists(st.dictionaries(st.integers(0, 7), st.integers(-3, 3), max_size=8), min_size=1),
        st.integers(1, 9),
    )
    @settings(max_examples=40, deadline=None)
    def test_same_as_sorting_each_row(self, rows, k):
        matrix = csr_array((len(rows), 8)).tolil()
        for point, row in enumerate(rows):
            for label, score in row.items():
                matrix[point, label] = score
        ids, scores = top_k(matrix.tocsr(), k)
        for point, row in enumerate(rows):
            best = sorted((-score, label) for label, score in row.items() if score)[:k]
            rest = k - len(best)
            assert ids[point].tolist() == [label for _, label in best] + [-1] * rest
            assert scores[point].tolist() == [-score for score, _ in best] + [-np.inf] * rest

    def test_nan_is_an_error(self):
        with pytest.raises(InputError, match="NaN"):
            top_k(csr_array([[np.nan, 1.0]]), 1)

    def test_no_place_is_an_error(self):
        with pytest.raises(InputError, match="k is 0"):
            top_k(csr_array([[1.0]]), 0)


class TestBadInput:
    def test_k_above_what_was_predicted(self):
        with pytest.raises(InputError, match=r"holds 3 predictions a point, but k=10 was asked"):
            _evaluate(IDS, SCORES, TRUTH, ks=[1], recall_ks=[10])

    def test_k_below_one(self):
        with pytest.raises(InputError, match="k is 0"):
            precision_at_k(IDS, TRUTH, 0)

    def test_row_counts_differ(self):
        with pytest.raises(InputError, match="`ids` has 2 rows but `truth` has 3"):
            precision_at_k(IDS[:2], TRUTH, 1)

    def test_scores_of_another_shape(self):
        with pytest.raises(InputError, match=r"shape \(3, 3\) but `scores` has \(3, 2\)"):
            _evaluate(IDS, SCORES[:, :2], TRUTH, ks=[1])

    def test_scores_with_nan(self):
        scores = SCORES.copy()
        scores[1, 0] = np.nan
        with pytest.raises(InputError, match="Row 1 of `scores` holds NaN"):
            _evaluate(IDS, scores, TRUTH, ks=[1])

    def test_a_label_predicted_twice(self):
        with pytest.raises(InputError, match="Row 1 of `ids` names label 2 twice"):
            precision_at_k(np.array([[0, 3, 1], [2, 0, 2], [0, 1, 2]]), TRUTH, 3)

    def test_no_points(self):
        with pytest.raises(InputError, match="no points"):
            precision_at_k(np.empty((0, 3), dtype=int), csr_array((0, 5)), 1)

    def test_dense_truth(self):
        with pytest.raises(InputError, match="`truth` is a ndarray, which is dense"):
            ps_precision_at_k(IDS, TRUTH.toarray(), 1, WEIGHTS)

    @pytest.mark.parametrize("ids", [IDS[0], IDS.astype(float)])
    def test_ids_of_another_kind(self, ids):
        with pytest.raises(InputError, match="label ids as integers"):
            precision_at_k(ids, TRUTH, 1)

    def test_too_few_propensities(self):
        with pytest.raises(InputError, match="`truth` has 5 labels"):
            ps_precision_at_k(IDS, TRUTH, 1, WEIGHTS[:4])

    def test_negative_counts(self):
        with pytest.raises(InputError, match="0 or more"):
            inverse_propensities([3, -1], 10)

    def test_no_training_points(self):
        with pytest.raises(InputError, match="at least 1 training point"):
            inverse_propensities([3, 1], 0)


class TestScoreFiles:
    text = "3 5\n1:0.9 3:0.5 0:0.4\n0:0.8 2:0.7\n4:0.6 2:0.5 3:0.4\n"

    def test_published_npz_gives_the_published_numbers(self, tmp_path):
        # The predictions of the example at the top, as a score matrix; P@3 = 4/9 there.
        rows, columns = np.nonzero(IDS >= 0)
        scores = csr_matrix((SCORES[rows, columns], (rows, IDS[rows, columns])), shape=(3, 5))
        save_npz(tmp_path / "score.npz", scores)
        ids, values = top_k(read_scores(tmp_path / "score.npz"), 3)
        assert ids.tolist() == IDS.tolist()
        report = _evaluate(ids, values, TRUTH, ks=[3])
        assert report["P@3"] == pytest.approx(400 / 9)

    @pytest.mark.parametrize("name", ["score.txt", "score.txt.gz"])
    def test_text(self, tmp_path, name):
        data = self.text.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        ids, values = top_k(read_scores(tmp_path / name), 3)
        assert ids.tolist() == IDS.tolist()
        assert values.tolist() == SCORES.tolist()

    def test_empty_lines_and_carriage_returns(self, tmp_path):
        path = tmp_path / "score.txt"
        path.write_bytes(b"3 4\r\n\r\n 2:1e-3  0:-2 \r\n\n")
        assert read_scores(path).toarray().tolist() == [[0] * 4, [-2, 0, 0.001, 0], [0] * 4]

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            ("", 1, "Expected the header"),
            ("3\n", 1, "Expected the header"),
            ("2 5\n0:1\n5:1\n", 3, "Label 5 is out of range"),
            ("1 5\n0:x\n", 2, "Expected pairs"),
            ("1 5\n0:nan\n", 2, "Expected pairs"),
            ("1 5\n0:1 2\n", 2, "Expected pairs"),
            ("1 5\n0 1:2:3\n", 2, "Expected pairs"),
            ("1 5\n-1:2\n", 2, "Expected pairs"),
            ("1 5\n0:1\n0:1\n", 3, "announces 1 points, but more lines"),
        ],
    )
    def test_broken_text_is_named_with_its_line(self, tmp_path, text, line, message):
        path = tmp_path / "score.txt"
        path.write_text(text)
        with pytest.raises(DataFormatError, match=message) as caught:
            read_scores(path)
        assert caught.value.line == line

    def test_file_cut_short(self, tmp_path):
        path = tmp_path / "score.txt"
        path.write_text(self.text.rpartition("4:")[0])
        with pytest.raises(DataFormatError, match="announces 3 points, but only 2 lines"):
            read_scores(path)

    def test_compressed_file_cut_short(self, tmp_path):
        path = tmp_path / "score.txt.gz"
        path.write_bytes(gzip.compress(self.text.encode())[:-9])
        with pytest.raises(DataFormatError, match="damaged or cut short"):
            read_scores(path)

    def test_npz_that_is_none(self, tmp_path):
        path = tmp_path / "score.npz"
        path.write_bytes(b"no archive")
        with pytest.raises(DataFormatError, match="not a sparse matrix"):
            read_scores(path)
        np.savez(path, other=np.ones(3))
        with pytest.raises(DataFormatError, match="not a sparse matrix"):
            read_scores(path)


def _csr(true_labels, n_labels):
    lengths = [len(labels) for labels in true_labels]
    indices = np.array([label for labels in true_labels for label in labels], dtype=np.int32)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return csr_array((np.ones(len(indices)), indices, indptr), shape=(len(true_labels), n_labels))


def _falling(ids):
    """Scores that keep the order of `ids`; padding last."""
    return np.where(ids < 0, -np.inf, -np.arange(ids.shape[1], dtype=float))


def _evaluate(ids, scores, truth, *, recall_ks=(), **options):
    return evaluate(
        ids,
        scores,
        truth,
        train_label_counts=[1, 1, 1],
        n_train_points=9,
        recall_ks=recall_ks,
        **options,
    )


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
