"""The exact kernels, each held to a plain numpy twin.

Vectors of small whole numbers: their sums are exact, so the twins must agree to the bit, ties and
all.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.arrays import read_only
from longtail.kernels.exact import (
    dot,
    dots_1x4,
    exact_topk,
    insert_sorted,
    products_of_four,
)
from small_numbers import whole_numbers

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


NO_BIAS = read_only([], np.float32)


def exact_topk_twin(queries, vectors, bias, k):
    products = queries @ vectors.T + (bias if len(bias) else 0)
    ids = np.full((len(queries), k), -1)
    similarities = np.full((len(queries), k), -np.inf)
    for row, values in enumerate(products):
        order = np.lexsort((np.arange(len(values)), -values))[:k]
        ids[row, : len(order)] = order
        similarities[row, : len(order)] = values[order]
    return ids, similarities


@few
@given(seeds, st.integers(1, 70))
def test_dot(seed, d):
    vectors = whole_numbers(seed, 5, d)
    products = vectors[1:] @ vectors[0]
    assert dot(vectors[0], vectors[1]) == products[0]
    assert dots_1x4(vectors[0], vectors, 1, 2, 3, 4) == tuple(products)


@few
@given(
    seed=seeds,
    n_queries=st.integers(0, 70),
    n_vectors=st.integers(0, 200),
    d=st.integers(1, 20),
    k=st.integers(1, 12),
    is_biased=st.booleans(),
)
def test_exact_topk(seed, n_queries, n_vectors, d, k, is_biased):
    queries = whole_numbers(seed, n_queries, d)
    vectors = whole_numbers(seed + 1, n_vectors, d)
    ids = np.empty((n_queries, k), np.int32)
    similarities = np.empty((n_queries, k), np.float32)
    bias = whole_numbers(seed + 2, n_vectors) if is_biased else NO_BIAS
    exact_topk(queries, vectors, bias, 0, n_queries, ids, similarities)
    expected_ids, expected_similarities = exact_topk_twin(queries, vectors, bias, k)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(similarities, expected_similarities)


def test_exact_topk_leaves_other_rows_alone():
    vectors = whole_numbers(0, 6, 3)
    ids = np.full((6, 2), 77, np.int32)
    similarities = np.full((6, 2), 77, np.float32)
    exact_topk(vectors, vectors, NO_BIAS, 2, 4, ids, similarities)
    assert (ids[[0, 1, 4, 5]] == 77).all()
    assert (ids[2:4] != 77).all()


@few
@given(st.integers(1, 8), st.lists(st.integers(-3, 3), max_size=20))
def test_insert_sorted(capacity, values):
    ids = np.full(capacity, -1, np.int32)
    similarities = np.full(capacity, -np.inf, np.float32)
    size = 0
    expected = []
    # Descending ids, so that ties have to be put in front.
    for new, value in zip(range(len(values), 0, -1), values, strict=True):
        expected = sorted([*expected, (-value, new)])
        place = expected.index((-value, new))
        expected = expected[:capacity]
        found = insert_sorted(ids, similarities, size, new, np.float32(value))
        assert found == (place if place < capacity else -1)
        size = min(size + 1, capacity)
        assert ids[:size].tolist() == [pair[1] for pair in expected]
        assert similarities[:size].tolist() == [-pair[0] for pair in expected]


@few
@given(seeds, st.integers(1, 20), st.integers(1, 70), st.data())
def test_products_of_four(seed, n_vectors, d, data):
    queries, vectors = whole_numbers(seed, 6, d), whole_numbers(seed + 1, n_vectors, d)
    four = tuple(data.draw(st.lists(st.integers(0, 5), min_size=4, max_size=4)))
    first = data.draw(st.integers(0, n_vectors - 1))
    last = data.draw(st.integers(first + 1, n_vectors))
    products = np.empty((4, last - first + 3), np.float32)
    products_of_four(queries, four, vectors, first, last, products)
    expected = queries[list(four)] @ vectors[first:last].T
    np.testing.assert_array_equal(products[:, : last - first], expected)
