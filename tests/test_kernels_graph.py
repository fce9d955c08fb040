"""The graph kernels, each held to a plain numpy twin, on vectors whose sums are exact."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.index.protocol import read_only
from longtail.kernels.graph import (
    add_reverse_edges,
    beam_search,
    hash_rows,
    join_candidates,
    mark_reachable,
    merge_candidates,
    project_rows,
    prune_candidates,
    search_rows,
)

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def whole_numbers(random, *shape):
    return read_only(random.integers(-2, 3, shape), np.float32)


def random_graph(random, n, width):
    """Rows of distinct neighbours, some short, none its own neighbour."""
    neighbours = np.full((n, width), -1, np.int32)
    for node in range(n):
        others = random.permutation(np.delete(np.arange(n), node))
        count = min(int(random.integers(0, width + 1)), n - 1)
        neighbours[node, :count] = others[:count]
    return read_only(neighbours, np.int32)


def random_candidates(random, vectors, n_candidates, allowed=None):
    """Descending candidate lists with ties by id, padded, as the build keeps them."""
    n = len(vectors)
    allowed = np.arange(n) if allowed is None else allowed
    ids = np.full((n, n_candidates), -1, np.int32)
    similarities = np.full((n, n_candidates), -np.inf, np.float32)
    for node in range(n):
        others = random.permutation(allowed[allowed != node])[:n_candidates]
        values = vectors[others] @ vectors[node]
        order = np.lexsort((others, -values))
        ids[node, : len(others)] = others[order]
        similarities[node, : len(others)] = values[order]
    return ids, similarities


def values_of(vectors, neighbours):
    """The similarity of each edge, -inf where there is none."""
    values = np.einsum("id,ijd->ij", vectors, vectors[neighbours])
    return np.where(neighbours >= 0, values, -np.inf).astype(np.float32)


def ranked(vectors, node, others):
    """The nodes among `others` that are real, best first, and their similarities."""
    real = {int(other) for other in others} - {-1}
    best = sorted((-float(vectors[other] @ vectors[node]), other) for other in real)
    return [other for _, other in best], [-value for value, _ in best]


def beam_search_twin(query, vectors, neighbours, entries, beam):
    seen = set(entries.tolist())
    pool = sorted((-float(vectors[node] @ query), int(node)) for node in seen)[:beam]
    followed = set()
    while waiting := [pair for pair in pool if pair[1] not in followed]:
        node = waiting[0][1]
        followed.add(node)
        fresh = [int(other) for other in neighbours[node] if other >= 0 and other not in seen]
        seen.update(fresh)
        pool = sorted(pool + [(-float(vectors[other] @ query), other) for other in fresh])[:beam]
    return pool


def select_diverse_twin(vectors, candidates, similarities, width):
    chosen = []
    real = [(n, s) for n, s in zip(candidates, similarities, strict=True) if n >= 0]
    for node, similarity in real:
        if len(chosen) < width and all(vectors[c] @ vectors[node] < similarity for c in chosen):
            chosen.append(int(node))
    rest = [int(node) for node, _ in real if node not in chosen]
    chosen = (chosen + rest)[:width]
    return chosen + [-1] * (width - len(chosen))


@few
@given(seeds, st.integers(2, 40), st.integers(1, 6), st.integers(1, 12), st.integers(1, 5))
def test_beam_search(seed, n, width, beam, n_entries):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 4)
    neighbours = random_graph(random, n, width)
    entries = read_only(random.choice(n, min(n, n_entries), replace=False), np.int32)
    stamps = np.zeros(n + 1, np.int32)
    fresh = np.empty(max(width, len(entries)), np.int32)
    found, is_open = np.empty(beam, np.int32), np.empty(beam, np.bool_)
    similarities = np.empty(beam, np.float32)
    # Twice with the same scratch; the second time past the last stamp.
    for _ in range(2):
        size = beam_search(
            vectors[0],
            vectors,
            neighbours,
            entries,
            stamps,
            fresh,
            found,
            similarities,
            is_open,
        )
        pool = beam_search_twin(vectors[0], vectors, neighbours, entries, beam)
        assert found[:size].tolist() == [node for _, node in pool]
        assert similarities[:size].tolist() == [-value for value, _ in pool]
        stamps[-1] = 2**31 - 1


@few
@given(seeds, st.integers(2, 30), st.integers(1, 12))
def test_search_rows_expands_equal_rows(seed, n, k):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 4)
    neighbours = random_graph(random, n, 3)
    entries = read_only([0], np.int32)
    counts = random.integers(1, 4, n)
    member_starts = read_only(np.concatenate([[0], np.cumsum(counts)]), np.int32)
    parts = np.split(random.permutation(counts.sum()), member_starts[1:-1])
    members = read_only(np.concatenate([np.sort(part) for part in parts]), np.int32)
    ids, similarities = np.empty((2, k), np.int32), np.empty((2, k), np.float32)
    beam = max(k, 5)
    search_rows(
        vectors[:2],
        0,
        2,
        vectors,
        neighbours,
        entries,
        member_starts,
        members,
        beam,
        np.zeros(n + 1, np.int32),
        ids,
        similarities,
    )
    for row in range(2):
        pool = beam_search_twin(vectors[row], vectors, neighbours, entries, beam)
        rows = sorted(
            (value, int(member))
            for value, node in pool
            for member in members[member_starts[node] : member_starts[node + 1]]
        )[:k]
        missing = k - len(rows)
        assert ids[row].tolist() == [member for _, member in rows] + [-1] * missing
        assert similarities[row].tolist() == [-value for value, _ in rows] + [-np.inf] * missing


@few
@given(seeds, st.integers(1, 50), st.integers(1, 20))
def test_hash_rows_tells_rows_apart(seed, n, d):
    matrix = whole_numbers(np.random.default_rng(seed), n, d)
    hashes = hash_rows(matrix.view(np.uint32))
    equal_hash = hashes[:, None] == hashes
    equal_row = (matrix.view(np.uint32)[:, None] == matrix.view(np.uint32)).all(axis=2)
    np.testing.assert_array_equal(equal_hash, equal_row)


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
    assert hash_rows(bits).tolist() == [hash_row_twin(row) for row in bits]


@few
@given(seeds, st.integers(2, 30), st.integers(1, 8), st.integers(1, 8))
def test_merge_candidates(seed, n, capacity, n_new):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 3)
    ids, similarities = random_candidates(random, vectors, capacity)
    rows = random.permutation(n)[: n // 2 + 1].astype(np.int32)
    new_ids = random.integers(-1, n, (len(rows), n_new)).astype(np.int32)
    new_values = np.einsum("id,ijd->ij", vectors[rows], vectors[new_ids]).astype(np.float32)
    expected = [row.tolist() for row in ids]
    for i, row in enumerate(rows.tolist()):
        known = {int(other) for other in [*ids[row], *new_ids[i]]} - {-1, row}
        best = sorted((-float(vectors[other] @ vectors[row]), other) for other in known)
        expected[row] = [other for _, other in best][:capacity]
        expected[row] += [-1] * (capacity - len(expected[row]))
    merge_candidates(rows, new_ids, new_values, ids, similarities)
    assert ids.tolist() == expected


@few
@given(seeds, st.integers(2, 40), st.integers(1, 8), st.integers(1, 4))
def test_join_candidates(seed, n, capacity, n_groups):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 3)
    known, members = np.split(random.permutation(n).astype(np.int32), [n // 3])
    ids, similarities = random_candidates(random, vectors, capacity, known)
    rows = random.permutation(n)[: n // 2 + 1].astype(np.int32)
    starts = [
        np.sort(np.concatenate([[0, len(part)], random.integers(0, len(part) + 1, n_groups - 1)]))
        for part in (rows, members)
    ]
    expected = ids.tolist()
    for group in range(1, n_groups):
        (row_start, row_end), (start, end) = (part[group : group + 2] for part in starts)
        for row in rows[row_start:row_end].tolist():
            candidates, _ = ranked(vectors, row, {*ids[row], *members[start:end]} - {row})
            expected[row] = (candidates + [-1] * capacity)[:capacity]
    block = read_only(vectors[members], np.float32)
    join_candidates(
        1, n_groups, vectors, rows, starts[0], members, starts[1], block, ids, similarities
    )
    assert ids.tolist() == expected
    np.testing.assert_array_equal(similarities, values_of(vectors, ids))


@few
@given(seeds, st.integers(2, 30), st.integers(1, 6))
def test_prune_candidates(seed, n, width):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 3)
    near, near_values = random_candidates(random, vectors, 6)
    far, far_values = random_candidates(random, vectors, 4)
    neighbours, values = np.empty((n, width), np.int32), np.empty((n, width), np.float32)
    nodes = random.permutation(n).astype(np.int32)
    prune_candidates(nodes, vectors, near, near_values, far, far_values, neighbours, values)
    for node in range(n):
        candidates, similarities = ranked(vectors, node, [*near[node], *far[node]])
        expected = select_diverse_twin(vectors, candidates, similarities, width)
        assert neighbours[node].tolist() == expected
    np.testing.assert_array_equal(values, values_of(vectors, neighbours))


@few
@given(seeds, st.integers(2, 20), st.integers(1, 5))
def test_add_reverse_edges(seed, n, width):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 3)
    forward = random_graph(random, n, width)
    values = values_of(vectors, forward)
    incoming = [np.flatnonzero((forward == node).any(axis=1)) for node in range(n)]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in incoming])])
    reverse = np.concatenate(incoming).astype(np.int32)
    reverse_values = np.concatenate([vectors[part] @ vectors[i] for i, part in enumerate(incoming)])
    neighbours = np.empty((n, width), np.int32)
    nodes = random.permutation(n).astype(np.int32)
    add_reverse_edges(nodes, vectors, forward, values, starts, reverse, reverse_values, neighbours)
    for node in range(n):
        candidates, similarities = ranked(vectors, node, [*forward[node], *incoming[node]])
        expected = select_diverse_twin(
            vectors, candidates[: 4 * width], similarities[: 4 * width], width
        )
        assert neighbours[node].tolist() == expected


@few
@given(seeds, st.integers(1, 30))
def test_project_rows(seed, n):
    random = np.random.default_rng(seed)
    vectors = whole_numbers(random, n, 5)
    rows = random.permutation(n).astype(np.int32)
    places = np.empty(n, np.float32)
    project_rows(vectors, rows, vectors[0].copy(), 0, n, places)
    np.testing.assert_array_equal(places, vectors[rows] @ vectors[0])


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
