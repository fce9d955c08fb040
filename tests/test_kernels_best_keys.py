"""The largest of many keys, against sorting them all."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from longtail.kernels.best_keys import (
    GROUPS_A_KEY,
    HIGHEST,
    LOWEST,
    add_key,
    cut_full,
    empty_best_keys,
    least_of_groups,
    write_best,
)


@njit
def best_of(keys, n_at_once, n_wanted):
    """Offer keys some at a time to the second of two lists."""
    lists = empty_best_keys(2, n_wanted, n_at_once)
    best, n_written = np.empty(1 + n_wanted, np.int64), 0
    for start in range(0, len(keys), n_at_once):
        size = lists.sizes[1]
        for key in keys[start : start + n_at_once]:
            lists.keys[1, size] = key
            size += 1 if key > lists.least[1] else 0
            n_written += 1 if key > lists.least[1] else 0
        lists.sizes[1] = size
        cut_full(lists, 1, n_wanted)
    write_best(lists, 1, best)
    return best, n_written, lists.sizes[1], lists.least[1]


@njit
def best_one_by_one(keys, n_wanted):
    lists = empty_best_keys(1, n_wanted, 1)
    best = np.empty(1 + n_wanted, np.int64)
    for key in keys:
        if key > lists.least[0]:
            add_key(lists, 0, key, n_wanted)
    write_best(lists, 0, best)
    return best


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(0, 700),
    n_at_once=st.integers(1, 64),
    n_wanted=st.integers(1, 96),
    order=st.sampled_from(["random", "rising", "falling", "saw"]),
)
def test_the_best_keys(seed, n, n_at_once, n_wanted, order):
    random = np.random.default_rng(seed)
    keys = random.choice(4 * n + 1, n, replace=False).astype(np.int64) - n
    if order != "random":
        keys = np.sort(keys)[:: -1 if order == "falling" else 1].copy()
    if order == "saw":
        keys = np.concatenate([keys[::2], keys[1::2]])
    expected = np.full(1 + n_wanted, LOWEST)
    expected[0] = HIGHEST
    largest = np.sort(keys)[::-1][:n_wanted]
    expected[1 : 1 + len(largest)] = largest
    best, n_written, size, least = best_of(keys, n_at_once, n_wanted)
    np.testing.assert_array_equal(best, expected)
    assert (size, least) == (0, LOWEST)
    np.testing.assert_array_equal(best_one_by_one(keys, n_wanted), expected)
    if order == "falling":
        assert n_written <= 2 * n_wanted + n_at_once


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(0, 700),
    n_wanted=st.integers(1, 96),
    largest=st.sampled_from([3, 1000, 2**30 - 1]),
)
def test_least_of_groups(seed, n, n_wanted, largest):
    random = np.random.default_rng(seed)
    values = random.integers(-largest, largest, n, endpoint=True).astype(np.int32)
    groups = np.empty(GROUPS_A_KEY * n_wanted, np.int64)
    found = least_of_groups(values, n_wanted, groups)
    if n < 2 * len(groups):
        assert found == -(2**30)
        return
    maxima = [values[group :: len(groups)].max() for group in range(len(groups))]
    assert found == np.sort(maxima)[-n_wanted]
    assert (values >= found).sum() >= n_wanted
