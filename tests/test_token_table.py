"""Token vectors: a step is taken from the last sums, by any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from longtail.data.bags import Bags
from longtail.data.rows import unit_vectors
from longtail.errors import TrainingError
from longtail.features.token_table import TokenTable
from longtail.kernels.jit import in_background
from longtail.training.chosen_bags import ChosenBags

N_TOKENS, DIMENSION = 50, 24


def some_bags(seed, n_rows=9):
    dense = np.random.default_rng(seed).random((n_rows, N_TOKENS))
    return Bags.of(csr_array(np.where(dense < 0.8, 0, dense), dtype=np.float32))


def a_table(n_threads=1):
    return TokenTable(N_TOKENS, DIMENSION, seed=0, n_threads=n_threads)


def rounded_to_bfloat16(numbers):
    return torch.from_numpy(numbers).to(torch.bfloat16).float().numpy()


def parts_of(points, texts):
    return ChosenBags.of(points, np.array([4, 0, 7])), ChosenBags.of(texts, None)


def test_sums_follow_each_other():
    points, texts = some_bags(0), some_bags(1, 3)
    table = a_table()
    dense = np.concatenate([points.dense(N_TOKENS)[[4, 0, 7]], texts.dense(N_TOKENS)])
    found = table.sums(*parts_of(points, texts))
    np.testing.assert_allclose(found, dense @ table.vectors(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_entries", [None, 5, 2 * DIMENSION])
def test_encodings_may_be_of_the_first_entries_alone(n_entries):
    table, bags = a_table(), some_bags(0).matrix(N_TOKENS)
    bags.data[bags.indptr[3] : bags.indptr[4]] = 0  # a point without a known token
    sums = (bags @ table.vectors())[:, :n_entries]
    expected = unit_vectors(sums)
    found = table.encode(bags, n_entries)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert not found[3].any()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_step_is_that_of_adagrad(n_threads):
    points, texts = some_bags(0), some_bags(1, 3)
    table = a_table(n_threads)
    dense = np.concatenate([points.dense(N_TOKENS)[[4, 0, 7]], texts.dense(N_TOKENS)])
    before = table.vectors()
    table.sums(ChosenBags.of(points, np.array([1])))  # from which no step is taken
    sums = table.sums(*parts_of(points, texts))
    slope = np.random.default_rng(2).standard_normal(sums.shape).astype(np.float32)
    table.step(slope, 0.1)
    gradient = dense.T @ rounded_to_bfloat16(slope)
    length = np.sqrt((gradient**2).mean(axis=1, keepdims=True)) + 1e-8
    expected = before - 0.1 * gradient / length
    # Rounded at random, so that a number may be one bfloat16 off, and the mean is not.
    np.testing.assert_allclose(table.vectors(), expected, rtol=2.0**-7, atol=1e-5)
    assert np.abs((table.vectors() - expected).mean()) < 1e-4


def test_a_table_starts_from_numbers_or_from_what_another_had():
    rows = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    first = TokenTable(3, 4, seed=0, n_threads=1, start=rows)
    np.testing.assert_array_equal(first.vectors(), rounded_to_bfloat16(rows))
    second = TokenTable(3, 4, seed=0, n_threads=1, start=first.encoder.bits)
    assert np.shares_memory(second.encoder.bits, first.encoder.bits)


def test_a_step_needs_sums():
    table = a_table()
    table.sums(ChosenBags.of(some_bags(0), None))
    table.step(np.zeros((9, DIMENSION), np.float32), 0.1)
    with pytest.raises(TrainingError, match="call `sums`"):
        table.step(np.zeros((9, DIMENSION), np.float32), 0.1)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_in_the_background_is_told(n_threads):
    def fail():
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        in_background(fail, n_threads).result()
