"""The kernels that build graphs, each held to a plain numpy twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from longtail.index.biased import as_bias
from longtail.kernels.arrays import read_only
from longtail.kernels.byte_codes import (
    at_least,
    byte_codes,
    code_unit,
    lowest_bit,
    new_queries,
    products_of_listed,
    products_of_range,
    sums_of_ranges,
    write_query,
)
from longtail.kernels.graph_building import (
    add_reverse_edges,
    hash_rows,
    mark_reachable,
    project_rows,
    prune_candidates,
    reverse_edges,
    write_neighbours,
)
from longtail.kernels.nearest_codes import LOWEST, empty_keys, join_clusters, nearest_rows, row_of
from longtail.kernels.tile_products import (
    MOST_TILED,
    N_TILED,
    begin_tiles,
    end_tiles,
    has_tiles,
    products_of_tiles,
)
from small_graphs import random_graph
from small_numbers import whole_numbers

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def random_vectors(random, n, d):
    """Vectors of different lengths; a few have many twins, so that there are ties."""
    rows = random.standard_normal((n, d)) * random.random((n, 1))
    return read_only(rows[random.integers(0, n, n)], np.float32)


def coded(vectors, unit=None, bias=None):
    rows, own = np.arange(len(vectors), dtype=np.int32), as_bias(bias, len(vectors))
    return byte_codes(vectors, own, code_unit(vectors, own) if unit is None else unit, rows)


def products_twin(some, others):
    """Products as the module says: whole sums, times both factors at once, biases, cut off."""
    levels = [vectors.codes.astype(np.int64) - 64 for vectors in (some, others)]
    factors = some.factors[:, None] * others.factors
    biases = some.biases[:, None] * others.biases
    return ((levels[0] @ levels[1].T).astype(np.float32) * factors + biases).astype(np.int32)


def best_of(products, row, others, capacity):
    """The keys of the best of some rows, best first, ties by smaller row."""
    best = sorted((-int(products[row, other]), int(other)) for other in others)[:capacity]
    return [(-value << 32) + 2**31 - 1 - other for value, other in best]


def real(keys):
    return [int(key) for key in keys if key != LOWEST]


def diverse_twin(products, keys, width):
    chosen = []
    for key in keys:
        value, row = key >> 32, row_of(key)
        if len(chosen) < width and all(products[row_of(c), row] < value for c in chosen):
            chosen.append(key)
    keys = (chosen + [key for key in keys if key not in chosen])[:width]
    return [int(row_of(key)) for key in keys]


@few
@given(seeds, st.integers(1, 20), st.integers(1, 150))
def test_byte_codes(seed, n, d):
    vectors = random_vectors(np.random.default_rng(seed), n, d)
    rows = np.arange(n, dtype=np.int32)[::-1].copy()
    codes, factors, biases = byte_codes(vectors, as_bias(None, n), 3, rows)
    assert (biases == 0).all()
    assert codes.shape == (n, -(-d // 64) * 64)
    assert codes.ctypes.data % 64 == 0
    assert (codes[:, d:] == 64).all()
    own = vectors[::-1].astype(np.float64)
    levels = codes[:, :d] - 64.0
    steps = np.abs(own).max(axis=1, keepdims=True) / 63
    np.testing.assert_allclose(levels * steps, own, atol=0.501 * steps.max())
    assert (np.abs(levels).max(axis=1) == 63).all()
    # The factor makes the product with the vector itself right.
    found = (levels * own).sum(axis=1) * factors
    np.testing.assert_allclose(found, 3 * np.square(own).sum(axis=1), rtol=1e-4)


@few
@given(seeds, st.integers(1, 20), st.integers(1, 150))
def test_a_bias_is_a_further_number(seed, n, d):
    random = np.random.default_rng(seed)
    vectors = random_vectors(random, n, d)
    bias = read_only(3 * random.standard_normal(n), np.float32)
    longer = read_only(np.concatenate([vectors, bias[:, None]], axis=1), np.float32)
    unit = code_unit(vectors, bias)
    np.testing.assert_allclose(unit, code_unit(longer, as_bias(None, n)), rtol=1e-5)
    rows = random.permutation(n).astype(np.int32)
    found, alone = (byte_codes(vectors, own, unit, rows) for own in (bias, as_bias(None, n)))
    np.testing.assert_array_equal(found.codes, alone.codes)
    np.testing.assert_array_equal(found.factors, alone.factors)
    np.testing.assert_allclose(found.biases, unit * bias[rows])


def test_codes_of_zeros():
    zeros = read_only(np.zeros((2, 3)), np.float32)
    assert code_unit(zeros, as_bias(None, 2)) == 0
    codes, factors, _ = coded(zeros)
    assert (codes == 64).all()
    assert (factors == 0).all()


@few
@given(seeds, st.integers(1, 20), st.integers(1, 300))
def test_products_of_codes_are_near_those_of_vectors(seed, n, d):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((n, d))
    vectors = read_only(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
    codes = coded(vectors)
    np.testing.assert_allclose(products_twin(codes, codes) / 2**28, vectors @ vectors.T, atol=0.04)
    near = read_only(vectors[0] + 0.01 * random.standard_normal((n, d)) / np.sqrt(d), np.float32)
    codes = coded(near, code_unit(vectors, as_bias(None, len(vectors))))
    np.testing.assert_allclose(products_twin(codes, codes) / 2**28, near @ near.T, atol=8e-4)


@njit
def range_products(vectors, which, start, stop):
    queries = new_queries(len(vectors.codes), vectors.codes.shape[1])
    for row in range(len(vectors.codes)):
        write_query(vectors, row, queries, row)
    products = np.zeros((4, (stop - start + 3) // 4 * 4), np.int32)
    products_of_range(queries, which, 1, vectors, start, stop, products)
    return products


@njit
def tile_products(vectors, which, start, stop):
    queries = new_queries(len(vectors.codes), vectors.codes.shape[1])
    for row in range(len(vectors.codes)):
        write_query(vectors, row, queries, row)
    products = np.zeros((4, stop - start), np.int32)
    before = np.zeros(64, np.uint8)
    begin_tiles(before)
    products_of_tiles(queries, which, 1, vectors, start, stop, products)
    end_tiles(before)
    return products


@njit
def listed_products(vectors, query, rows):
    queries = new_queries(1, vectors.codes.shape[1])
    write_query(vectors, query, queries, 0)
    products = np.zeros((len(rows) + 3) // 4 * 4, np.int32)
    products_of_listed(queries, vectors, rows, len(rows), products)
    return products


@few
@given(seeds, st.integers(1, 30), st.integers(1, 300), st.data())
def test_products(seed, n, d, data):
    random = np.random.default_rng(seed)
    vectors = coded(random_vectors(random, n, d), bias=random.random(n) - 0.3)
    expected = products_twin(vectors, vectors)
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    which = random.integers(0, n, 5).astype(np.int32)
    found = range_products(vectors, which, start, stop)[:, : stop - start]
    np.testing.assert_array_equal(found, expected[which[1:], start:stop])
    rows = random.integers(0, n, data.draw(st.integers(1, 10))).astype(np.int32)
    found = listed_products(vectors, 0, rows)[: len(rows)]
    np.testing.assert_array_equal(found, expected[0, rows])


@pytest.mark.skipif(not has_tiles(), reason="the processor has no tiles of bytes")
@few
@given(seeds, st.integers(N_TILED, 90), st.integers(1, 300) | st.just(MOST_TILED), st.data())
def test_products_of_tiles(seed, n, d, data):
    random = np.random.default_rng(seed)
    vectors = coded(random_vectors(random, n, d), bias=random.random(n) - 0.3)
    start = data.draw(st.integers(0, n - N_TILED))
    stop = data.draw(st.integers(start + N_TILED, n))
    which = random.integers(0, n, 5).astype(np.int32)
    found = tile_products(vectors, which, start, stop)
    expected = products_twin(vectors, vectors)
    np.testing.assert_array_equal(found, expected[which[1:], start:stop])


@njit
def bits_at_least(numbers, row, least):
    mask = at_least(numbers, row, least)
    bits = [np.int64(-1)]
    while mask != np.uint64(0):
        bits.append(lowest_bit(mask))
        mask &= mask - np.uint64(1)
    return bits[1:]


@few
@given(seeds, st.integers(-5, 5))
def test_at_least(seed, least):
    numbers = np.random.default_rng(seed).integers(-6, 7, (3, 70)).astype(np.int32)
    for row in range(3):
        expected = np.flatnonzero(numbers[row, :64] >= least)
        assert bits_at_least(numbers, row, np.int32(least)) == expected.tolist()


@few
@given(
    seeds,
    st.integers(1, 150),
    st.integers(1, 150) | st.integers(2040, 2060) | st.integers(4090, 4200),
    st.integers(1, 20),
)
def test_nearest_rows(seed, n, n_others, capacity):
    random = np.random.default_rng(seed)
    vectors, others = (coded(random_vectors(random, size, 5), 100) for size in (n, n_others))
    start = n // 3
    keys = empty_keys(n - start, capacity)
    by_tiles = bool(random.integers(2)) and has_tiles()
    nearest_rows(vectors, start, n, others, keys, by_tiles)
    products = products_twin(vectors, others)
    for row in range(start, n):
        expected = best_of(products, row, range(n_others), keys.shape[1] - 1)
        assert real(keys[row - start, 1:]) == expected


@few
@given(seeds, st.integers(2, 400), st.integers(1, 12), st.integers(1, 12))
def test_join_clusters(seed, n, n_clusters, n_probes):
    random = np.random.default_rng(seed)
    vectors = coded(random_vectors(random, n, 5))
    starts = np.sort(np.concatenate([[0, n], random.integers(0, n + 1, n_clusters - 1)]))
    first = n // 4
    probes, keys = empty_keys(n - first, n_probes), empty_keys(n - first, 16)
    products = products_twin(vectors, vectors)
    expected = []
    for row in range(first, n):
        count = min(int(random.integers(1, n_probes + 1)), n_clusters)
        drawn = random.permutation(n_clusters)[:count]
        probes[row - first, 1 : 1 + count] = (5 << 32) + 2**31 - 1 - drawn
        others = {other for c in drawn for other in range(starts[c], starts[c + 1])} - {row}
        expected.append(best_of(products, row, others, 16))
    by_tiles = bool(random.integers(2)) and has_tiles()
    join_clusters(vectors, starts, probes, first, keys, by_tiles)
    assert [real(row[1:]) for row in keys] == expected


@few
@given(seeds, st.integers(2, 40), st.integers(1, 6))
def test_prune_candidates(seed, n, width):
    random = np.random.default_rng(seed)
    vectors = coded(random_vectors(random, n, 3))
    products = products_twin(vectors, vectors)
    start = n // 3
    near, far = empty_keys(n - start, 8), np.full((n - start, 8), -1, np.int32)
    edges = np.zeros((n, width), np.int32)
    expected = []
    for row in range(start, n):
        others = [other for other in random.permutation(n)[:8] if other != row]
        near_keys = best_of(products, row, others, 8)
        near[row - start, 1 : 1 + len(near_keys)] = near_keys
        some_far = random.permutation(n)[: min(n // 2, 8)]
        far[row - start, : len(some_far)] = some_far
        both = {*others, *some_far.tolist()} - {row}
        expected.append(diverse_twin(products, best_of(products, row, both, 16), width))
    prune_candidates(vectors, start, near, far, edges)
    assert [row[row >= 0].tolist() for row in edges[start:]] == expected
    assert (edges[:start] == 0).all()


@few
@given(seeds, st.integers(2, 30), st.integers(1, 5))
def test_reverse_edges(seed, n, width):
    random = np.random.default_rng(seed)
    graph = random_graph(random, n, width)
    starts, pointing = reverse_edges(graph)
    for row in range(n):
        expected = np.flatnonzero((graph == row).any(axis=1))[::-1]
        np.testing.assert_array_equal(pointing[starts[row] : starts[row + 1]], expected)


@few
@given(seeds, st.integers(2, 60), st.integers(1, 5))
def test_add_reverse_edges(seed, n, width):
    random = np.random.default_rng(seed)
    graph = random_graph(random, n, width)
    vectors = coded(random_vectors(random, n, 3))
    products = products_twin(vectors, vectors)
    edges = graph.copy()
    every_row = np.arange(n, dtype=np.int32)
    add_reverse_edges(vectors, every_row, n // 3, n, edges, *reverse_edges(graph))
    capacity = -(-4 * width // 8) * 8
    for row in range(n // 3, n):
        others = {*graph[row].tolist(), *np.flatnonzero((graph == row).any(axis=1)).tolist()} - {-1}
        expected = diverse_twin(products, best_of(products, row, others, capacity), width)
        assert edges[row][edges[row] >= 0].tolist() == expected


@few
@given(seeds, st.integers(2, 30), st.integers(1, 5))
def test_write_neighbours(seed, n, width):
    random = np.random.default_rng(seed)
    graph = random_graph(random, n, width)
    nodes = random.permutation(n).astype(np.int32)
    neighbours = np.empty((n, width), np.int32)
    write_neighbours(graph, nodes, neighbours)
    np.testing.assert_array_equal(neighbours[nodes], np.where(graph >= 0, nodes[graph], -1))


@few
@given(seeds, st.integers(1, 30), st.integers(1, 70), st.integers(1, 5))
def test_sums_of_ranges(seed, n, d, n_ranges):
    random = np.random.default_rng(seed)
    vectors, bias = random_vectors(random, n, d), random.random(n).astype(np.float32)
    starts = np.sort(np.concatenate([[0, n], random.integers(0, n + 1, n_ranges - 1)]))
    sums = np.empty((n_ranges, 1 + d), np.float32)
    sums_of_ranges(coded(vectors, 1, bias), starts, sums)
    for group, (of_bias, *found) in enumerate(sums):
        own = slice(starts[group], starts[group + 1])
        np.testing.assert_allclose(found, vectors[own].sum(axis=0), atol=0.03 * n)
        np.testing.assert_allclose(of_bias, bias[own].sum(), rtol=1e-4)


@few
@given(seeds, st.integers(1, 50), st.integers(1, 20))
def test_hash_rows_tells_rows_apart(seed, n, d):
    matrix = whole_numbers(np.random.default_rng(seed), n, d)
    hashes = hashes_of(matrix.view(np.uint32))
    equal_hash = hashes[:, None] == hashes
    equal_row = (matrix.view(np.uint32)[:, None] == matrix.view(np.uint32)).all(axis=2)
    np.testing.assert_array_equal(equal_hash, equal_row)


def hashes_of(bits):
    hashes = np.zeros(len(bits), np.uint64)
    hash_rows(bits, 0, len(bits), hashes)
    return hashes


def hash_row_twin(bits):
    state = 0
    for number in bits.tolist():
        state = ((state ^ number) * 0xBF58476D1CE4E5B9) % 2**64
        state ^= state >> 29
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    return state


@few
@given(seeds, st.integers(1, 20))
def test_hash_rows(seed, d):
    bits = whole_numbers(np.random.default_rng(seed), 4, d).view(np.uint32)
    assert hashes_of(bits).tolist() == [hash_row_twin(row) for row in bits]


@few
@given(seeds, st.integers(1, 30))
def test_project_rows(seed, n):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 5)
    rows = random.permutation(n).astype(np.int32)
    places = np.empty(n, np.float32)
    project_rows(vectors, rows, vectors[0].copy(), 0, n, places)
    products = vectors[rows].astype(int) @ vectors[0].astype(int)
    np.testing.assert_array_equal(places, products)


@few
@given(seeds, st.integers(1, 30))
def test_mark_reachable(seed, n):
    random = np.random.default_rng(seed)
    neighbours = random_graph(random, n, 2).copy()
    is_reached = np.zeros(n, np.bool_)
    mark_reachable(neighbours, 0, is_reached, np.empty(n, np.int32))
    reached = {0}
    while new := {int(o) for node in reached for o in neighbours[node] if o >= 0} - reached:
        reached |= new
    assert set(np.flatnonzero(is_reached).tolist()) == reached
