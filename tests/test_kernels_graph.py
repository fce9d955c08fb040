"""The walk of a graph, held to a plain numpy twin, on vectors whose sums are exact."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.arrays import read_only
from longtail.kernels.graph import Beam, Graph, beam_search, search_rows
from small_graphs import random_graph
from small_numbers import whole_numbers

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def beam_search_twin(query, vectors, bias, neighbours, entries, beam):
    values = vectors @ query + (bias if len(bias) else 0)
    seen = set(entries.tolist())
    pool = sorted((-float(values[node]), int(node)) for node in seen)[:beam]
    followed = set()
    while waiting := [pair for pair in pool if pair[1] not in followed]:
        node = waiting[0][1]
        followed.add(node)
        fresh = [int(other) for other in neighbours[node] if other >= 0 and other not in seen]
        seen.update(fresh)
        pool = sorted(pool + [(-float(values[other]), other) for other in fresh])[:beam]
    return pool


@few
@given(
    seed=seeds,
    n=st.integers(2, 40),
    width=st.integers(1, 6),
    beam=st.integers(1, 12),
    n_entries=st.integers(1, 5),
    is_biased=st.booleans(),
)
def test_beam_search(seed, n, width, beam, n_entries, is_biased):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 4)
    bias = whole_numbers(random, n if is_biased else 0)
    neighbours = random_graph(random, n, width)
    entries = read_only(random.choice(n, min(n, n_entries), replace=False), np.int32)
    stamps = np.zeros(n + 1, np.int32)
    fresh = np.empty(max(width, len(entries)), np.int32)
    no_members = np.zeros(0, np.int32)
    graph = Graph(vectors, bias, neighbours, entries, no_members, no_members)
    found, similarities = np.empty(beam, np.int32), np.empty(beam, np.float32)
    best = Beam(found, similarities, np.empty(beam, np.bool_))
    # Twice with the same scratch; the second time past the last stamp.
    for _ in range(2):
        size = beam_search(vectors[0], graph, stamps, fresh, best)
        pool = beam_search_twin(vectors[0], vectors, bias, neighbours, entries, beam)
        assert found[:size].tolist() == [node for _, node in pool]
        assert similarities[:size].tolist() == [-value for value, _ in pool]
        stamps[-1] = 2**31 - 1


@few
@given(seeds, st.integers(2, 30), st.integers(1, 12), st.booleans())
def test_search_rows_expands_equal_rows(seed, n, k, is_biased):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 4)
    bias = whole_numbers(random, n if is_biased else 0)
    neighbours = random_graph(random, n, 3)
    entries = read_only([0], np.int32)
    counts = random.integers(1, 4, n)
    member_starts = read_only(np.concatenate([[0], np.cumsum(counts)]), np.int32)
    parts = np.split(random.permutation(counts.sum()), member_starts[1:-1])
    members = read_only(np.concatenate([np.sort(part) for part in parts]), np.int32)
    ids, similarities = np.empty((2, k), np.int32), np.empty((2, k), np.float32)
    beam = max(k, 5)
    graph = Graph(vectors, bias, neighbours, entries, member_starts, members)
    search_rows(vectors[:2], 0, 2, graph, beam, np.zeros(n + 1, np.int32), ids, similarities)
    for row in range(2):
        pool = beam_search_twin(vectors[row], vectors, bias, neighbours, entries, beam)
        rows = sorted(
            (value, int(member))
            for value, node in pool
            for member in members[member_starts[node] : member_starts[node + 1]]
        )[:k]
        missing = k - len(rows)
        assert ids[row].tolist() == [member for _, member in rows] + [-1] * missing
        assert similarities[row].tolist() == [-value for value, _ in rows] + [-np.inf] * missing
