"""Dense columns are centred and scaled where they are most of a row, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, hstack

import longtail
from longtail import LongtailClassifier
from longtail.data.dataset import Dataset
from longtail.data.dense_columns import (
    MOST_DEVIATIONS,
    DenseColumns,
    chosen_dense_columns,
    dense_columns,
)
from longtail.data.label_space import LabelSpace
from longtail.data.point_input import PointInput

few = settings(max_examples=25, deadline=None)


def measured(n_points=150, seed=0):
    """Three groups of points, told apart by small numbers beside a year and a constant."""
    random = np.random.default_rng(seed)
    groups = np.arange(n_points) % 3
    small = np.eye(3)[groups] + 0.3 * random.standard_normal((n_points, 3))
    years, same = random.integers(1990, 2027, (n_points, 1)), np.full((n_points, 1), 1e6)
    return np.hstack([small, years, same]).astype(np.float32), np.eye(3)[groups]


def bags(n_points=150, n_words=200, seed=0):
    random = np.random.default_rng(seed)
    return csr_array((random.random((n_points, n_words)) < 0.05).astype(np.float32))


@few
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_what_centred_does(seed, n_dense):
    random = np.random.default_rng(seed)
    rows = random.standard_normal((7, 6)).astype(np.float32) * (random.random((7, 6)) < 0.6)
    columns = np.sort(random.permutation(6)[:n_dense]).astype(np.int32)
    means, deviations = random.standard_normal((2, n_dense)).astype(np.float32)
    deviations = np.abs(deviations) * (random.random(n_dense) < 0.8)
    dense = DenseColumns(columns, means, deviations, 0.5)
    expected = np.hstack([rows, np.full((7, 1), dense.level)])
    for column, mean, deviation in zip(columns, means, deviations, strict=True):
        shares = (rows[:, column] - mean) / deviation if deviation else np.zeros(7)
        expected[:, column] = 0.5 * np.clip(shares, -MOST_DEVIATIONS, MOST_DEVIATIONS)
    found = dense.centred(csr_array(rows))
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-4, atol=1e-5)
    assert found.dtype == np.float32
    assert found.indices.dtype == np.int32
    assert found.has_canonical_format
    alone = dense.centred(csr_array(rows[3:4])).toarray()  # whatever else is in the batch
    np.testing.assert_array_equal(alone, found.toarray()[3:4])


def test_means_and_deviations_are_of_all_points_zeros_included():
    numbers = measured()[0].copy()
    numbers[:, 0] += 5
    numbers[::3, 0] = 0
    numbers[:, 1] = -3e3
    numbers[::2, 1] = np.nextafter(numbers[::2, 1], np.float32(0))  # the same, but for rounding
    found = dense_columns(csr_array(numbers))
    np.testing.assert_allclose(found.means, numbers.mean(axis=0), rtol=1e-3, atol=1e-3)
    expected = numbers.std(axis=0)
    expected[1] = 0
    np.testing.assert_allclose(found.deviations, expected, rtol=1e-3)


def test_columns_that_are_little_of_a_row_once_it_is_raised_are_those_of_bags():
    random = np.random.default_rng(0)
    numbers = np.zeros((60, 41), np.float32)
    numbers[:, 0] = 4  # four fifths of a row's squares, and half of them once roots are taken
    for row in numbers:
        row[1 + random.choice(40, 4, replace=False)] = 1
    assert dense_columns(csr_array(numbers)) is not None
    assert dense_columns(csr_array(numbers), power=0.5) is None


def test_columns_of_measurements_spread_alike():
    features, _ = measured()
    found = dense_columns(csr_array(features)).centred(csr_array(features)).toarray()
    np.testing.assert_allclose(found[:, :4].mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(found[:, :4].std(axis=0), 1, atol=0.02)
    assert not found[:, 4].any()  # the same in all points
    np.testing.assert_allclose(found[:, 5], 2)  # as long as four columns are


def test_a_few_numbers_far_from_all_others_are_no_measure_of_a_column():
    random = np.random.default_rng(0)
    normal = random.standard_normal((500, 4)) + 5
    numbers = normal.copy()
    numbers[::5, 0] = -999
    numbers[::5, 1] = 0  # not stored
    numbers[:, 1] += 1e5 * (np.arange(500) % 5 == 1)
    numbers[:, 2] = np.where(np.arange(500) % 5 == 0, normal[:, 2], 5)  # its quartiles are one
    found = dense_columns(csr_array(numbers.astype(np.float32)))
    without = np.delete(normal[:, 0], np.s_[::5]), np.delete(numbers[:, 1], np.s_[1::5])
    expected = [*without, *numbers[:, 2:].T]
    np.testing.assert_allclose(found.means, [column.mean() for column in expected], rtol=0.05)
    np.testing.assert_allclose(found.deviations, [column.std() for column in expected], rtol=0.1)


def test_a_long_tail_is_cut_before_a_column_is_measured():
    numbers = np.exp(2 * np.random.default_rng(0).standard_normal((500, 1)))
    found = dense_columns(csr_array(numbers.astype(np.float32)))
    lower, middle, upper = np.quantile(numbers, [0.25, 0.5, 0.75])
    shares = (numbers - middle) / ((upper - lower) / 1.349)
    cut = middle + (numbers - middle) / shares * np.minimum(shares, 3)
    cut = cut[np.abs(shares) <= 10]
    np.testing.assert_allclose(found.means, cut.mean(), rtol=1e-4)
    np.testing.assert_allclose(found.deviations, cut.std(), rtol=1e-4)


def test_missing_numbers_hide_nothing():
    random = np.random.default_rng(0)
    numbers = random.standard_normal((600, 2)).astype(np.float32)
    classes = (numbers > 0) @ [1, 2]
    numbers[random.random(numbers.shape) < 0.05] = -999
    model = LongtailClassifier(dimension=16, n_threads=1).fit(numbers[:400], classes[:400])
    assert model.score(numbers[400:], classes[400:]) > 0.85


def test_beside_bags_a_dense_column_is_as_large_as_a_word():
    years = np.random.default_rng(0).integers(1990, 2027, (150, 1)).astype(np.float32)
    features = csr_array(hstack([bags(), years], format="csr"))
    dense = dense_columns(features)
    found = dense.centred(features).toarray()
    assert dense.columns.tolist() == [200]
    np.testing.assert_array_equal(found[:, :200], features.toarray()[:, :200])
    np.testing.assert_allclose(found[:, 200].std(), 1, atol=1e-3)


@pytest.mark.parametrize(
    "features",
    [
        bags(),
        csr_array(hstack([bags(), np.ones((150, 3), np.float32)], format="csr")),  # stop words
        csr_array((5, 3), dtype=np.float32),
        csr_array((0, 3), dtype=np.float32),
    ],
)
def test_bags_stay_as_they_are(features):
    assert dense_columns(features) is None


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e30, 1e38])
def test_numbers_of_any_size(scale):
    features = (measured()[0][:, :3] * scale).astype(np.float32)
    beside = csr_array(hstack([features, bags(n_words=9)], format="csr"))
    for points in (csr_array(features), beside):
        reads = PointInput(dense=dense_columns(points, 0.5))
        lengths = np.linalg.norm(reads.rows(points).toarray(), axis=1)
        np.testing.assert_allclose(lengths, 1, atol=1e-3)


def test_a_column_of_years_hides_nothing():
    features, labels = measured(300)
    model = LongtailClassifier(dimension=16).fit(features[:200], labels[:200])
    assert model.score(features[200:], labels[200:]) > 0.85
    as_given = LongtailClassifier(dimension=16, feature_power=1.0).fit(features[:200], labels[:200])
    assert as_given.predictor_.reads.dense is None
    assert as_given.score(features[200:], labels[200:]) < 0.6


def test_how_far_from_the_mean_a_point_is_counts():
    """Of unit length alone, points on a line through the mean have two directions."""
    numbers = np.random.default_rng(0).random((300, 2)).astype(np.float32)
    numbers[:, 1] = numbers[:, 0]
    classes = np.digitize(numbers[:, 0], [0.25, 0.5, 0.75])
    model = LongtailClassifier(dimension=16).fit(numbers[:200], classes[:200])
    assert model.score(numbers[200:], classes[200:]) > 0.75


def test_a_model_remembers(tmp_path):
    features, labels = measured()
    model = LongtailClassifier(dimension=8, epochs=1).fit(features, labels)
    assert model.n_features_in_ == model.predictor_.n_features == 5
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert again.n_features == 5
    for ours, theirs in zip(
        model.predict_topk(features[:20]), again.predict_topk(features[:20]), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    one_by_one = [again.predict_topk(features[i : i + 1])[1] for i in range(20)]
    np.testing.assert_array_equal(np.concatenate(one_by_one), again.predict_topk(features[:20])[1])


def test_a_label_is_added_by_measurements():
    features, labels = measured(300)
    is_known = labels[:, 2] == 0
    names = np.array(["first", "second", "third"])[labels.argmax(axis=1)]
    known, strange = features[is_known], features[~is_known]
    model = LongtailClassifier(dimension=16).fit(known, [[name] for name in names[is_known]])
    more = model.predictor_.with_labels(["third"], {"third": csr_array(strange[:50])})
    answers = more.predict(csr_array(strange[50:]), k=1)
    assert np.mean([answer[0][0] == "third" for answer in answers]) > 0.8


def beside_noise(n_points=450, seed=0):
    """Three groups of points around directions that two columns tell, and columns of noise."""
    random = np.random.default_rng(seed)
    groups = np.arange(n_points) % 3
    angles = 2 * np.pi * groups / 3
    two = np.column_stack([np.cos(angles), np.sin(angles)])
    noise = 0.3 * random.standard_normal((n_points, 80))
    return np.hstack([two, noise]).astype(np.float32), np.eye(3)[groups]


def test_columns_of_noise_are_not_made_large(tmp_path):
    features, labels = beside_noise()
    assert dense_columns(csr_array(features)) is not None
    model = LongtailClassifier(dimension=16, n_threads=1).fit(features[:300], labels[:300])
    assert model.predictor_.reads == PointInput()
    assert model.score(features[300:], labels[300:]) > 0.85
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    for ours, theirs in zip(
        model.predict_topk(features[:20]), again.predict_topk(features[:20]), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_points_with_much_in_common_are_centred_all_the_same():
    features, labels = beside_noise()
    for shift, is_centred in ((0, False), (20, True)):
        moved = csr_array(np.hstack([features, np.full((len(features), 1), shift)]))
        moved = moved.astype(np.float32)
        dense = chosen_dense_columns(moved, csr_array(labels), seed=0)
        assert (dense is not None) == is_centred


def test_columns_are_chosen_without_labels_and_of_one_point():
    features, _ = beside_noise()
    none = csr_array((len(features), 3))
    assert chosen_dense_columns(csr_array(features), none, seed=0) is not None
    assert chosen_dense_columns(csr_array(features[:1]), none[:1], seed=0) is not None
    assert chosen_dense_columns(csr_array(features[:0]), none[:0], seed=0) is None


def test_zeros_that_are_stored_fill_no_column():
    words = bags()
    stored = csr_array(words.toarray() + 1)
    stored.data -= 1
    labels = csr_array(np.ones((stored.shape[0], 1), np.float32))
    for features in (words, stored):
        dataset = Dataset(None, features.astype(np.float32), labels, LabelSpace(1))
        assert LongtailClassifier()._reads_of(dataset, 1).dense is None
