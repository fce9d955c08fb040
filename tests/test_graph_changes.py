"""Graphs with further rows, or without some: found as in a graph that is built of the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.index import ExactIndex, GraphIndex, recall_against_exact
from longtail.index.graph_building import reachable_entries
from longtail.index.graph_changes import with_rows, without_rows
from longtail.kernels.arrays import read_only
from longtail.kernels.byte_codes import byte_codes, code_unit
from longtail.kernels.graph_building import keys_of_listed
from longtail.kernels.nearest_codes import LOWEST, row_of, similarity_in
from longtail.label_changes import changed_index
from longtail.label_changes.changed_index import with_fewer_rows, with_more_rows
from small_graphs import random_graph

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def rows_and_bias(seed, n, d=16, n_knots=12):
    """Vectors in knots, some of them twice; a bias of a few levels."""
    random = np.random.default_rng(seed)
    knots = 1.5 * random.standard_normal((n_knots, d))
    rows = knots[random.integers(0, n_knots, n)] + random.standard_normal((n, d))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    rows[random.integers(0, n, n // 9)] = rows[random.integers(0, n, n // 9)]
    return rows, (random.integers(0, 3, n) / 8).astype(np.float32)


def assert_whole(index, rows, bias):
    """Edges are within bounds, lead elsewhere, each once, and from the entries to every node."""
    nodes, edges = np.arange(len(index.vectors)), index.neighbours
    assert edges.shape == (len(nodes), edges.shape[1])
    assert edges.min(initial=-1) >= -1
    assert edges.max(initial=-1) < len(nodes)
    assert (edges != nodes[:, None]).all()
    for own in edges:
        some = own[own >= 0]
        assert len({*some.tolist()}) == len(some)
        assert (own[len(some) :] == -1).all()
    assert len({*index.entries.tolist()}) == len(index.entries)
    np.testing.assert_array_equal(reachable_entries(edges, index.entries), index.entries)
    np.testing.assert_array_equal(index.vectors[index.node_of_row()], rows)
    if len(index.bias):
        np.testing.assert_array_equal(index.bias[index.node_of_row()], bias)
    longer = np.column_stack([index.vectors, index.bias] if len(index.bias) else [index.vectors])
    assert len(np.unique(longer, axis=0)) == len(longer)  # equal rows share a node


@few
@given(seeds, st.integers(1, 120), st.integers(1, 60), st.integers(2, 12), st.booleans())
def test_every_node_is_reached_when_rows_come(seed, n_old, n_new, n_neighbours, is_biased):
    rows, bias = rows_and_bias(seed, n_old + n_new)
    own = bias if is_biased else None
    index = GraphIndex.build(
        rows[:n_old], bias=own if own is None else own[:n_old], n_neighbours=n_neighbours
    )
    before = {name: array.copy() for name, array in index.to_arrays().items()}
    changed = with_rows(index, rows[n_old:], None if own is None else own[n_old:])
    assert_whole(changed, rows, bias)
    assert changed.neighbours.shape[1] == n_neighbours
    for name, array in index.to_arrays().items():
        np.testing.assert_array_equal(array, before[name])


@few
@given(seeds, st.integers(2, 150), st.floats(0, 0.9), st.integers(2, 12), st.booleans())
def test_every_node_is_reached_when_rows_go(seed, n, share, n_neighbours, is_biased):
    rows, bias = rows_and_bias(seed, n)
    index = GraphIndex.build(rows, bias=bias if is_biased else None, n_neighbours=n_neighbours)
    kept = np.flatnonzero(np.random.default_rng(seed).random(n) >= share)
    kept = kept if len(kept) else np.array([n // 2])
    assert_whole(without_rows(index, kept), rows[kept], bias[kept])


ROWS, BIAS = rows_and_bias(5, 4000, d=24, n_knots=40)
QUERIES = rows_and_bias(5, 4400, d=24, n_knots=40)[0][4000:]


def recall(index, rows=ROWS, bias=BIAS):
    index.beam_size = 32
    return recall_against_exact(index, ExactIndex(rows, bias=bias), QUERIES, 10)


@pytest.fixture(scope="module")
def built():
    return GraphIndex.build(ROWS, bias=BIAS, n_neighbours=16, seed=0)


@pytest.fixture(scope="module")
def smaller():
    return GraphIndex.build(ROWS[:3600], bias=BIAS[:3600], n_neighbours=16, seed=0)


def test_as_much_is_found_as_in_a_graph_that_is_built(built, smaller):
    at_once, by_tens = with_rows(smaller, ROWS[3600:], BIAS[3600:]), smaller
    for first in range(3600, 4000, 10):
        own = slice(first, first + 10)
        by_tens = with_rows(by_tens, ROWS[own], BIAS[own])
    wanted = recall(built)
    assert wanted > 0.9
    assert recall(at_once) > wanted - 0.01
    assert recall(by_tens) > wanted - 0.01
    new = np.arange(3600, 4000)[:, None]
    is_near = (ExactIndex(ROWS, bias=BIAS).query(ROWS[3600:], 20)[0] == new).any(axis=1)
    for index in (at_once, by_tens):
        is_found = (index.query(ROWS[3600:], 20)[0] == new).any(axis=1)
        assert is_found[is_near].mean() > 0.99


def test_as_much_is_found_where_rows_have_gone(built, smaller):
    left = without_rows(built, np.arange(3600))
    assert recall(left, ROWS[:3600], BIAS[:3600]) > recall(smaller, ROWS[:3600], BIAS[:3600]) - 0.01
    again = with_rows(left, ROWS[3600:], BIAS[3600:])
    assert recall(again) > recall(built) - 0.01


def test_a_knot_that_goes_cuts_nothing_off(built):
    """Whoever pointed into it points beyond it."""
    gone = np.argsort(-ROWS @ ROWS[0])[:300]
    kept = np.setdiff1d(np.arange(4000), gone)
    left = without_rows(built, kept)
    assert_whole(left, ROWS[kept], BIAS[kept])
    assert len(left.entries) <= len(built.entries)
    assert recall(left, ROWS[kept], BIAS[kept]) > 0.9


@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_make_no_difference(built, smaller, n_threads):
    for one, other in (
        (
            with_rows(smaller, ROWS[3600:], BIAS[3600:]),
            with_rows(smaller, ROWS[3600:], BIAS[3600:], n_threads),
        ),
        (
            without_rows(built, np.arange(100, 4000)),
            without_rows(built, np.arange(100, 4000), n_threads),
        ),
    ):
        for name, array in one.to_arrays().items():
            np.testing.assert_array_equal(array, other.to_arrays()[name])


def test_rows_that_are_there_already_get_no_node(built):
    more = with_rows(built, ROWS[:5], BIAS[:5])
    np.testing.assert_array_equal(more.neighbours, built.neighbours)
    np.testing.assert_array_equal(more.node_of_row()[4000:], built.node_of_row()[:5])
    other = with_rows(built, ROWS[:5], BIAS[:5] + 1)  # they are others by their bias
    assert len(other.vectors) > len(built.vectors)
    assert set(range(len(built.vectors), len(other.vectors))) <= set(other.entries.tolist())


def test_many_rows_are_built_in_anew(smaller, monkeypatch):
    sizes = {"n_neighbours": 16, "beam_size": 32, "n_threads": 1}
    built = []
    real = changed_index.built_index
    monkeypatch.setattr(
        changed_index, "built_index", lambda *a, **k: built.append(len(a[0])) or real(*a, **k)
    )
    some = slice(3600, 3600 + 360)
    assert len(with_more_rows(smaller, ROWS[some], BIAS[some], **sizes).members) == 3960
    with_fewer_rows(smaller, np.arange(3240), **sizes)
    assert with_fewer_rows(smaller, np.arange(3600), **sizes) is smaller
    assert with_more_rows(smaller, ROWS[:0], BIAS[:0], **sizes) is smaller
    assert built == []
    some = slice(3600, 3600 + 361)
    whole = with_more_rows(smaller, ROWS[some], BIAS[some], **sizes)
    np.testing.assert_array_equal(whole.vectors[whole.node_of_row()], ROWS[: 3600 + 361])
    fewer = with_fewer_rows(smaller, np.arange(3239), **sizes)
    np.testing.assert_array_equal(fewer.vectors[fewer.node_of_row()], ROWS[:3239])
    np.testing.assert_array_equal(fewer.bias[fewer.node_of_row()], BIAS[:3239])
    assert type(with_fewer_rows(smaller, np.arange(1999), **sizes)) is ExactIndex
    assert built == [3961, 3239, 1999]


@few
@given(seeds, st.integers(2, 30), st.integers(1, 9), st.integers(1, 100))
def test_keys_of_listed(seed, n, width, d):
    random = np.random.default_rng(seed)
    vectors = read_only(random.standard_normal((n, d)), np.float32)
    none = read_only(np.zeros(0), np.float32)
    codes = byte_codes(vectors, none, code_unit(vectors, none), np.arange(n, dtype=np.int32))
    rows = random.integers(0, n, 5).astype(np.int32)
    listed = read_only(random_graph(random, n, width)[rows], np.int32)
    keys = np.zeros(listed.shape, np.int64)
    keys_of_listed(codes, read_only(rows, np.int32), listed, keys)
    levels = codes.codes.astype(np.int64) - 64
    for i in range(5):
        for key, other in zip(keys[i], listed[i], strict=True):
            if other < 0:
                assert key == LOWEST
            else:
                sums = np.float32(levels[rows[i]] @ levels[other])
                factors = codes.factors[rows[i]] * codes.factors[other]
                assert similarity_in(key) == np.int32(sums * factors)
                assert row_of(key) == other
