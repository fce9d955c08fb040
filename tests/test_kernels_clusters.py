"""The clustering kernels against plain numpy and Python twins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.clusters import (
    cut_in_half,
    keep_largest_entries,
    label_walks,
    split_dense_nodes,
    split_sparse_nodes,
)
from longtail.kernels.random_bits import random_unit

few = settings(max_examples=25, deadline=None)
MASK = 2**64 - 1


def twin_random_unit(seed, stream, counter):
    def mix(bits):
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & MASK
        return bits ^ (bits >> 31)

    golden = 0x9E3779B97F4A7C15
    start = mix((mix((seed + golden) & MASK) + stream) & MASK)
    return (mix((start + counter * golden) & MASK) >> 11) / 2**53


def twin_walk(labels, label, walk_length, restart_probability, n_kept, seed):
    """Walk with Python lists; return [(label, visits)], the walk's own label first."""
    here, visits = label, Counter()
    for step in range(walk_length if labels[:, label].any() else 0):
        if twin_random_unit(seed, label, 3 * step) < restart_probability:
            here = label
        points = np.flatnonzero(labels[:, here])
        point = points[int(twin_random_unit(seed, label, 3 * step + 1) * len(points))]
        others = np.flatnonzero(labels[point])
        here = int(others[int(twin_random_unit(seed, label, 3 * step + 2) * len(others))])
        visits[here] += 1
    own = max(1, visits.pop(label, 0))
    return [(label, own), *sorted(visits.items(), key=lambda v: (-v[1], v[0]))[: n_kept - 1]]


def twin_cut(scores):
    upper = np.zeros(len(scores), bool)
    upper[np.argsort(scores, kind="stable")[(len(scores) + 1) // 2 :]] = True
    return upper


def twin_two_means(rows, seed, stream, plus_plus, tolerance, max_iterations):
    """Balanced spherical 2-means in float64, centres and all; return the mask of the upper half."""
    n_rows = len(rows)
    first = int(twin_random_unit(seed, stream, 0) * n_rows)
    draw = twin_random_unit(seed, stream, 1)
    second = (first + 1 + int(draw * (n_rows - 1))) % n_rows
    if plus_plus:
        distance = np.clip(1.0 - rows @ rows[first], 0.0, None)
        cumulated = np.cumsum(distance)
        second = int(np.searchsorted(cumulated, draw * cumulated[-1], side="right"))
    centres = rows[[first, second]]
    previous = -np.inf
    for _ in range(max_iterations):
        cosines = rows @ centres.T
        upper = twin_cut(cosines[:, 1] - cosines[:, 0])
        sums = np.stack([rows[~upper].sum(axis=0), rows[upper].sum(axis=0)])
        centres = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        mean_cosine = (
            np.sum(rows[~upper] @ centres[0]) + np.sum(rows[upper] @ centres[1])
        ) / n_rows
        if mean_cosine - previous < tolerance:
            break
        previous = mean_cosine
    return upper


def unit_rows(n_rows, n_columns, seed):
    rows = np.random.default_rng(seed).standard_normal((n_rows, n_columns)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def split(rows, order, bounds, *, sparse, seed=0, stream=1, plus_plus=True):
    arguments = (order, bounds, 0, len(bounds) - 1, stream, seed, plus_plus, 1e-4, 50)
    if not sparse:
        split_dense_nodes(rows, *arguments)
        return
    matrix = sp.csr_array(rows)
    starts, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    split_sparse_nodes(starts, indices, matrix.data, rows.shape[1], *arguments)


@few
@given(st.integers(0, 2**62), st.integers(0, 2**31), st.integers(0, 2**31))
def test_random_unit_is_splitmix64(seed, stream, counter):
    assert random_unit(seed, stream, counter) == twin_random_unit(seed, stream, counter)


def test_random_unit_is_uniform_within_and_across_streams():
    draws = np.array([[random_unit(3, s, c) for c in range(60)] for s in range(60)])
    assert abs(draws.mean() - 0.5) < 0.02
    assert abs(draws.var() - 1 / 12) < 0.005
    assert abs(np.corrcoef(draws[:, :-1].ravel(), draws[:, 1:].ravel())[0, 1]) < 0.06
    assert abs(np.corrcoef(draws[:-1].ravel(), draws[1:].ravel())[0, 1]) < 0.06


@few
@given(
    shape=st.tuples(st.integers(1, 8), st.integers(1, 9)),
    walk_length=st.integers(1, 30),
    restart_probability=st.sampled_from([0.0, 0.2, 1.0]),
    n_kept=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)
def test_walks_equal_the_twin(shape, walk_length, restart_probability, n_kept, seed):
    labels = np.random.default_rng(seed).random(shape) < 0.4
    by_point = sp.csr_array(labels)
    by_label = sp.csr_array(labels.T)
    ids = np.full((shape[1], n_kept), -1, np.int32)
    counts = np.zeros((shape[1], n_kept), np.int32)
    graph = [
        part.astype(kind)
        for matrix in (by_label, by_point)
        for part, kind in ((matrix.indptr, np.int64), (matrix.indices, np.int32))
    ]
    label_walks(*graph, 0, shape[1], walk_length, restart_probability, seed, ids, counts)
    for label in range(shape[1]):
        expected = twin_walk(labels, label, walk_length, restart_probability, n_kept, seed)
        kept = ids[label] >= 0
        assert list(zip(ids[label][kept], counts[label][kept], strict=True)) == expected


@few
@given(
    rows=st.lists(st.lists(st.integers(-4, 4), max_size=9), min_size=1, max_size=5),
    n_kept=st.integers(1, 6),
)
def test_largest_entries_equal_a_stable_sort(rows, n_kept):
    starts = np.cumsum([0, *map(len, rows)])
    keep = np.zeros(starts[-1], bool)
    values = np.array([value for row in rows for value in row], np.float32)
    keep_largest_entries(starts, values, n_kept, keep)
    for row, first in zip(rows, starts, strict=False):
        expected = np.argsort(-np.abs(np.array(row)), kind="stable")[:n_kept]
        assert set(np.flatnonzero(keep[first : first + len(row)])) == set(expected)


@few
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40))
def test_cut_equals_a_stable_sort(scores):
    scores = np.array(scores, np.float32)
    upper = np.empty(len(scores), bool)
    cut_in_half(scores, upper)
    assert np.array_equal(upper, twin_cut(scores))


@few
@given(
    n_rows=st.integers(3, 40),
    n_columns=st.integers(2, 12),
    seed=st.integers(0, 2**31),
    sparse=st.booleans(),
    plus_plus=st.booleans(),
)
def test_two_means_equals_the_twin(n_rows, n_columns, seed, sparse, plus_plus):
    rows = unit_rows(n_rows, n_columns, seed)
    order = np.arange(n_rows, dtype=np.int32)
    split(
        rows, order, np.array([0, n_rows]), sparse=sparse, seed=seed, stream=5, plus_plus=plus_plus
    )
    upper = twin_two_means(rows.astype(np.float64), seed, 5, plus_plus, 1e-4, 50)
    assert order.tolist() == [*np.flatnonzero(~upper), *np.flatnonzero(upper)]


@pytest.mark.parametrize("sparse", [True, False])
def test_nodes_of_a_level_do_not_disturb_each_other(sparse):
    rows = unit_rows(60, 6, seed=1)
    rows[np.abs(rows) < 0.3] = 0.0  # nodes then touch different columns
    bounds = np.array([0, 25, 25, 26, 60])
    together = np.arange(60, dtype=np.int32)
    split(rows, together, bounds, sparse=sparse, stream=4)
    for node in range(4):
        alone = np.arange(60, dtype=np.int32)
        split(rows, alone, bounds[node : node + 2], sparse=sparse, stream=4 + node)
        first, last = bounds[node : node + 2]
        assert np.array_equal(together[first:last], alone[first:last])
