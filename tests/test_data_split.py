"""Splits that keep twins together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from longtail.data import TextColumn, held_out_split
from longtail.errors import InputError


def twins(n_groups, seed=0):
    """Texts in groups of one to four that differ in case, order and punctuation only."""
    rng = np.random.default_rng(seed)
    texts, groups = [], []
    for group in range(n_groups):
        words = [f"w{group}", *(f"v{i}" for i in rng.integers(0, 50, 4))]
        for _ in range(rng.integers(1, 5)):
            shuffled = rng.permutation(words)
            texts.append(", ".join(shuffled).upper() if rng.random() < 0.5 else " ".join(shuffled))
            groups.append(group)
    return texts, np.array(groups)


def test_twins_stay_together_and_the_fraction_is_met():
    texts, groups = twins(500)
    train, held_out = held_out_split(TextColumn.from_strings(texts), 0.2, seed=3)
    assert not set(groups[train]) & set(groups[held_out])
    assert sorted([*train, *held_out]) == list(range(len(texts)))
    assert abs(len(held_out) - 0.2 * len(texts)) <= 4


def test_seed_decides():
    texts, _ = twins(100)
    first, again, other = (held_out_split(texts, 0.3, seed=seed)[1] for seed in (1, 1, 2))
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


def test_sparse_rows_with_the_same_heavy_features_stay_together():
    base = random_array((200, 5000), density=0.01, rng=np.random.default_rng(0), format="csr")
    noisy = base.copy()
    noisy.data = noisy.data * 2 + 1  # the order of weights stays
    both = csr_array(np.concatenate([base.toarray(), noisy.toarray()]))
    train, held_out = held_out_split(both, 0.25, seed=0)
    assert not set(train % 200) & set(held_out % 200)
    assert len(held_out) == 100


def test_rows_of_ones_are_told_apart_by_rare_features():
    # 20 features that all rows share, then one of each row's own.
    rows = csr_array(np.hstack([np.ones((10, 20)), np.eye(10)]))
    _, held_out = held_out_split(rows, 0.3, seed=0)
    assert len(held_out) == 3


def test_a_group_too_large_to_set_aside_blocks_nothing():
    texts = ["twin"] * 4 + [f"text {i}" for i in range(6)]
    train, held_out = held_out_split(texts, 0.3, seed=0)
    assert len(held_out) == 3
    assert set(range(4)) <= set(train)


def test_a_text_that_comes_again_and_again_is_on_both_sides():
    texts = ["a query that many ask"] * 50 + [f"text {i}" for i in range(50)]
    _train, held_out = held_out_split(texts, 0.2, seed=0)
    assert len(held_out) == 20
    assert 4 <= np.count_nonzero(held_out < 50) <= 16


def test_a_few_texts_that_come_often_stay_together():
    texts = ["a book of many editions"] * 8 + [f"text {i}" for i in range(192)]
    for seed in range(10):
        _, held_out = held_out_split(texts, 0.2, seed=seed)
        assert np.count_nonzero(held_out < 8) in {0, 8}


def test_rows_of_few_features_are_no_single_group():
    rows = csr_array(np.random.default_rng(0).random((40, 3)) + 1)
    _, held_out = held_out_split(rows, 0.25, seed=0)
    assert len(held_out) == 10


@pytest.mark.parametrize("fraction", [0, 1, -0.1, float("nan")])
def test_fraction_out_of_range(fraction):
    with pytest.raises(InputError, match="between 0 and 1"):
        held_out_split(["a", "b"], fraction, seed=0)


@pytest.mark.parametrize("texts", [[], ["a"], ["a", "A", "a."]])
def test_what_cannot_be_split(texts):
    with pytest.raises(InputError, match="cannot be split"):
        held_out_split(texts, 0.5, seed=0)
