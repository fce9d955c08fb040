"""The walks of a graph over codes against plain numpy, and where they start."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail.blend.candidates import CandidateSearch, SearchSizes
from longtail.compiled.walk_starts import homes_of, unsure_below
from longtail.kernels.arrays import read_only
from longtail.kernels.code_search import (
    first_homes,
    nearest_members,
    node_of,
    similarity_at,
    walk_graph,
    walk_on,
    walk_wider,
)
from longtail.kernels.coded_graph import NO_BIAS, NO_CODES, CodedGraph, new_keys, new_walk
from longtail.kernels.own_rows import nearest_own_rows
from longtail.kernels.packed_codes import MIDDLE, pack_rows, unpacked_rows
from longtail.kernels.packed_ids import pack_ids
from longtail.kernels.rows import Rows, quantise
from small_graphs import random_graph

SEEDS = st.integers(0, 10_000)
FEW = settings(max_examples=25, deadline=None)
NO_SCALES = read_only(np.zeros(0), np.float32)
NO_STARTS = np.zeros(0, np.int32)
DIMENSION = 64


def query_codes(point):
    """The codes and their scale, of the very types that answers have: no code is compiled anew."""
    codes = np.zeros(DIMENSION, np.int8)
    return codes, np.float32(quantise(point, codes))


def coded(vectors, neighbours, entries, *, has_rows=True, bias=NO_BIAS):
    """A graph as walks take it; one with edges has the codes of its entries once more."""
    n = len(vectors)
    codes, step = pack_rows(vectors)
    again = entries if neighbours.shape[1] else entries[:0]
    every = read_only(np.arange(n + 1), np.int32)
    return CodedGraph(
        read_only(codes, np.uint8),
        read_only(step, np.float32),
        Rows(vectors if has_rows else vectors[:0], NO_SCALES),
        read_only(pack_ids(neighbours.reshape(-1), n), np.uint8),
        read_only(entries, np.int32),
        every,
        read_only(every[:-1], np.int32),
        bias,
        read_only(codes[again], np.uint8) if len(again) else NO_CODES,
        read_only(bias[again] if len(bias) else bias, np.float32),
    )


def random_coded(seed, n, n_edges, n_entries, *, is_biased=False):
    """A graph of random edges, a point, its codes, and its product with each node's codes."""
    random = np.random.default_rng(seed)
    vectors = read_only(random.standard_normal((n, DIMENSION)), np.float32)
    neighbours = random_graph(random, n, n_edges) if n_edges else np.empty((n, 0), np.int32)
    bias = read_only(4 * random.standard_normal(n if is_biased else 0), np.float32)
    graph = coded(vectors, neighbours, random.permutation(n)[:n_entries], bias=bias)
    point = random.standard_normal(DIMENSION).astype(np.float32)
    query, scale = query_codes(point)
    levels = unpacked_rows(graph.codes, np.ones(1, np.float32), DIMENSION) + MIDDLE
    products = levels.astype(np.int64) @ query.astype(np.int64)
    if is_biased:  # in the steps of the codes
        products += np.int64(bias * (np.float32(1) / (scale * graph.step[0])))
    return graph, neighbours, products, (query, scale)


def walked_twin(neighbours, products, starts, beam):
    """The best `beam` of a walk that follows all that is in the beam, best first."""
    keys = {int(node): (int(products[node]), int(node)) for node in starts}
    inside, closed = sorted(keys, key=keys.get, reverse=True)[:beam], set()
    while True:
        is_open = [node for node in inside if node not in closed]
        if not is_open:
            return inside
        closed.add(is_open[0])
        for node in neighbours[is_open[0]].tolist():
            if node >= 0 and node not in keys:
                keys[node] = (int(products[node]), node)
                inside.append(node)
        inside = sorted(inside, key=keys.get, reverse=True)[:beam]


def nodes_in(walk, size):
    return [int(node_of.py_func(key)) for key in walk.keys[1 : 1 + size]]


@FEW
@given(
    seed=SEEDS,
    n=st.integers(1, 60),
    k=st.integers(1, 8),
    n_starts=st.integers(0, 9),
    has_rows=st.booleans(),
    is_biased=st.booleans(),
)
def test_a_graph_whose_entries_are_all_nodes_finds_the_nearest(
    seed, n, k, n_starts, has_rows, is_biased
):
    random = np.random.default_rng(seed)
    vectors = read_only(random.choice([-1, 1], (n, DIMENSION)), np.float32)
    bias = read_only(4 * random.standard_normal(n if is_biased else 0), np.float32)
    no_edges = np.empty((n, 0), np.int32)
    graph = coded(vectors, no_edges, np.arange(n), has_rows=has_rows, bias=bias)
    point = random.standard_normal(DIMENSION).astype(np.float32)
    codes, scale = query_codes(point)
    ids, near = np.empty(k, np.int32), np.empty(k, np.float32)
    walk = new_walk(graph, max(20, k), n_starts)
    starts = random.integers(0, n, n_starts).astype(np.int32)
    for _ in range(2):  # the second walk uses the scratch of the first
        size = walk_graph(codes, scale, graph, starts, n_starts, walk)
        filled = nearest_members(point, codes, scale, graph, size, walk, ids, near)
    exact = vectors @ point + (bias if is_biased else 0)
    assert filled == min(n, k)
    # Codes of equal sizes leave the order of the products, and lose a tenth of their size.
    atol = 1e-4 if has_rows else 0.15 * np.abs(exact).max() + 0.5
    np.testing.assert_allclose(near[:filled], np.sort(exact)[::-1][:filled], atol=atol)


@FEW
@given(SEEDS, st.integers(1, 120), st.sampled_from([8, 16, 72]), st.booleans())
def test_a_walk_ends_where_all_of_its_beam_is_followed(seed, n, beam, is_biased):
    graph, neighbours, products, (query, scale) = random_coded(
        seed, n, 5, min(n, 9), is_biased=is_biased
    )
    walk = new_walk(graph, beam, 4)
    size = walk_graph(query, scale, graph, NO_STARTS, 0, walk)
    found = nodes_in(walk, size)
    assert products[found].tolist() == sorted(products[found].tolist(), reverse=True)
    assert len(set(found)) == size
    if beam >= n:  # nothing is left out: the same nodes, whatever is followed first
        assert sorted(found) == sorted(walked_twin(neighbours, products, graph.entries, beam))
    followed = neighbours[found]
    worst = products[found[-1]] if size == beam else np.iinfo(np.int64).min
    for node in followed[followed >= 0].tolist():
        assert node in found or products[node] <= worst


@FEW
@given(seed=SEEDS, n=st.integers(30, 120), n_starts=st.integers(0, 6))
def test_a_walk_goes_on_from_further_nodes(seed, n, n_starts):
    graph, neighbours, products, (query, scale) = random_coded(seed, n, 3, 9)
    random = np.random.default_rng(seed)
    starts = random.permutation(n)[:n_starts].astype(np.int32)
    walk = new_walk(graph, n, n_starts)
    walk_graph(query, scale, graph, starts, 0, walk)
    size = walk_on(query, scale, graph, starts, n_starts, walk)
    every = [*graph.entries.tolist(), *starts.tolist()]
    assert sorted(nodes_in(walk, size)) == sorted(walked_twin(neighbours, products, every, n))


@FEW
@given(seed=SEEDS, n=st.integers(1, 120), wide=st.sampled_from([16, 40, 80]))
def test_a_longer_beam_takes_what_the_first_one_left_out(seed, n, wide):
    graph, _, products, (query, scale) = random_coded(seed, n, 0, n)
    walk = new_walk(graph, 8, 0, n_logged=n)
    longer = walk._replace(keys=new_keys(wide))
    size = walk_graph(query, scale, graph, NO_STARTS, 0, walk)
    size = walk_wider(query, scale, graph, size, walk, longer)
    found = nodes_in(longer, size)
    assert len(set(found)) == size == (min(n, wide) if n > 8 else n)
    best = np.sort(products)[::-1][:size]
    np.testing.assert_array_equal(products[found], best)
    levels = unpacked_rows(graph.codes, graph.step, DIMENSION)[found[-1]]
    near = similarity_at(size, query, scale, graph, longer)
    assert near == pytest.approx(float(levels @ (query * scale)), abs=1e-3)


def test_a_longer_beam_finds_more():
    graph, neighbours, products, (query, scale) = random_coded(3, 400, 6, 20)
    walk = new_walk(graph, 16, 0, n_logged=400)
    size = walk_graph(query, scale, graph, NO_STARTS, 0, walk)
    narrow = nodes_in(walk, size)
    longer = walk._replace(keys=new_keys(96))
    wide = nodes_in(longer, walk_wider(query, scale, graph, size, walk, longer))
    assert set(narrow) < set(wide)
    twin = walked_twin(neighbours, products, graph.entries, 96)
    assert len(set(wide) & set(twin)) > 0.9 * len(twin)


def test_homes_are_those_of_the_nearest_nodes():
    graph, _, _, (query, scale) = random_coded(0, 50, 0, 50)
    walk = new_walk(graph, 8)
    size = walk_graph(query, scale, graph, NO_STARTS, 0, walk)
    homes = read_only(np.arange(50)[::-1], np.int32)
    starts = np.full(5, -1, np.int32)
    assert first_homes(walk, 3, homes, starts) == 3
    assert starts.tolist() == [*(49 - node for node in nodes_in(walk, size)[:3]), -1, -1]
    assert first_homes(walk, 3, homes[:0], starts) == 0  # a model that has none


def knots(seed, n, spread):
    """Points around twenty directions."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((20, DIMENSION))
    rows = centres[np.arange(n) % 20] + spread * random.standard_normal((n, DIMENSION))
    return read_only(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def test_a_label_is_at_home_at_its_nearest_point_or_where_one_near_it_is(monkeypatch):
    labels, points = knots(0, 100, 0.2), knots(0, 300, 0.2)
    points = read_only(points[np.arange(300) % 250], np.float32)  # some are there twice
    has = np.random.default_rng(0).random((300, 100)) < 0.03
    has[:, :10] = False
    monkeypatch.setattr("longtail.index.stored.EXACT_BELOW", 0)
    parts = {"sizes": SearchSizes(), "seed": 0, "n_threads": 1}
    search = CandidateSearch.build(labels, points, csr_array(has.astype(np.float32)), **parts)
    index = search.point_index
    graph = coded(index.vectors, index.neighbours, index.entries)
    homes = homes_of(search, graph)
    products = labels @ points.T
    own = np.where(has, products.T, -np.inf).argmax(axis=0)
    without = ~has.any(axis=0)
    assert homes[~without].tolist() == index.node_of_row()[own[~without]].tolist()
    near = (labels @ index.vectors.T)[without, homes[without]]
    assert (near > products[without].max(axis=1) - 0.05).mean() > 0.8
    edgeless = coded(points, index.neighbours[:, :0], np.arange(300))
    assert len(homes_of(search, edgeless)) == 0
    monkeypatch.setattr("longtail.compiled.walk_starts._ROWS_AT_ONCE", 30)
    assert homes_of(search, graph, n_threads=3).tolist() == homes.tolist()


@FEW
@given(SEEDS, st.integers(1, 4))
def test_nearest_own_rows_are_those_of_numpy(seed, n_most):
    random = np.random.default_rng(seed)
    vectors, rows = (random.standard_normal((n, 5)).astype(np.float32) for n in (7, 9))
    sizes = random.integers(0, 6, 7)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    own = random.integers(0, 9, starts[-1]).astype(np.int32)
    nearest = np.empty(7, np.int32)
    nearest_own_rows(vectors, starts, own, rows, n_most, nearest)
    for i in range(7):
        mine = own[starts[i] : starts[i + 1]][:n_most]
        expected = mine[np.argmax(rows[mine] @ vectors[i])] if len(mine) else -1
        assert nearest[i] == expected


def test_two_fifths_of_the_points_are_walked_for_longer():
    labels, points = knots(0, 100, 0.2), knots(0, 300, 0.2)
    neighbours = np.argsort(-labels @ labels.T, axis=1)[:, 1:9].astype(np.int32)
    graph = coded(labels, neighbours, np.arange(0, 100, 3))
    below = unsure_below(coded(points, neighbours[:0], np.arange(9)), graph, 5, 32)
    levels = unpacked_rows(graph.codes, graph.step, DIMENSION)  # as walks see the labels
    fifth = np.sort(points @ levels.T, axis=1)[:, -5]
    assert 0.3 < (fifth < below[0]).mean() < 0.5
    scanned = coded(labels, neighbours[:, :0], np.arange(100))
    assert unsure_below(graph, scanned, 5, 32).tolist() == [-np.inf]
    no_points = coded(points[:0], neighbours[:0], np.arange(0))  # a model that keeps none
    assert unsure_below(no_points, graph, 5, 32).tolist() == [-np.inf]


@FEW
@given(seed=SEEDS, n=st.integers(20, 150), n_entries=st.integers(1, 20), is_biased=st.booleans())
def test_a_walk_from_copies_of_the_entries_is_one_from_the_entries(seed, n, n_entries, is_biased):
    graph, _, _, (query, scale) = random_coded(seed, n, 4, n_entries, is_biased=is_biased)
    found = []
    for own in (graph, graph._replace(entry_codes=NO_CODES, entry_bias=NO_BIAS)):
        walk = new_walk(own, n, n_logged=2 * n)
        size = walk_graph(query, scale, own, NO_STARTS, 0, walk)
        found.append(nodes_in(walk, size))
        logged = walk.log[1 : 1 + walk.log[0]]
        assert len(set(logged.tolist())) == len(logged) >= size
    assert found[0] == found[1]


def test_entries_of_a_damaged_file_lead_nowhere_else():
    graph, _, _, (query, scale) = random_coded(0, 40, 4, 9)
    entries = read_only([-1, 2**31 - 1, *graph.entries[2:]], np.int32)
    walk = new_walk(graph, 16)
    size = walk_graph(query, scale, graph._replace(entries=entries), NO_STARTS, 0, walk)
    assert all(0 <= node < 40 for node in nodes_in(walk, size))
