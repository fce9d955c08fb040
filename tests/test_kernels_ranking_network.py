"""The passes between the products of a ranking network against plain numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.ranking_network import (
    activate,
    pass_back,
    pass_back_last,
    score,
    write_ranking_slopes,
)

FEW = settings(max_examples=30, deadline=None)
SEEDS = st.integers(0, 10_000)
SIZES = st.integers(1, 9)
DROPOUTS = st.sampled_from([0.0, 0.1, 0.6])


def numbers(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


@FEW
@given(SEEDS, SIZES, SIZES, SIZES, DROPOUTS)
def test_units_are_cut_and_dropped_and_slopes_pass_where_they_are_not(
    seed, n, size, n_units, dropout
):
    random = np.random.default_rng(seed)
    before, biases = numbers(random, n * size, n_units), numbers(random, n, n_units)
    last = numbers(random, n_units)
    drawn = random.random((n, n_units), np.float32)
    units = before.copy()
    activate(units, biases, drawn, dropout)
    factors = np.repeat((drawn >= dropout) / (1 - dropout), size, axis=0)
    expected = np.maximum(before + np.repeat(biases, size, axis=0), 0) * factors
    np.testing.assert_allclose(units, expected, rtol=1e-5, atol=1e-6)

    slopes, to_units = numbers(random, n * size), np.empty_like(units)
    to_last, to_bias = np.empty((2, n_units), np.float32)
    pass_back_last(slopes, units, last, dropout, to_units, to_last, to_bias)
    passed = np.where(units > 0, slopes[:, None] * last / (1 - dropout), 0)
    np.testing.assert_allclose(to_units, passed, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(to_last, slopes @ units, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(to_bias, passed.sum(axis=0), rtol=1e-4, atol=1e-4)

    back, to_biases = numbers(random, n * size, n_units), np.empty((n, n_units), np.float32)
    expected = np.where(units > 0, back / (1 - dropout), 0)
    pass_back(back, units, dropout, to_biases)
    np.testing.assert_allclose(back, expected, rtol=1e-5)
    summed = expected.reshape(n, size, n_units).sum(axis=1)
    np.testing.assert_allclose(to_biases, summed, rtol=1e-4, atol=1e-4)


@FEW
@given(SEEDS, SIZES, SIZES)
def test_logits_are_products_with_the_last_weights(seed, n, n_units):
    random = np.random.default_rng(seed)
    units, last, logits = numbers(random, n, n_units), numbers(random, n_units), np.empty(n, "f4")
    score(units, last, logits)
    np.testing.assert_allclose(logits, units @ last, rtol=1e-4, atol=1e-5)


def slopes_of_one(logits, is_true, counts):
    """Return the slopes of one point, not divided by the number of points."""
    exponents = np.where(is_true, 0, counts * np.exp(logits.astype(np.float64)))
    of_false = exponents.sum()
    of_true = of_false / (np.exp(logits.astype(np.float64)) + of_false) * is_true
    of_true /= np.sqrt(max(is_true.sum(), 1))
    if of_false == 0:
        return -of_true
    return exponents / of_false * of_true.sum() - of_true


@FEW
@given(SEEDS, SIZES, st.integers(1, 40), st.sampled_from([1.0, 30.0]))
def test_slopes_are_those_of_the_decoupled_softmax(seed, n, size, spread):
    random = np.random.default_rng(seed)
    logits = spread * numbers(random, n, size)
    is_real = random.random((n, size)) < 0.8
    is_true = is_real & (random.random((n, size)) < 0.3)
    counts = is_real * random.integers(1, 9, (n, size))
    with np.errstate(divide="ignore"):
        log_counts = np.log(counts).astype(np.float32)
    slopes = np.empty_like(logits)
    write_ranking_slopes(logits, is_true, log_counts, slopes)
    for i in range(n):
        expected = slopes_of_one(logits[i], is_true[i], counts[i]) / n
        np.testing.assert_allclose(slopes[i], expected, rtol=1e-4, atol=1e-6)
    assert not slopes[~is_real].any()
    assert not slopes[~is_true.any(axis=1)].any()
