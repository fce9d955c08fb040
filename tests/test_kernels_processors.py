"""What is generated for other processors than this one, against what is generated for this one."""

from __future__ import annotations

import sys
from functools import cache

import numba
import numpy as np
import pytest
from numba import njit

from longtail.kernels.arrays import read_only
from longtail.kernels.byte_codes import (
    byte_codes,
    new_queries,
    products_of_listed,
    products_of_range,
    write_query,
)
from longtail.kernels.byte_rows import SplitQuery, products_of_bytes, split_query, split_width
from longtail.kernels.lanes import dense_layer, sum_lanes
from longtail.kernels.packed_codes import pack_rows, packed_products, sum_packed
from longtail.kernels.packed_ids import pack_ids
from longtail.kernels.rows import quantise, quantise_rows
from longtail.kernels.sparse_lanes import N_MORE_SLOTS, add_scaled, add_to_slots, gathered_sum
from longtail.kernels.walk_lanes import keep_unseen_edges


@pytest.fixture(params=["avx2", "none"])
def other(request):
    """What compiles for a processor that has these instructions and no newer ones."""
    features = numba.core.registry.cpu_target.target_context.codegen().magic_tuple()[2]
    if request.param == "avx2" and "+avx2" not in features.split(","):
        pytest.skip("the processor has no such instructions")
    return request.param


@cache
def compiled(function, processor):
    """Return a function of its own for each processor; each is compiled once for all tests."""
    return njit(function)


def both(function, processor, *arguments):
    """Return what a function returns as compiled for the other processor, and for this one."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("longtail.kernels.") and hasattr(module, "has"):
                patch.setattr(module, "has", lambda _, feature: feature == processor)
        found = compiled(function, processor)(*arguments)
    return found, compiled(function, "own")(*arguments)


def range_products(vectors, which):
    queries = new_queries(len(vectors.codes), vectors.codes.shape[1])
    for row in range(len(vectors.codes)):
        write_query(vectors, row, queries, row)
    products, listed = np.zeros((4, 20), np.int32), np.zeros(8, np.int32)
    products_of_range(queries, which, 1, vectors, 3, 20, products)
    products_of_listed(queries, vectors, which, len(which), listed)
    return products[:, :17], listed[:5]


@pytest.mark.parametrize("d", [64, 150])
def test_products_of_vectors(other, d):  # a fixture
    vectors = np.random.default_rng(d).standard_normal((20, d)).astype(np.float32)
    vectors[3] = np.where(vectors[3] > 0, 1, -1)  # sums as large as they become
    bias, every = vectors[:, 0].copy(), np.arange(20, dtype=np.int32)
    codes = byte_codes(vectors, bias, np.float32(999), every)
    which = np.array([0, 7, 3, 19, 2], np.int32)
    found = both(range_products, other, codes, which)
    for there, here in zip(*found, strict=True):
        np.testing.assert_array_equal(there, here)
    levels = codes.codes.astype(int) - 64
    exact = (levels[which[1:]] @ levels[3:20].T) * codes.factors[which[1:], None]
    exact = exact * codes.factors[3:20] + codes.biases[which[1:], None] * codes.biases[3:20]
    np.testing.assert_allclose(found[0][0], exact, atol=64)


def code_products(query, codes, listed):
    products = np.zeros(8, np.int32)
    packed_products(query, codes, listed, 5, products)
    return products[:5]


@pytest.mark.parametrize("d", [64, 128, 190, 1000])
def test_products_of_codes(other, d):  # a fixture
    random = np.random.default_rng(d)
    codes, _ = pack_rows(random.standard_normal((9, d)).astype(np.float32))
    codes[8] = 255  # as large as sums become
    query = np.zeros(2 * codes.shape[1], np.int8)
    quantise(random.standard_normal(d).astype(np.float32), query)
    for numbers in (query, np.full_like(query, 127), np.full_like(query, -127)):
        listed = np.array([8, 3, 0, 1, 8], np.int32)
        np.testing.assert_array_equal(*both(code_products, other, numbers, codes, listed))


def code_sums(codes, columns, values, scales, d):
    total = np.empty(d, np.float32)
    sum_packed(codes, columns, values, scales, total)
    return total


@pytest.mark.parametrize("d", [60, 64, 128, 150, 320, 500])
def test_sums_of_codes(other, d):  # a fixture
    random = np.random.default_rng(d)
    codes, _ = pack_rows(random.standard_normal((9, d)).astype(np.float32))
    columns = random.integers(0, 9, 30).astype(np.int32)
    values, scales = (random.random(n).astype(np.float32) for n in (30, 9))
    found = both(code_sums, other, codes, columns, values, scales, d)
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-3)


def byte_products(query, values, scales, listed):
    products = np.zeros(8, np.float32)
    products_of_bytes(query, values, scales, listed, 5, products)
    return products[:5]


@pytest.mark.parametrize("d", [3, 64, 100, 320])
def test_products_of_bytes(other, d):  # a fixture
    random = np.random.default_rng(d)
    vectors = random.standard_normal((9, d)).astype(np.float32)
    codes, scales = np.empty(vectors.shape, np.int8), np.empty(9, np.float32)
    quantise_rows(vectors, 0, len(vectors), codes, scales)
    width = split_width(d)
    parts = np.zeros((2, width), np.int8), np.zeros(2, np.int32), np.zeros(1, np.float32)
    query = SplitQuery(*parts)
    split_query(vectors[0], query)
    arrays = read_only(codes, np.int8), read_only(scales, np.float32)
    listed = np.arange(4, 9, dtype=np.int32)
    np.testing.assert_array_equal(*both(byte_products, other, query, *arrays, listed))


def layer(matrix, bias, inputs):
    outputs = np.zeros((len(matrix), inputs.shape[1]), np.float32)
    dense_layer(matrix, bias, inputs, outputs, inputs.shape[1] // 16)
    return outputs


def sums_of_rows(columns, values, table):
    total = np.zeros(table.shape[1], np.float32)
    sum_lanes(columns, values, table, 0, len(columns), total)
    return total


def test_layers_and_sums(other):  # a fixture
    random = np.random.default_rng(0)
    matrix, bias, inputs = (
        random.standard_normal(shape).astype(np.float32) for shape in ((11, 7), 11, (7, 48))
    )
    table = random.standard_normal((20, 21 * 16)).astype(np.float32)
    columns = random.integers(0, 20, 9).astype(np.int32)
    expected = np.maximum(matrix @ inputs + bias[:, None], 0)
    for found in both(layer, other, matrix, bias, inputs):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    for found in both(sums_of_rows, other, columns, bias[:9], table):
        np.testing.assert_allclose(found, bias[:9] @ table[columns], rtol=1e-4, atol=1e-4)


def entries(ids, weights, first, after, slots, nodes):
    sums, slotted = np.zeros(50, np.float32), np.zeros(60, np.float32)
    fresh, stamps = np.zeros(80, np.int32), np.zeros(len(nodes) + 1, np.int32)
    stamps[-1] = 1
    add_scaled(ids, weights, first, after, np.float32(2), sums)
    add_to_slots(ids, weights, first, after, np.float32(2), slots, slotted)
    total = gathered_sum(ids, weights, first, after, sums)
    n = keep_unseen_edges(ids, 0, after, nodes, stamps, fresh, 0)
    return sums, slotted, np.array([total]), fresh[:n], stamps


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("n_bytes", [2, 3, 4])
def test_entries(other, kind, n_bytes):  # a fixture
    random = np.random.default_rng(n_bytes)
    columns = random.permutation(60)[:37]
    ids = read_only(pack_ids(columns, (1 << 8 * n_bytes) - 1), np.uint8)
    weights = random.integers(-100, 100, len(columns)).astype(kind)
    stored = weights.view(np.uint16) if kind == np.float16 else weights
    slots = np.zeros(50 + N_MORE_SLOTS, np.uint16)
    slots[columns[columns < 50]] = 1 + np.arange((columns < 50).sum())
    own = (ids, read_only(stored, stored.dtype), 1, len(columns), slots)
    nodes = read_only(np.zeros((55, 1)), np.uint8)
    for there, here in zip(*both(entries, other, *own, nodes), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-5)
