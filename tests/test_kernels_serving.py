"""The kernels of one compiled answer against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from longtail.blend.score_network import log_sums
from longtail.kernels.arrays import read_only
from longtail.kernels.bag_vector import pack_with_scales, unit_bag_vector, unit_bag_vectors
from longtail.kernels.blend import N_CONTEXT_VIEWS, N_VIEWS, blend_rows
from longtail.kernels.further_labels import vote_by_text
from longtail.kernels.label_links import add_links, best_sums, strongest_links
from longtail.kernels.lanes import (
    dense_layer,
    falling_ranks,
    first_above,
    insert_key,
    ranks_of_keys,
)
from longtail.kernels.packed_codes import pack_rows, packed_products, packed_width, unpacked_rows
from longtail.kernels.packed_ids import id_at, pack_ids, unpacked_ids
from longtail.kernels.rows import Rows, quantise, quantise_rows, row_dot, widen
from longtail.kernels.scoring import logistic_rows
from longtail.kernels.sparse_lanes import N_MORE_SLOTS
from longtail.kernels.sparse_lookup import (
    SparseRows,
    SplitRows,
    add_products,
    add_rare_margins,
    clear_sums,
    common_margins,
)
from longtail.kernels.wide_network import Network, NetworkScratch, blend_candidates

SEEDS = st.integers(0, 10_000)
FEW = settings(max_examples=25, deadline=None)
NO_SCALES = read_only(np.zeros(0), np.float32)


def stored(vectors, kind):
    """A table as it is stored, and what is then in it."""
    if kind == "float32":
        return Rows(read_only(vectors, np.float32), NO_SCALES), vectors
    if kind == "float16":
        halves = vectors.astype(np.float16)
        return Rows(read_only(halves.view(np.uint16), np.uint16), NO_SCALES), halves
    codes, scales = np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32)
    quantise_rows(read_only(vectors, np.float32), 0, len(vectors), codes, scales)
    rows = Rows(read_only(codes, np.int8), read_only(scales, np.float32))
    return rows, codes * scales[:, None]


def sparse(matrix, *, packed=False):
    """The rows of a dense matrix, without its zeros."""
    starts = np.concatenate([[0], np.cumsum((matrix != 0).sum(axis=1))])
    rows, columns = np.nonzero(matrix)
    ids = pack_ids(columns, matrix.shape[1]) if packed else columns
    return SparseRows(
        read_only(starts, np.int32 if packed else np.int64),  # as models have them
        read_only(ids, np.uint8 if packed else np.int32),
        read_only(matrix[rows, columns], np.float32),
        NO_SCALES,
    )


def some_sparse(random, shape, share=0.3):
    return (random.random(shape) * (random.random(shape) < share)).astype(np.float32)


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@FEW
@given(seed=SEEDS, size=st.integers(1, 70))
def test_row_dot(kind, seed, size):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((3, size)).astype(np.float32)
    query = read_only(random.standard_normal(size), np.float32)
    rows, numbers = stored(vectors, kind)
    found = [row_dot(query, rows, row) for row in np.arange(3, dtype=np.int32)]
    np.testing.assert_allclose(found, numbers.astype(np.float64) @ query, atol=1e-4)
    np.testing.assert_allclose(numbers, vectors, atol=0.03)


def test_every_half_is_widened_as_numpy_does():
    bits = np.arange(2**16, dtype=np.uint16)
    finite = bits[np.isfinite(bits.view(np.float16))]

    @njit
    def all_of(values):
        out = np.empty(len(values), np.float32)
        for i in range(len(values)):
            out[i] = widen(values[i])
        return out

    np.testing.assert_array_equal(all_of(finite), finite.view(np.float16).astype(np.float32))
    assert widen(finite[1]) == finite.view(np.float16)[1]


def query_codes(point):
    codes = np.zeros(2 * packed_width(len(point)), np.int8)
    return codes, quantise(read_only(point, np.float32), codes)


@njit
def insert_into(keys, key):
    return insert_key(keys, key)


@njit
def write_ranks(values, n, ranks):
    falling_ranks(values, n, ranks)


@njit
def write_ranks_of_keys(keys, n, ranks):
    ranks_of_keys(keys, n, ranks)


@njit
def write_layer(matrix, bias, inputs, outputs, n_blocks):
    dense_layer(matrix, bias, inputs, outputs, n_blocks)


@njit
def find_above(numbers, start, least):
    return first_above(numbers, start, least)


@njit
def write_products(query, codes, rows, n, products):
    packed_products(query, codes, rows, n, products)


@FEW
@given(seed=SEEDS, size=st.integers(1, 600))
def test_packed_products(seed, size):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((3, size)).astype(np.float32)
    codes, own_step = pack_rows(read_only(vectors, np.float32))
    codes = read_only(codes, np.uint8)
    query, _ = query_codes(random.standard_normal(size))
    step = 2.7 / 7.5 * np.sqrt(np.square(vectors, dtype=np.float64).mean())
    levels = np.clip(np.rint(vectors / step + 7.5), 0, 15)
    listed, found = np.array([2, 0, 1, 1, 0], np.int32), np.zeros(8, np.int32)
    write_products(query, codes, listed, 5, found)
    # A number half-way between two levels may take either.
    np.testing.assert_allclose(
        found[:5], levels[listed] @ query[:size], atol=130 * (size // 300 + 1)
    )
    assert codes.ctypes.data % 64 == 0
    assert own_step[0] == pytest.approx(step)
    unpacked = unpacked_rows(codes, own_step, size)
    inside = np.abs(vectors) < 7.5 * step
    assert np.abs(unpacked - vectors)[inside].max(initial=0) <= 0.51 * step


@njit
def ids_of(ids, n):
    return [id_at(ids, place) for place in range(n)]


@FEW
@given(ids=st.lists(st.integers(-1, 2**31 - 1), max_size=9), n_bytes=st.sampled_from([2, 3, 4]))
def test_packed_ids(ids, n_bytes):
    most = min(2 ** (8 * n_bytes) - 2, 2**31 - 1)
    ids = [min(one, most) for one in ids]
    packed = pack_ids(ids, most + 1)
    assert packed.shape == (len(ids) + 2, n_bytes)
    kept = [one for one in ids if one >= 0]
    assert [one for one in unpacked_ids(packed).tolist() if 0 <= one <= most] == kept
    read = [2 ** (8 * n_bytes) - 1 if one < 0 else one for one in ids]
    assert ids_of(packed, len(ids)) == [id_at(packed, i) for i in range(len(ids))] == read
    assert ids_of(np.array(kept, np.int32), len(kept)) == kept


def split(weights, is_common):
    """Rows of labels, split by features."""
    places = np.where(is_common, np.cumsum(is_common), 0)
    common = np.zeros((len(weights), is_common.sum() + 1), np.float32)
    common[:, places[is_common]] = weights[:, is_common]
    return SplitRows(
        sparse(np.where(is_common, 0, weights).T, packed=True),
        sparse(common, packed=True),
        read_only(pack_ids(places, common.shape[1]), np.uint8),
    )


@FEW
@given(seed=SEEDS, n_features=st.integers(1, 200), n_labels=st.integers(1, 90))
def test_split_margins(seed, n_features, n_labels):
    random = np.random.default_rng(seed)
    weights = some_sparse(random, (n_labels, n_features), 0.8)
    point = some_sparse(random, n_features, random.choice([0.05, 0.5]))
    columns = read_only(np.flatnonzero(point), np.int32)
    wanted = random.permutation(n_labels)[:11].astype(np.int32)
    is_common = random.random(n_features) < random.choice([0, 0.5, 1])
    rows, slots = split(weights, is_common), np.zeros(n_labels + N_MORE_SLOTS, np.uint16)
    dense, margins = np.zeros(is_common.sum() + 1, np.float32), np.empty(len(wanted), np.float32)
    own = columns, read_only(point[columns], np.float32)
    common_margins(*own, rows, wanted, dense, margins)
    expected = weights[wanted] @ (point * is_common)
    np.testing.assert_allclose(margins, expected, rtol=1e-5, atol=1e-5)
    add_rare_margins(*own, rows.rare, wanted, slots, margins)
    np.testing.assert_allclose(margins, weights[wanted] @ point, rtol=1e-5, atol=1e-5)
    assert not slots.any()
    assert not dense.any()


@FEW
@given(seed=SEEDS, n_labels=st.one_of(st.integers(1, 30), st.integers(2_000, 2_100)))
def test_matches_and_links(seed, n_labels):
    random = np.random.default_rng(seed)
    texts = some_sparse(random, (n_labels, 20), min(0.3, 30 / n_labels))
    links = some_sparse(random, (3, n_labels), min(0.3, 30 / n_labels))
    point = some_sparse(random, 20)
    columns = read_only(np.flatnonzero(point), np.int32)
    scratch = np.zeros(n_labels, np.float32)
    ids, best = np.zeros(3, np.int32), np.zeros(3, np.float32)
    rare = sparse(texts.T, packed=bool(seed % 2))
    n_added = add_products(columns, read_only(point[columns], np.float32), rare, scratch)
    n = best_sums(columns, rare, n_added, scratch, np.float32(1 / 3), ids, best)
    products = texts @ point
    assert n_added == np.count_nonzero(texts[:, columns])
    np.testing.assert_allclose(scratch, products, atol=1e-6)
    n_large = min(3, ((products > 0) & (products >= products.max() / 3)).sum())
    assert n_large <= n <= 3  # what came before the largest may be there
    expected = np.sort(products)[::-1][:n_large]
    np.testing.assert_allclose(best[:n_large], expected, atol=1e-6)
    np.testing.assert_allclose(products[ids[:n]], best[:n], atol=1e-6)
    assert len(set(ids[:n])) == n
    clear_sums(columns, rare, n_added, scratch)
    assert not scratch.any()
    touched = np.zeros(n_labels, np.int32)
    few = np.arange(n, dtype=np.int32)
    n_touched = add_links(few, best[:n], sparse(links, packed=True), scratch, touched)
    votes = best[:n] @ links[:n]
    np.testing.assert_allclose(scratch, votes, atol=1e-5)
    assert sorted(touched[:n_touched]) == np.flatnonzero(scratch).tolist()
    linked, strengths = np.zeros(4, np.int32), np.zeros(4, np.float32)
    n_linked = strongest_links(touched[:n_touched], scratch, linked, strengths)
    np.testing.assert_allclose(strengths[:n_linked], np.sort(votes)[::-1][:n_linked], atol=1e-5)


@njit
def run_vote_by_text(*arguments):
    return vote_by_text(*arguments)


@FEW
@given(
    seed=SEEDS,
    n_labels=st.sampled_from([5, 30, 2_050]),
    size=st.integers(1, 40),
    scale=st.sampled_from([0, 1e-30, 20]),
)
def test_votes_of_texts(seed, n_labels, size, scale):
    random = np.random.default_rng(seed)
    texts = some_sparse(random, (n_labels, 20), min(0.3, 30 / n_labels))
    point, sums = some_sparse(random, 20), np.zeros(n_labels, np.float32)
    columns, rare = read_only(np.flatnonzero(point), np.int32), sparse(texts.T, packed=True)
    n_added = add_products(columns, read_only(point[columns], np.float32), rare, sums)
    votes = np.where(random.random(n_labels) < 0.5, 0, random.integers(-1, 3, n_labels))
    votes, was = votes.astype(np.float32), votes.astype(np.float32)
    voted = np.zeros(n_labels, np.int32)
    n_voted = np.count_nonzero(votes > 0)
    voted[:n_voted] = np.flatnonzero(votes > 0)
    named, named_sums = np.zeros(size, np.int32), np.zeros(size, np.float32)
    n = run_vote_by_text(
        *(columns, rare, n_added, sums, np.float32(scale), named, named_sums),
        *(votes, voted, n_voted),
    )
    known = set(voted[:n].tolist())
    assert len(known) == n
    assert known == set(np.flatnonzero(votes > 0).tolist())
    np.testing.assert_array_equal(votes[was < 0], was[was < 0])
    gained, large = votes - was, np.sort(sums)[::-1][:size]
    expected = scale * sums[np.argsort(-sums, kind="stable")[:size]]
    assert (gained > 0).sum() <= size
    if scale == 20 and (was >= 0).all():
        n_large = ((large > 0) & (large >= sums.max() / 10)).sum()
        best = np.sort(gained)[::-1][:n_large]
        np.testing.assert_allclose(best, expected[:n_large], rtol=1e-4)
    if not scale:
        assert not gained.any()


def test_no_texts_have_no_votes():
    none, rare = np.zeros(0, np.float32), sparse(np.zeros((0, 3)), packed=True)
    columns, voted = read_only([2], np.int32), np.zeros(3, np.int32)
    arguments = (columns, rare, 0, none, np.float32(20), voted[:1], np.zeros(1, np.float32))
    assert run_vote_by_text(*arguments, np.zeros(3, np.float32), voted, 0) == 0


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "packed"])
@FEW
@given(seed=SEEDS, size=st.integers(1, 300), n=st.integers(1, 9))
def test_the_vector_of_a_bag(kind, seed, size, n):
    random = np.random.default_rng(seed)
    vectors = read_only(random.standard_normal((12, size)), np.float32)
    if kind == "packed":
        codes, scales = pack_with_scales(vectors)
        tokens = Rows(read_only(codes, np.uint8), read_only(scales, np.float32))
        numbers = unpacked_rows(codes, scales[:, None], size)
        assert np.linalg.norm(numbers - vectors) <= 0.15 * np.linalg.norm(vectors)
        again = pack_with_scales(read_only(numbers, np.float32))
        np.testing.assert_allclose(unpacked_rows(again[0], again[1][:, None], size), numbers, 1e-5)
    else:
        tokens, numbers = stored(vectors, kind)
    columns = read_only(np.sort(random.choice(12, n, replace=False)), np.int32)
    values = read_only(random.random(n), np.float32)
    point = np.empty(size, np.float32)
    assert unit_bag_vector(columns, values, tokens, point)
    point_of_all = point.copy()
    expected = values.astype(np.float64) @ numbers[columns]
    np.testing.assert_allclose(point, expected / np.linalg.norm(expected), atol=1e-4)
    assert not unit_bag_vector(columns[:0], values[:0], tokens, point)
    bags, points = read_only([0, 0, n, n + 1], np.int32), np.full((3, size), 7, np.float32)
    unit_bag_vectors(bags, columns, values, tokens, 0, 2, points)
    np.testing.assert_array_equal(points, [np.zeros(size), point_of_all, np.full(size, 7)])


@FEW
@given(seed=SEEDS, size=st.integers(1, 5))
def test_a_key_is_inserted_in_order(seed, size):
    random = np.random.default_rng(seed)
    keys = np.full(8 * size + 1, -1, np.int64)
    keys[0] = 10_000
    new = random.permutation(1000)[: 12 * size]
    for i, key in enumerate(new):
        if key <= keys[-1]:
            continue
        place = insert_into(keys, key)
        expected = np.sort(new[: i + 1])[::-1][: 8 * size]
        assert expected[place] == key
        np.testing.assert_array_equal(keys[1 : 1 + len(expected)], expected)


@FEW
@given(seed=SEEDS, n=st.integers(1, 48), ties=st.booleans())
def test_ranks_are_those_of_a_stable_sort(seed, n, ties):
    values = np.random.default_rng(seed).standard_normal(48).astype(np.float32)
    values = values.round() if ties else values
    ranks = np.empty(48, np.int32)
    write_ranks(values, n, ranks)
    order = np.argsort(-values[:n], kind="stable")
    np.testing.assert_array_equal(ranks[order], np.arange(n))


@FEW
@given(seed=SEEDS, n=st.integers(0, 48))
def test_ranks_of_keys_are_those_of_a_sort(seed, n):
    keys = np.random.default_rng(seed).permutation(48) - np.int64(20) << 40
    ranks = np.empty(48, np.int64)
    write_ranks_of_keys(keys, n, ranks)
    np.testing.assert_array_equal(ranks[np.argsort(-keys[:n])], np.arange(n))


@FEW
@given(seed=SEEDS, n_outputs=st.integers(1, 20), n_inputs=st.integers(1, 9))
def test_a_layer_is_the_formula(seed, n_outputs, n_inputs):
    random = np.random.default_rng(seed)
    matrix, bias, inputs, outputs = (
        random.standard_normal(shape).astype(np.float32)
        for shape in ((n_outputs, n_inputs), n_outputs, (n_inputs, 32), (n_outputs, 32))
    )
    behind = outputs[:, 16:].copy()
    write_layer(matrix, bias, inputs, outputs, 1)
    expected = np.maximum(matrix @ inputs[:, :16] + bias[:, None], 0)
    np.testing.assert_allclose(outputs[:, :16], expected, atol=1e-4)
    np.testing.assert_array_equal(outputs[:, 16:], behind)


@FEW
@given(seed=SEEDS, size=st.integers(1, 400), start=st.integers(0, 100))
def test_the_first_block_above(seed, size, start):
    numbers = np.random.default_rng(seed).random(size).astype(np.float32)
    start = min(start, size)
    blocks = range(start, size - 63, 64)
    above = [first for first in blocks if numbers[first : first + 64].max() > np.float32(0.99)]
    assert find_above(numbers, start, np.float32(0.99)) == [*above, start + 64 * len(blocks)][0]


@FEW
@given(
    seed=SEEDS,
    n=st.integers(1, 32),
    n_sources=st.integers(1, 4),
    ties=st.booleans(),
    level=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_the_wide_network_is_the_narrow_one(seed, n, n_sources, ties, level):
    random = np.random.default_rng(seed)

    def floats(*shape):
        return random.standard_normal(shape).astype(np.float32)

    n_views = n_sources * N_VIEWS + N_CONTEXT_VIEWS
    parts = [floats(n_views), floats(n_views), floats(n_views, 8), floats(8), floats(8, 4)]
    parts = [read_only(part, np.float32) for part in (*parts, floats(4), floats(4))]
    evidence = floats(1, n_sources, 32)
    if ties:
        evidence = evidence.round()
    commonness = floats(32)
    labels = np.full((1, 32), -1, np.int32)
    labels[0, :n] = np.arange(n)
    expected = np.empty((1, 32), np.float32)
    own = (read_only(labels, np.int32), *(read_only(x, np.float32) for x in (evidence, commonness)))
    blend_rows(*own, read_only(np.full(1, 0.3), np.float32), *parts, 0, 1, expected)
    centre, scale, matrix1, bias1, matrix2, bias2, last = parts
    network = Network(
        centre,
        scale,
        read_only(matrix1.T, np.float32),
        bias1,
        read_only(matrix2.T, np.float32),
        bias2,
        last,
        read_only(np.full(1, level), np.float32),
        brevity=read_only(np.zeros(4), np.float32),
        for_order=read_only(np.zeros(1), np.float32),
        log_ranks=read_only(np.log1p(np.arange(32)), np.float32),
    )
    room = NetworkScratch(
        floats(n_views, 32), floats(8, 32), floats(4, 32), np.zeros(32, np.int32), floats(32)
    )
    scores = np.empty(32, np.float32)
    blend_candidates(evidence[0], n, commonness, np.float32(0.3), network, room, scores)
    expected -= level * log_sums(expected)[:, None]
    np.testing.assert_allclose(scores[:n], expected[0, :n], rtol=2e-3, atol=2e-3)


def test_logistic_rows():
    scores = np.array([[2, -1, -np.inf], [np.nan, 900, -900]], np.float32)
    found = np.empty((2, 3), np.float32)
    logistic_rows(read_only(scores, np.float32), 2.0, 0.5, 1.0, 0.25, found)
    assert found[0, :2].tolist() == pytest.approx([1 / (1 + np.exp(-6)), 1 / (1 + np.exp(1.5))])
    assert found[0, 2] == found[1, 0] == -np.inf
    assert found[1, 1:].tolist() == [1, 0]
