"""The kernels that look at sixteen places at once, and what sorts by digits, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from longtail.kernels.arrays import read_only
from longtail.kernels.byte_rows import SplitQuery, products_of_bytes, split_query, split_width
from longtail.kernels.digit_sort import N_DIGITS, sort_by_digits
from longtail.kernels.packed_ids import pack_ids
from longtail.kernels.rows import Rows, quantise_rows
from longtail.kernels.sparse_lanes import N_MORE_SLOTS, add_scaled, add_to_slots, gathered_sum
from longtail.kernels.walk_lanes import insert_products, keep_unseen_edges

SEEDS = st.integers(0, 10_000)
FEW = settings(max_examples=25, deadline=None)


@njit
def write_byte_products(query, rows, listed, n, products):
    products_of_bytes(query, rows.values, rows.scales, listed, n, products)


@FEW
@given(seed=SEEDS, size=st.integers(1, 200), n=st.integers(1, 11))
def test_products_of_bytes(seed, size, n):
    random = np.random.default_rng(seed)
    vectors = read_only(random.standard_normal((12, size)), np.float32)
    codes, scales = np.empty(vectors.shape, np.int8), np.empty(12, np.float32)
    quantise_rows(vectors, 0, len(vectors), codes, scales)
    rows = Rows(read_only(codes, np.int8), read_only(scales, np.float32))
    numbers = codes * scales[:, None]
    point = random.standard_normal(size).astype(np.float32)
    width = split_width(size)
    scale = np.zeros(1, np.float32)
    query = SplitQuery(np.zeros((2, width), np.int8), np.zeros(2, np.int32), scale)
    split_query(point, query)
    held = (128 * query.codes[0].astype(int) + query.codes[1]) * scale[0]
    np.testing.assert_allclose(held[:size], point, atol=0.6 * float(scale[0]))
    listed, products = random.integers(0, 12, n).astype(np.int32), np.empty(16, np.float32)
    write_byte_products(query, rows, listed, n, products)
    np.testing.assert_allclose(products[:n], numbers[listed] @ held[:size], rtol=1e-5, atol=1e-4)


@njit
def keep_edges(ids, first, n_ids, codes, stamps, fresh, n_fresh):
    return keep_unseen_edges(ids, first, n_ids, codes, stamps, fresh, n_fresh)


@FEW
@given(seed=SEEDS, n_nodes=st.sampled_from([60, 70_000]), n_ids=st.integers(0, 40))
def test_unseen_edges(seed, n_nodes, n_ids):
    random = np.random.default_rng(seed)
    nodes = random.choice(n_nodes, n_ids, replace=False)
    padded = np.concatenate([[7], nodes, [-1, 7]])
    codes, stamps = np.zeros((n_nodes, 1), np.uint8), np.zeros(n_nodes + 1, np.int32)
    stamps[-1] = 3
    stamps[nodes[::3]] = 3
    fresh = np.zeros(80, np.int32)
    packed = read_only(pack_ids(padded, n_nodes), np.uint8)
    n = keep_edges(packed, 1, n_ids + 1, read_only(codes, np.uint8), stamps, fresh, 2)
    unseen = [node for i, node in enumerate(nodes.tolist()) if i % 3]
    assert fresh[2:n].tolist() == unseen
    assert (stamps[nodes] == 3).all()
    assert np.count_nonzero(stamps) == n_ids + 1


@njit
def insert_many(keys, nodes, products, n, neighbours, degree):
    return insert_products(keys, nodes, products, n, neighbours, degree)


@FEW
@given(seed=SEEDS, n_blocks=st.integers(1, 8))
def test_a_beam_keeps_the_best(seed, n_blocks):
    random = np.random.default_rng(seed)
    keys = np.full(8 * n_blocks + 1, -(1 << 62))
    keys[0] = 1 << 62
    neighbours = read_only(pack_ids(np.zeros(500, np.int64), 500), np.uint8)
    nodes = random.permutation(500).astype(np.int32)
    products = random.integers(-9, 9, 500).astype(np.int32)
    every = np.int64(products) << 32 | np.int64(nodes) << 1 | 1
    done = 0
    while done < 400:
        n, before = int(random.integers(1, 60)), keys.copy()
        own = slice(done, done + n)
        place = insert_many(keys, nodes[done:].copy(), products[done:].copy(), n, neighbours, 1)
        done += n
        expected = np.sort(every[:done])[::-1][: 8 * n_blocks]
        np.testing.assert_array_equal(keys[1 : 1 + len(expected)], expected)
        changed = np.flatnonzero(np.isin(keys[1:], every[own])) + 1
        assert place == (changed[0] if len(changed) else len(keys))
        assert (keys[:place] == before[:place]).all()


@njit
def add_some(ids, weights, first, after, scale, sums):
    add_scaled(ids, weights, first, after, scale, sums)


@njit
def sum_some(ids, weights, first, after, dense):
    return gathered_sum(ids, weights, first, after, dense)


@njit
def slot_some(ids, weights, first, after, scale, slots, sums):
    add_to_slots(ids, weights, first, after, scale, slots, sums)


def some_entries(random, kind, n_columns, n_bytes):
    """Columns in so many bytes, or int32; weights as they are stored; and both plain."""
    n = int(random.integers(0, 50))
    columns = random.choice(n_columns, n, replace=False)
    ids = read_only(pack_ids(columns, (1 << 8 * n_bytes) - 1), np.uint8)
    if random.random() < 0.2:
        ids = read_only(columns, np.int32)
    weights = random.integers(-100, 100, n).astype(kind)
    stored = weights.view(np.uint16) if kind == np.float16 else weights
    return ids, read_only(stored, stored.dtype), columns, weights.astype(np.float32)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8])
@FEW
@given(seed=SEEDS, n_columns=st.sampled_from([60, 2_000]), n_bytes=st.sampled_from([2, 3, 4]))
def test_sixteen_entries_at_a_time(kind, seed, n_columns, n_bytes):
    random = np.random.default_rng(seed)
    ids, stored, columns, weights = some_entries(random, kind, n_columns, n_bytes)
    first, after = sorted(random.integers(0, len(columns) + 1, 2).tolist())
    own, n_known = slice(first, after), n_columns - 7  # the last columns are beyond all tables
    is_known = columns[own] < n_known
    sums = np.zeros(n_known, np.float32)
    add_some(ids, stored, first, after, np.float32(0.5), sums)
    expected = np.zeros(n_known, np.float32)
    expected[columns[own][is_known]] = 0.5 * weights[own][is_known]
    np.testing.assert_array_equal(sums, expected)

    dense = np.concatenate([expected, [3]]).astype(np.float32)
    total = np.where(is_known, dense[np.minimum(columns[own], n_known)], 3) @ weights[own]
    assert sum_some(ids, stored, first, after, dense) == pytest.approx(total, rel=1e-5, abs=1e-3)

    slots, slotted = np.zeros(n_known + N_MORE_SLOTS, np.uint16), np.zeros(50, np.float32)
    wanted = columns[own][is_known][::2]
    slots[wanted] = 1 + np.arange(len(wanted))
    slot_some(ids, stored, first, after, np.float32(0.5), slots, slotted)
    np.testing.assert_array_equal(slotted[: len(wanted)], expected[wanted])
    assert not slotted[len(wanted) :].any()


@FEW
@given(numbers=st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 700), max_size=60))
def test_a_sort_by_digits(numbers):
    own = np.array([*numbers, 5, 4], np.int32)
    counts = np.empty(N_DIGITS, np.int32)
    sort_by_digits(own, len(numbers), np.empty(70, np.int32), counts)
    assert own.tolist() == [*sorted(numbers), 5, 4]
