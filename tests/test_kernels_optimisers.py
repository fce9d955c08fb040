"""The optimiser kernels, each held to a plain numpy twin."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.optimisers import adagrad_of_sums, adagrad_rows, adam_rows
from longtail.kernels.split_rows import join_rows, split_rows
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


@few
@given(seeds, st.integers(1, 12), st.integers(1, 40))
def test_split_rows(seed, n_rows, dimension):
    random = np.random.default_rng(seed)
    numbers = np.ldexp(
        random.standard_normal((n_rows, dimension)), random.integers(-30, 30, dimension)
    ).astype(np.float32)
    numbers[random.random(numbers.shape) < 0.1] = 0
    before, halves = numbers.copy(), numbers.view(np.uint16)
    split_rows(numbers, halves, 0, n_rows)
    upper = numbers_in(halves[:, :dimension])
    assert (np.abs(upper - before) <= np.abs(before) * 2.0**-8).all()
    elsewhere = np.empty_like(before)
    join_rows(halves, 0, n_rows, elsewhere)
    np.testing.assert_array_equal(elsewhere, before)
    join_rows(halves, 0, n_rows, numbers)
    np.testing.assert_array_equal(numbers, before)


@few
@given(seeds, st.integers(0, 12), st.integers(1, 40), st.booleans())
def test_adagrad_of_sums(seed, n_touched, dimension, is_half):
    table, batches = drawn(seed, n_touched, dimension)
    sums = np.zeros(12, np.float32)
    expected, expected_sums = table.astype(np.float64), sums.astype(np.float64)
    halves = table.view(np.uint16)
    split_rows(table, halves, 0, 12)
    random = np.random.default_rng(seed)
    for rows, _ in batches:
        counts = random.integers(0, 4, len(rows))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        members = random.integers(0, 5, counts.sum()).astype(np.int32)
        weights = random.standard_normal(counts.sum()).astype(np.float32)
        slopes = random.standard_normal((5, dimension)).astype(np.float32)
        stored = bits_of(slopes) if is_half else slopes
        slopes = numbers_in(stored) if is_half else slopes
        bags = (rows, starts, members, weights, stored)
        adagrad_of_sums(halves, sums, *bags, 0.1, 1e-8, 0, len(rows))
        gradient = np.zeros((len(rows), dimension))
        of_row = np.repeat(np.arange(len(rows)), counts)
        np.add.at(gradient, of_row, weights[:, None].astype(float) * slopes[members])
        adagrad_twin(expected, expected_sums, rows, gradient, 0.1, 1e-8)
    np.testing.assert_allclose(sums, expected_sums, **close)
    join_rows(halves, 0, 12, table)
    np.testing.assert_allclose(table, expected, rtol=1e-3, atol=1e-5)


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
