"""The decoupled softmax's kernel, held to its twin of plain tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.exponential import fast_exp
from longtail.training.threads import training_threads
from longtail.training.unit_labels import LEAST_SLOPE, SampledSlopes
from longtail.training.unit_labels_on_device import decoupled_softmax, sampled

few = settings(max_examples=25, deadline=None)


@few
@given(st.floats(-86, 86, width=32))
def test_fast_exp(x):
    assert fast_exp(np.float32(x)) == pytest.approx(math.exp(x), rel=1e-5)


@pytest.mark.parametrize(("x", "end"), [(-1e6, 2.0**-126), (1e6, 2.0**126)])
def test_fast_exp_stays_finite(x, end):
    assert fast_exp(np.float32(x)) == pytest.approx(end, rel=1e-5)


@few
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 20),
    st.integers(1, 70),
    st.sampled_from([1.0, 20.0]),
    st.integers(1, 3),
)
def test_a_sample_of_slopes_is_that_of_tensor_operations(seed, n, n_pool, scale, n_threads):
    random = np.random.default_rng(seed)
    truth = np.nonzero(random.random((n, n_pool)) < 0.1)
    products = random.uniform(-1, 1, (n, n_pool)).astype(np.float32)
    bias, offsets = (random.uniform(0, 1, size).astype(np.float32) for size in (n_pool, n))
    logits = torch.from_numpy(products * np.float32(scale) + bias)
    places = [torch.from_numpy(part) for part in truth]
    expected_loss, every = decoupled_softmax(logits, *places, scale)
    expected = sampled(every, LEAST_SLOPE, torch.from_numpy(offsets)).numpy()

    with training_threads(n_threads):
        found = SampledSlopes.of(products, bias, scale, *truth, offsets)

    assert found.loss == pytest.approx(expected_loss, rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(found.to_bias, every.sum(dim=0), rtol=1e-3, atol=1e-5)
    slopes = found.by_point.toarray()
    np.testing.assert_allclose(slopes[truth], expected[truth], rtol=1e-4, atol=1e-6)
    is_large = expected > LEAST_SLOPE
    np.testing.assert_allclose(slopes[is_large], expected[is_large], rtol=1e-4)
    # Where a sum passes a multiple by a rounding, a sample may fall on the next label.
    for own, other in zip(slopes.cumsum(axis=1), expected.cumsum(axis=1), strict=True):
        assert np.mean(np.abs(own - other) > 0.1 * LEAST_SLOPE) < 0.1 or len(own) < 12


def test_on_average_each_slope_is_sampled_as_it_is():
    random = np.random.default_rng(0)
    products, bias = random.uniform(-1, 1, (1, 300)).astype(np.float32), np.zeros(300, np.float32)
    first = np.zeros(1, np.int64)
    sums, n_drawn = np.zeros(300), 400
    for offset in (np.arange(n_drawn) + 0.5) / n_drawn:
        offsets = np.array([offset], np.float32)
        drawn = SampledSlopes.of(products, bias, 3.0, first, first, offsets)
        sums += drawn.by_point.toarray()[0]
        assert drawn.by_point.nnz < 34  # of a mass of at most 1
    np.testing.assert_allclose(sums / n_drawn, drawn.to_bias, atol=1.5 * LEAST_SLOPE / n_drawn)


def test_every_slope_has_room_where_a_point_has_many_labels():
    """As many as slopes can add up to: none is known yet, and all but one are true."""
    n_pool = 40
    columns = np.arange(n_pool - 1)
    products, bias = np.zeros((1, n_pool), np.float32), np.zeros(n_pool, np.float32)
    offsets = np.array([0.999], np.float32)
    slopes = SampledSlopes.of(products, bias, 1.0, 0 * columns, columns, offsets)
    assert slopes.by_point.nnz == n_pool
    assert abs(slopes.by_point.sum()) < 1e-4
