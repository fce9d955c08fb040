"""The kernels of the learned blend, held to plain numpy twins."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import TextVectorizer
from longtail.data.bags import Bags
from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.blend import (
    LARGEST_VIEW,
    N_CONTEXT_VIEWS,
    N_VIEWS,
    blend_rows,
    fill_up,
    gather_candidates,
    view_rows,
)
from longtail.kernels.random_bits import first_random

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)

# ------------------------------------------------------------------------------------ candidates

N_POINTS = 6  # training points
N_LABELS = 30


def searched(seed, n=5, n_found=8):
    """What searches find for n points, such that no two labels have the same votes.

    Each label is carried by its own set of training points, all training points are near each
    point, and their similarities are powers of 1/2, so that votes are exact and tell sets apart.
    """
    random = np.random.default_rng(seed)
    carried_by = random.permutation(2**N_POINTS)[:N_LABELS]  # sets, as bits
    has_label = (carried_by >> np.arange(N_POINTS)[:, np.newaxis] & 1).astype(bool)
    label_starts = np.concatenate([[0], np.cumsum(has_label.sum(axis=1))])
    found = random.integers(-1, N_LABELS, (n, n_found))
    orders = [random.permutation(np.concatenate([np.arange(N_POINTS), [-1]])) for _ in range(n)]
    near = np.array(orders, np.int32).reshape(n, N_POINTS + 1)
    similarities = np.tile(0.5 ** np.arange(N_POINTS + 1), (n, 1))
    return (
        read_only(found, np.int32),
        read_only(near, np.int32),
        read_only(similarities, np.float32),
        read_only(label_starts, np.int32),
        read_only(np.nonzero(has_label)[1], np.int32),
    )


def gathered(arrays, n_voted, size, start=0, stop=None):
    """Candidates and votes by the kernel; rows that it leaves alone hold 77."""
    labels = np.full((len(arrays[0]), size), 77, np.int32)
    votes = np.full((len(arrays[0]), size), 77, np.float32)
    scratch = np.zeros(N_LABELS, np.float32)
    stop = len(labels) if stop is None else stop
    gather_candidates(*arrays, n_voted, start, stop, scratch, labels, votes)
    assert not scratch.any()
    return labels, votes


def gathered_twin(found, near, similarities, label_starts, label_ids, n_voted, size):
    labels = np.full((len(found), size), -1)
    votes = np.zeros((len(found), size))
    for i in range(len(found)):
        votes_for, voted = np.zeros(N_LABELS), {}
        for point, similarity in zip(near[i], similarities[i], strict=True):
            if point >= 0:
                carried = label_ids[label_starts[point] : label_starts[point + 1]]
                votes_for[carried] += max(float(similarity), 1e-6) ** 2
                voted |= dict.fromkeys(carried.tolist())
        best = list(voted)
        if len(best) > n_voted:
            best = sorted(best, key=lambda label: -votes_for[label])[:n_voted]
        joined = dict.fromkeys([*found[i][found[i] >= 0].tolist(), *best])
        for place, label in enumerate([*joined][:size]):
            labels[i, place], votes[i, place] = label, votes_for[label]
    return labels, votes


@few
@given(seeds, st.integers(0, 6), st.integers(1, 12), st.integers(0, 40), st.integers(1, 45))
def test_candidates(seed, n, n_found, n_voted, size):
    arrays = searched(seed, n, n_found)
    found = gathered(arrays, n_voted, size)
    for ours, twins in zip(found, gathered_twin(*arrays, n_voted, size), strict=True):
        np.testing.assert_array_equal(ours, twins)


@few
@given(seeds)
def test_candidates_do_not_depend_on_other_points(seed):
    arrays = searched(seed, n=4)
    labels, votes = gathered(arrays, 5, 20)
    some_labels, some_votes = gathered(arrays, 5, 20, 1, 3)
    assert (some_labels[[0, 3]] == 77).all()
    assert (some_votes[[0, 3]] == 77).all()
    assert some_labels[1:3].tobytes() == labels[1:3].tobytes()
    assert some_votes[1:3].tobytes() == votes[1:3].tobytes()


def filled_twin(row, least, first):
    filled, label = [label for label in row if label >= 0], first
    while len(filled) < least:
        if label not in filled:
            filled.append(label)
        label = (label + 1) % N_LABELS
    return filled + [-1] * (len(row) - len(filled))


@few
@given(seeds, st.integers(0, N_LABELS), st.integers(0, 5))
def test_rows_of_few_labels_are_filled_up(seed, least, n):
    random = np.random.default_rng(seed)
    before = np.full((n, N_LABELS), -1, np.int32)
    for row in before:
        given = random.permutation(N_LABELS)[: random.integers(N_LABELS + 1)]
        row[: len(given)] = given
    labels = before.copy()
    fill_up(labels, least, N_LABELS, seed, 0)
    for i in range(n):
        first = int(first_random(seed, i)) % N_LABELS
        assert labels[i].tolist() == filled_twin(before[i].tolist(), least, first)
    alone = before.copy()
    fill_up(alone[1:], least, N_LABELS, seed, 1)
    np.testing.assert_array_equal(alone[1:], labels[1:])


def test_labels_of_points_that_are_not_similar_are_candidates_too():
    found = read_only([[-1, -1]], np.int32)
    starts, ids = read_only([0, 2, 3], np.int32), read_only([4, 9, 9], np.int32)
    for similarities in ([[0, 0]], [[-0.5, -1]]):
        near = read_only([[0, 1]], np.int32)
        labels, votes = gathered((found, near, read_only(similarities, "f4"), starts, ids), 5, 4)
        assert sorted(labels[0].tolist()) == [-1, -1, 4, 9]
        assert (votes[0] < 1e-9).all()
        assert (votes[0, :2] > 0).all()


def test_of_equal_votes_any_may_join_but_never_one_twice():
    starts, ids = read_only([0, 20], np.int32), read_only(np.arange(20), np.int32)
    arrays = (
        read_only([[3, 3, 25]], np.int32),
        read_only([[0]], np.int32),
        read_only([[1]], np.float32),
        starts,
        ids,
    )
    labels, votes = gathered(arrays, 6, 20)
    known = labels[0][labels[0] >= 0]
    assert known[:2].tolist() == [3, 25]
    assert len(set(known.tolist())) == len(known) <= 8
    np.testing.assert_array_equal(votes[0, : len(known)], known != 25)


# ----------------------------------------------------------------------------- views and network


def evidence(seed, n=4, size=7, n_sources=3):
    """Candidates, padded; what sources say of them; all values of a point different."""
    random = np.random.default_rng(seed)
    labels = np.array([random.permutation(N_LABELS)[:size] for _ in range(n)]).reshape(n, size)
    labels[np.arange(size) >= random.integers(0, size + 1, (n, 1))] = -1
    steps = np.array([random.permutation(size) for _ in range(n * n_sources)])
    values = steps.reshape(n, n_sources, size) * random.uniform(0.1, 9, (n, n_sources, 1)) - 5
    return (
        read_only(labels, np.int32),
        read_only(values, np.float32),
        read_only(random.uniform(0, 8, N_LABELS), np.float32),
        read_only(random.uniform(0, 1, n), np.float32),
    )


def a_network(seed, n_views, n_hidden=(6, 3)):
    random = np.random.default_rng(seed)
    first, second = n_hidden
    shapes = [n_views, n_views, (n_views, first), first, (first, second), second, second]
    return tuple(read_only(random.standard_normal(shape), np.float32) for shape in shapes)


def n_views_of(values):
    return values.shape[1] * N_VIEWS + N_CONTEXT_VIEWS


def views_by_kernel(arrays):
    labels, values = arrays[:2]
    views = np.full((*labels.shape, n_views_of(values)), 77, np.float32)
    view_rows(*arrays, 0, len(labels), views)
    return views


def scores_by_kernel(arrays, network, start=0, stop=None):
    scores = np.full(arrays[0].shape, 77, np.float32)
    blend_rows(*arrays, *network, start, len(scores) if stop is None else stop, scores)
    return scores


def views_twin(labels, values, commonness, nearness):
    views = np.full((*labels.shape, n_views_of(values)), 77.0)
    for i, own in enumerate(labels):
        n = np.count_nonzero(own >= 0)
        if not n:
            continue
        columns = []
        for value in values[i, :, :n].astype(np.float64):
            best = value.max()
            spread = np.log(np.exp(np.maximum(value - best, -30)).sum())
            rank = np.argsort(np.argsort(-value))
            columns += [value, value - best, np.full(n, best), np.log1p(rank), np.full(n, spread)]
        common = commonness[own[:n]]
        columns += [common, common - common.max(), np.full(n, nearness[i])]
        views[i, :n] = np.stack(columns, axis=1)
    return views


def scores_twin(views, labels, centre, scale, matrix1, bias1, matrix2, bias2, last):
    limit = float(LARGEST_VIEW)
    inputs = np.clip((views - centre) * scale, -limit, limit)
    hidden = np.maximum(inputs @ matrix1 + bias1, 0)
    return np.where(labels < 0, -np.inf, np.maximum(hidden @ matrix2 + bias2, 0) @ last)


@few
@given(seeds, st.integers(0, 6), st.integers(1, 40), st.integers(1, 4))
def test_views(seed, n, size, n_sources):
    arrays = evidence(seed, n, min(size, N_LABELS), n_sources)
    np.testing.assert_allclose(views_by_kernel(arrays), views_twin(*arrays), rtol=1e-4, atol=1e-4)


@few
@given(seeds, st.integers(0, 6), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9))
def test_network_scores(seed, n, n_sources, n_hidden1, n_hidden2):
    arrays = evidence(seed, n, 7, n_sources)
    network = a_network(seed, n_views_of(arrays[1]), (n_hidden1, n_hidden2))
    expected = scores_twin(views_by_kernel(arrays).astype(np.float64), arrays[0], *network)
    np.testing.assert_allclose(scores_by_kernel(arrays, network), expected, rtol=1e-4, atol=1e-2)


@few
@given(seeds)
def test_views_of_equal_values_share_ranks_out(seed):
    labels, values, commonness, nearness = evidence(seed, n=1)
    n = np.count_nonzero(labels >= 0)
    flat = read_only(np.ones_like(values), np.float32)
    views = views_by_kernel((labels, flat, commonness, nearness))[0, :n]
    ranks = np.expm1(views[:, 3])
    np.testing.assert_allclose(np.sort(ranks), np.arange(n), atol=1e-5)
    np.testing.assert_allclose(views[:, 4], np.log(max(n, 1)), atol=1e-6)


def test_scores_do_not_depend_on_other_points():
    arrays = evidence(0, n=40)
    network = a_network(1, n_views_of(arrays[1]))
    scores = scores_by_kernel(arrays, network)
    labels, values, commonness, nearness = arrays
    for i in range(40):
        alone = (labels[i : i + 1], values[i : i + 1], commonness, nearness[i : i + 1])
        assert scores_by_kernel(alone, network).tobytes() == scores[i].tobytes()
    some = scores_by_kernel(arrays, network, 10, 12)
    assert (np.delete(some, [10, 11], axis=0) == 77).all()
    assert some[10:12].tobytes() == scores[10:12].tobytes()


def test_what_stands_in_padding_does_not_matter():
    labels, values, commonness, nearness = evidence(3, n=20)
    network = a_network(1, n_views_of(values))
    padding = np.broadcast_to((labels < 0)[:, np.newaxis], values.shape)
    wild = read_only(np.where(padding, -np.inf, values), np.float32)
    assert (labels < 0).any()
    first = scores_by_kernel((labels, values, commonness, nearness), network)
    again = scores_by_kernel((labels, wild, commonness, nearness), network)
    assert first.tobytes() == again.tobytes()


def test_views_are_cut():
    arrays = evidence(5, n=10)
    n_views = n_views_of(arrays[1])
    _, _, matrix1, *others = a_network(2, n_views)
    centre = read_only(np.full(n_views, -1000), np.float32)  # so that every view is large
    large, larger = (read_only(np.full(n_views, size), np.float32) for size in (1, 10))
    scores = scores_by_kernel(arrays, (centre, large, matrix1, *others))
    assert (
        scores.tobytes() == scores_by_kernel(arrays, (centre, larger, matrix1, *others)).tobytes()
    )
    real = scores[arrays[0] >= 0]
    assert (real == real[0]).all()


# ------------------------------------------------------------------------------------- some columns


def kept_twin(bags, is_kept):
    rows = []
    for first, last in pairwise(bags.row_starts):
        columns, values = bags.columns[first:last], bags.values[first:last].astype(np.float64)
        chosen = is_kept[columns]
        length = np.sqrt(np.square(values[chosen]).sum())
        rows.append((columns[chosen], values[chosen] / (length or 1)))
    return rows


@few
@given(seeds, st.integers(0, 12), st.integers(1, 9))
def test_kept_columns(seed, n_rows, n_columns):
    random = np.random.default_rng(seed)
    counts = random.integers(0, 6, n_rows)
    bags = Bags(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        random.integers(0, n_columns, counts.sum()).astype(np.int32),
        random.integers(-2, 3, counts.sum()).astype(np.float32),
    )
    is_kept = random.random(n_columns) < 0.6
    kept = bags.kept(is_kept)
    assert [part.dtype for part in kept[:3]] == [np.int32, np.int32, np.float32]
    assert kept.n_rows == n_rows
    for i, (columns, values) in enumerate(kept_twin(bags, is_kept)):
        own = kept.rows(i, i + 1)
        np.testing.assert_array_equal(own.columns, columns)
        np.testing.assert_allclose(own.values, values, rtol=1e-6)


def test_kept_columns_of_read_only_bags_leave_them_as_they_are():
    columns, values = read_only([1, 0, 1], np.int32), read_only([3, 4, 5], np.float32)
    bags = Bags(read_only([0, 2, 3], np.int32), columns, values)
    kept = bags.kept(read_only([False, True], np.bool_))
    assert kept.row_starts.tolist() == [0, 1, 2]
    assert kept.values.tolist() == [1, 1]
    assert bags.values.tolist() == [3, 4, 5]


def test_pieces_of_words_are_no_words():
    vectorizer = TextVectorizer(word_ngrams=2, char_ngrams=(3, 4), min_df=1)
    with pytest.raises(InputError, match="not fitted"):
        vectorizer.is_word()
    vectorizer.fit(["red wine", "red car"])
    is_word = vectorizer.is_word()
    assert is_word.shape == (vectorizer.n_features_,)
    assert is_word.dtype == np.bool_
    words = {vectorizer.token(column) for column in np.flatnonzero(is_word).tolist()}
    assert words == {"red", "wine", "car", "red wine", "red car"}


def test_words_begin_with_some_of_their_pieces():
    vectorizer = TextVectorizer(word_ngrams=2, char_ngrams=(3, 4), min_df=1)
    with pytest.raises(InputError, match="not fitted"):
        vectorizer.is_beginning()
    vectorizer.fit(["red wine", "éclair"])
    columns = np.flatnonzero(vectorizer.is_beginning()).tolist()
    found = {vectorizer.token(column) for column in columns}
    assert found == {"<re", "<red", "<wi", "<win", "<éc", "<écl"}
