"""Square roots of ready-made features: when they are taken, and that a model remembers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import longtail
from longtail import LongtailClassifier
from longtail.data.damping import chosen_power, unit_rows_of_power
from longtail.data.point_input import PointInput

few = settings(max_examples=25, deadline=None)


@few
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.5, 2.0]))
def test_unit_rows_of_power(seed, power):
    random = np.random.default_rng(seed)
    dense = random.standard_normal((6, 5)) * (random.random((6, 5)) < 0.6)
    dense[2] = 0
    expected = np.sign(dense) * np.abs(dense) ** power
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-9)
    matrix = csr_array(dense.astype(np.float32))
    before = matrix.data.copy()
    found = unit_rows_of_power(matrix, power)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-5)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(matrix.data, before)


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0, 1000.0])
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.5e19, 1e38])
def test_no_power_is_too_much_for_a_row(power, scale):
    """Raised as they are, such numbers are 0 or infinite in 32 bits."""
    shares = np.array([1, -0.999, 0])
    expected = np.sign(shares) * np.abs(shares) ** power
    row = csr_array((shares * scale)[None].astype(np.float32))
    found = unit_rows_of_power(row, power).toarray()[0]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), rtol=1e-3)


def bursty(n_points=200, seed=0, *, most=2_000.0, topic=1.0):
    """Points of a topic a label, and words that say nothing, some of them very often."""
    random = np.random.default_rng(seed)
    topics = np.arange(n_points) % 5
    features = topic * np.eye(5)[topics]
    noise = (random.random((n_points, 20)) < 0.2) * most ** random.random((n_points, 20))
    return csr_array(np.hstack([features, noise]).astype(np.float32)), csr_array(np.eye(5)[topics])


@pytest.mark.parametrize(("most", "expected"), [(2_000.0, 0.25), (1.5, 1.0)])
def test_roots_where_a_few_large_numbers_hide_the_rest(most, expected):
    assert chosen_power(*bursty(most=most), seed=0) == expected


def test_no_more_is_damped_than_helps():
    """Of the topic's word there are more than of the others, but less than of the noise."""
    random = np.random.default_rng(0)
    topics = np.arange(1_000) % 20
    features = 1.0 + (random.random((1_000, 20)) < 0.5)
    features[np.arange(1_000), topics] = 8
    noise = (random.random((1_000, 40)) < 0.1) * 60.0
    counts = csr_array(np.hstack([features, noise]).astype(np.float32))
    assert chosen_power(counts, csr_array(np.eye(20)[topics]), seed=0) == 0.5


@pytest.mark.parametrize(
    "change",
    [
        lambda features: features.sign(),  # all alike: nothing to damp
        lambda features: features - 0.01 * features.sign() - features.astype(bool) * 1.0,
        lambda features: features * 0,
        lambda features: features[:1],
        lambda features: features[:0],
    ],
)
def test_numbers_as_they_are(change):
    features, labels = bursty()
    features = csr_array(change(features)).astype(np.float32)
    features.eliminate_zeros()
    assert chosen_power(features, labels[: features.shape[0]], seed=0) == 1


def test_a_model_remembers(tmp_path):
    features, labels = bursty()
    model = LongtailClassifier(dimension=8, epochs=1).fit(features, labels)
    assert model.predictor_.reads.power == 0.25
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert again.reads.power == 0.25
    for ours, theirs in zip(
        model.predict_topk(features[:20]), again.predict_topk(features[:20]), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_power_that_was_set_is_kept():
    features, labels = bursty()
    model = LongtailClassifier(dimension=8, epochs=1, feature_power=1.0).fit(features, labels)
    assert model.predictor_.reads.power == 1


def test_a_power_comes_back_from_a_folder():
    assert PointInput.from_config(PointInput(power=0.5).config()) == PointInput(power=0.5)


@pytest.mark.parametrize("scale", [1e-40, 1e-25, 1e20, 3e38])
def test_rows_whose_squares_no_float32_holds(scale):
    rows = np.array([[0.6, 0.8, 0], [0, 0, 0], [1e-3, 0, 0]]) * [[scale], [1], [1]]
    scaled = unit_rows_of_power(csr_array(rows.astype(np.float32))).toarray()
    np.testing.assert_allclose(scaled, [[0.6, 0.8, 0], [0, 0, 0], [1, 0, 0]], rtol=1e-4)
