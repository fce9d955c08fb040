"""The optimiser kernels, each held to a plain numpy twin."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.half_rows import rounded_at_random
from longtail.kernels.optimisers import adagrad_of_sums, adagrad_rows, adam_rows
from longtail.kernels.random_bits import random_bits
from longtail.training.optimisers import numbers_of

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)
close = {"rtol": 1e-4, "atol": 1e-6}


def adagrad_twin(table, sums, rows, gradient, learning_rate, epsilon):
    """Step in place, all in float64."""
    sums[rows] += (gradient**2).mean(axis=1)
    table[rows] -= learning_rate / (np.sqrt(sums[rows]) + epsilon)[:, np.newaxis] * gradient


def adam_twin(table, means, squares, rows, gradient, step_size, epsilon):
    """Step in place, all in float64."""
    means[rows] = 0.9 * means[rows] + 0.1 * gradient
    squares[rows] = 0.999 * squares[rows] + 0.001 * gradient**2
    table[rows] -= step_size * means[rows] / (np.sqrt(squares[rows]) + epsilon)


def drawn(seed, n_touched, dimension):
    """A table of 12 rows, and three batches that touch some of them."""
    random = np.random.default_rng(seed)
    table = random.standard_normal((12, dimension)).astype(np.float32)
    batches = [
        (
            random.permutation(12)[:n_touched],
            random.standard_normal((n_touched, dimension)).astype(np.float32),
        )
        for _ in range(3)
    ]
    return table, batches


@few
@given(seeds, st.integers(0, 12), st.integers(1, 40))
def test_adagrad_rows(seed, n_touched, dimension):
    table, batches = drawn(seed, n_touched, dimension)
    sums = np.zeros(12, np.float32)
    expected, expected_sums = table.astype(np.float64), sums.astype(np.float64)
    for rows, gradient in batches:
        adagrad_rows(table, sums, rows, gradient, 0.05, 1e-8, 0, n_touched)
        adagrad_twin(expected, expected_sums, rows, gradient.astype(np.float64), 0.05, 1e-8)
    np.testing.assert_allclose(sums, expected_sums, **close)
    np.testing.assert_allclose(table, expected, **close)


def bits_of(numbers):
    """The bits of the nearest bfloat16s."""
    return numbers_of(torch.from_numpy(numbers).to(torch.bfloat16))


def numbers_in(bits):
    """The numbers that bfloat16s stand for."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def spacing_at(numbers):
    """How far the bfloat16s around some numbers are from each other."""
    return 2.0 ** (np.frexp(numbers)[1] - 8)


@few
@given(seeds, st.integers(1, 40))
def test_numbers_rounded_at_random_are_right_on_average(seed, dimension):
    random = np.random.default_rng(seed)
    numbers = random.standard_normal(dimension).astype(np.float32)
    drawn = random.integers(0, 2**32, (200, dimension), np.uint32)
    rounded = numbers_in(
        np.array(
            [[rounded_at_random(*pair) for pair in zip(numbers, row, strict=True)] for row in drawn]
        )
    )
    spacing = spacing_at(numbers)
    assert (np.abs(rounded - numbers) < spacing).all()
    # The standard error of a mean of 200 is at most a 28th of the spacing.
    assert (np.abs(rounded.mean(axis=0) - numbers) < spacing / 5).all()
    exact = numbers_in(bits_of(numbers))
    kept = [rounded_at_random(*pair) for pair in zip(exact, drawn[0], strict=True)]
    np.testing.assert_array_equal(numbers_in(np.array(kept)), exact)


def test_random_bits_are_spread_evenly_and_differ_from_place_to_place():
    bits = np.array([[random_bits(seed, d) for d in range(64)] for seed in range(500)], np.uint32)
    assert len(np.unique(bits)) > 0.999 * bits.size
    share = bits / 2**32
    counts, _ = np.histogram(share, bins=16)
    assert abs(counts / bits.size * 16 - 1).max() < 0.1
    of_neighbours = [np.corrcoef(share[:, :-1].ravel(), share[:, 1:].ravel())[0, 1]]
    of_neighbours.append(np.corrcoef(share[:-1].ravel(), share[1:].ravel())[0, 1])
    assert np.abs(of_neighbours).max() < 0.03


@few
@given(seeds, st.integers(0, 12), st.integers(1, 40), st.booleans())
def test_adagrad_of_sums(seed, n_touched, dimension, is_half):
    table, batches = drawn(seed, n_touched, dimension)
    bits, sums = bits_of(table), np.zeros(12, np.float32)
    expected_sums = sums.astype(np.float64)
    random = np.random.default_rng(seed)
    for step, (rows, _) in enumerate(batches):
        counts = random.integers(0, 4, len(rows))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        members = random.integers(0, 5, counts.sum()).astype(np.int32)
        weights = random.standard_normal(counts.sum()).astype(np.float32)
        slopes = random.standard_normal((5, dimension)).astype(np.float32)
        stored = bits_of(slopes) if is_half else slopes
        slopes = numbers_in(stored) if is_half else slopes
        bags = (rows, starts, members, weights, stored)
        expected, again = numbers_in(bits).astype(np.float64), (bits.copy(), sums.copy())
        adagrad_of_sums(bits, sums, *bags, 0.1, 1e-8, step, 0, len(rows))
        gradient = np.zeros((len(rows), dimension))
        of_row = np.repeat(np.arange(len(rows)), counts)
        np.add.at(gradient, of_row, weights[:, None].astype(float) * slopes[members])
        adagrad_twin(expected, expected_sums, rows, gradient, 0.1, 1e-8)
        errors = np.abs(numbers_in(bits) - expected)
        assert (errors < 1.01 * spacing_at(expected) + 1e-5).all()
        adagrad_of_sums(*again, *bags, 0.1, 1e-8, step, 0, len(rows) // 2)
        adagrad_of_sums(*again, *bags, 0.1, 1e-8, step, len(rows) // 2, len(rows))
        np.testing.assert_array_equal(again[0], bits)
    np.testing.assert_allclose(sums, expected_sums, **close)


def test_many_steps_too_small_for_bfloat16_arrive_on_average():
    bits, sums = bits_of(np.ones((1, 400), np.float32)), np.ones(1, np.float32)
    ones = np.ones(1, np.float32)
    bags = (np.array([0]), np.array([0, 1], np.int32), np.zeros(1, np.int32), ones)
    slopes = np.full((1, 400), 1e-3, np.float32)
    for step in range(300):  # each a fourth of the distance to the next bfloat16 below 1
        adagrad_of_sums(bits, sums, *bags, slopes, 1.0, 1e-8, step, 0, 1)
    assert numbers_in(bits).mean() == pytest.approx(0.7, abs=0.01)


@few
@given(seeds, st.integers(0, 12), st.integers(1, 40))
def test_adam_rows(seed, n_touched, dimension):
    table, batches = drawn(seed, n_touched, dimension)
    means, squares = np.zeros_like(table), np.zeros_like(table)
    state = (table, means, squares)
    expected = [array.astype(np.float64) for array in state]
    for rows, gradient in batches:
        adam_rows(*state, rows, gradient, 0.03, 1e-6, 0, n_touched)
        adam_twin(*expected, rows, gradient.astype(np.float64), 0.03, 1e-6)
    for found, wanted in zip(state, expected, strict=True):
        np.testing.assert_allclose(found, wanted, **close)


def steps(name, table, sums, squares):
    """Return a call of one kernel on a range of the touched rows."""
    if name == "adagrad":
        return lambda *batch: adagrad_rows(table, sums, *batch)
    return lambda *batch: adam_rows(table, squares, squares.copy(), *batch)


@pytest.mark.parametrize("name", ["adagrad", "adam"])
def test_only_the_rows_of_the_range_move(name):
    table = np.ones((8, 3), np.float32)
    step = steps(name, table, np.zeros(8, np.float32), np.zeros((8, 3), np.float32))
    rows = np.array([7, 0, 3, 5])
    step(rows, np.ones((4, 3), np.float32), 0.1, 1e-8, 1, 3)
    moved = np.flatnonzero((table != 1).any(axis=1))
    assert moved.tolist() == [0, 3]
    assert (table[moved] < 1).all()


@pytest.mark.parametrize("name", ["adagrad", "adam"])
def test_a_gradient_of_zero_moves_nothing(name):
    table = np.ones((2, 3), np.float32)
    step = steps(name, table, np.zeros(2, np.float32), np.zeros((2, 3), np.float32))
    step(np.array([0, 1]), np.zeros((2, 3), np.float32), 0.1, 1e-8, 0, 2)
    assert (table == 1).all()


def test_the_first_adagrad_step_has_the_length_of_the_learning_rate():
    table, sums = np.zeros((1, 4), np.float32), np.zeros(1, np.float32)
    gradient = np.full((1, 4), -123, np.float32)
    adagrad_rows(table, sums, np.array([0]), gradient, 0.5, 1e-8, 0, 1)
    np.testing.assert_allclose(table, 0.5, rtol=1e-6)
