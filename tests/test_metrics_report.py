"""`evaluate`: the report, pairs that are set aside, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from longtail.errors import InputError
from longtail.metrics import (
    evaluate,
    in_rank_order,
    inverse_propensities,
    ndcg_at_k,
    precision_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
    recall_at_k,
    score_matrix,
    set_aside,
    top_k,
)
from ranked_labels import IDS, SCORES, TRUTH, WEIGHTS, csr, falling


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
        report = _evaluate(ids, scores, csr([[1]], 4), ks=[1, 2])
        assert (report["P@1"], report["P@2"]) == (0.0, 50.0)

    @pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64, bool, np.float16])
    def test_scores_of_any_kind_of_number_are_ranked(self, dtype):
        ids, scores = np.array([[2, 1, 0]]), np.array([[0, 1, 0]]).astype(dtype)
        assert in_rank_order(ids, scores).tolist() == [[1, 0, 2]]

    def test_scores_that_are_no_numbers_are_refused(self):
        with pytest.raises(InputError, match="must hold numbers, got an array of object"):
            in_rank_order(np.array([[1, 0]]), np.array([[None, 1]]))

    @pytest.mark.parametrize("ks", [3, "135", (1, 2.5), (None,), [True]])
    def test_places_that_are_no_numbers_are_refused(self, ks):
        with pytest.raises(InputError, match=r"ks must be whole numbers such as \(1, 3, 5\), got"):
            _evaluate(IDS, SCORES, TRUTH, ks=ks)

    def test_no_places_are_allowed(self):
        assert _evaluate(IDS, SCORES, TRUTH, ks=(), recall_ks=()) == {}

    def test_ties_alone_bring_a_row_into_order(self):
        ids, scores = np.array([[7, 3, 5], [1, 2, 3]]), np.array([[2.0, 2, 1], [3, 2, 1]])
        assert in_rank_order(ids, scores).tolist() == [[3, 7, 5], [1, 2, 3]]

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
        truth = csr([[0], []], 2)
        ids = np.array([[0, 1], [0, 1]])
        assert precision_at_k(ids, truth, 1) == 0.5
        assert ndcg_at_k(ids, truth, 1) == 0.5
        assert recall_at_k(ids, truth, 1) == 0.5
        assert ps_ndcg_at_k(ids, truth, 1, np.ones(2)) == 1.0  # no more was attainable

    def test_no_true_label_at_all(self):
        report = _evaluate(np.array([[0, 1]]), np.array([[2.0, 1.0]]), csr([[]], 3), ks=[1, 2])
        assert set(report.values()) == {0.0}

    def test_labels_that_only_the_truth_or_only_the_model_has(self):
        # The model knows labels 0 to 6, the truth 0 to 8, training counts go to 2.
        ids = np.array([[6, 1], [1, 0]])
        report = _evaluate(ids, falling(ids), csr([[8], [1]], 9), ks=[1])
        assert report["P@1"] == 50.0
        weights = inverse_propensities([1, 1, 1, 0, 0, 0, 0, 0, 0], 9)
        assert report["PSP@1"] == pytest.approx(100 * weights[1] / (weights[1] + weights[8]))
        # Labels past the truth's columns are wrong, never taken for another point's label.
        assert precision_at_k(np.array([[3], [5]]), csr([[2], [0, 2]], 3), 1) == 0.0

    def test_many_points_span_several_chunks(self):
        n_points = 10_000
        ids = np.stack([np.arange(n_points) % 7, np.arange(n_points) % 7 + 7], axis=1)
        truth = csr([[i % 7 + (7 if i % 2 else 0)] for i in range(n_points)], 14)
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
        whole = set_aside(IDS.astype(np.uint32), np.ones(IDS.shape, int), self.pairs)
        assert whole[0].min() == -1
        assert (whole[1][whole[0] < 0] == -np.inf).all()
        assert ids.tolist() == [[3, 0, -1], [0, 2, -1], [2, 3, -1]]
        assert scores.tolist() == [[0.5, 0.4, -np.inf], [0.8, 0.7, -np.inf], [0.5, 0.4, -np.inf]]
        assert IDS[0].tolist() == [1, 3, 0]  # the caller's array is left alone
        assert set_aside(IDS.astype(np.uint64), SCORES, self.pairs)[0].dtype == np.int64

    def test_the_order_of_many_labels_stays(self):
        ids = np.random.default_rng(0).permutation(100)[np.newaxis]
        pairs = np.arange(100) % 7 == 0
        left, _ = set_aside(ids, falling(ids), csr_array(pairs[np.newaxis].astype(float)))
        assert left[0][left[0] >= 0].tolist() == [label for label in ids[0] if label % 7]

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

    def test_a_filter_of_more_points_is_an_error(self):
        with pytest.raises(InputError, match="for 3 points, the predictions for 2"):
            set_aside(IDS[:2], SCORES[:2], self.pairs)

    def test_a_filter_of_another_set_is_an_error(self):
        with pytest.raises(InputError, match="for 2 points, the predictions for 3"):
            set_aside(IDS, SCORES, self.pairs[:2])


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
        with pytest.raises(InputError, match="`truth` is an ndarray, not a sparse matrix"):
            ps_precision_at_k(IDS, TRUTH.toarray(), 1, WEIGHTS)

    def test_truth_with_indices_beyond_it(self):
        broken = TRUTH.copy()
        broken.indices[0] = TRUTH.shape[1]
        with pytest.raises(InputError, match="`truth` is a broken sparse matrix"):
            precision_at_k(IDS, broken, 1)

    @pytest.mark.parametrize("ids", [IDS[0], IDS.astype(float)])
    def test_ids_of_another_kind(self, ids):
        with pytest.raises(InputError, match="label ids as integers"):
            precision_at_k(ids, TRUTH, 1)

    @pytest.mark.parametrize(
        "propensity", [0.55, (0.55,), "0.55,1.5", None, (".5", ".4"), (0.5, None)]
    )
    def test_propensities_are_two_numbers(self, propensity):
        with pytest.raises(InputError, match=r"must be A and B, such as \(0.55, 1.5\)"):
            _evaluate(
                np.array([[0]]), np.ones((1, 1)), csr([[0]], 1), ks=[1], propensity=propensity
            )

    def test_too_few_propensities(self):
        with pytest.raises(InputError, match="`truth` has 5 labels"):
            ps_precision_at_k(IDS, TRUTH, 1, WEIGHTS[:4])

    def test_negative_counts(self):
        with pytest.raises(InputError, match="0 or more"):
            inverse_propensities([3, -1], 10)

    def test_no_training_points(self):
        with pytest.raises(InputError, match="at least 1 training point"):
            inverse_propensities([3, 1], 0)

    @pytest.mark.parametrize(("a", "b"), [(800, 1.5), (np.nan, 1), (-0.5, 1), (0.5, np.inf)])
    def test_propensities_that_are_no_numbers(self, a, b):
        with pytest.raises(InputError, match=r"an A from 0 to 10 and a B above 0"):
            inverse_propensities([3, 1], 10, a, b)


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


def test_a_matrix_in_place_of_ids_is_told_how_it_becomes_ids():
    truth = csr_array(np.eye(3))
    known = {"train_label_counts": [1, 1, 1], "n_train_points": 3, "ks": [1], "recall_ks": []}
    with pytest.raises(InputError, match=r"sparse matrix. Pass ids and scores, .*top_k"):
        evaluate(truth, truth, truth, **known)
    assert evaluate(*top_k(truth, 1), truth, **known)["P@1"] == 100


def test_a_matrix_of_scores_has_the_labels_of_its_predictions():
    ids, scores = np.array([[2, 0], [1, -1]]), np.array([[0.5, 0.25], [0.5, -np.inf]], np.float32)
    matrix = score_matrix(ids, scores, 4)
    assert (matrix.shape, matrix.dtype, matrix.has_sorted_indices) == ((2, 4), np.float32, True)
    assert [part.tolist() for part in top_k(matrix, 2)] == [ids.tolist(), scores.tolist()]
    with pytest.raises(InputError, match="a label 2 among 2 labels"):
        score_matrix(ids, scores, 2)
    with pytest.raises(InputError, match="same shape"):
        score_matrix(ids, scores[:, :1], 4)
    assert (score_matrix(ids.tolist(), scores.tolist(), 4) != matrix).nnz == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([[2, 0], [1]], [[0.5, 0.25], [0.5]], 3), "`ids` cannot be read as an array"),
        (([[2.0, 0.0]], [[0.5, 0.25]], 3), "`ids` must hold label ids as integers"),
        (([[2, 0]], [["a", "b"]], 3), "`scores` must hold numbers"),
        (([[2, 0]], [[0.5, 0.25]], 3.0), r"n_labels must be a whole number, got 3\.0"),
    ],
)
def test_what_makes_no_matrix_of_scores(given, message):
    with pytest.raises(InputError, match=message):
        score_matrix(*given)


@pytest.mark.parametrize("k", [1.0, "1", None, True])
def test_a_place_that_is_no_whole_number_is_refused(k):
    for measure in (lambda: precision_at_k(IDS, TRUTH, k), lambda: top_k(TRUTH, k)):
        with pytest.raises(InputError, match="k must be a whole number, got"):
            measure()
