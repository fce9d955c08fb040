"""Which labels are worth scoring: what the searches find, by exact indices and by graphs."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.blend import candidates, search_indices
from longtail.blend.candidates import CandidateSearch, SearchSizes
from longtail.errors import InputError
from longtail.index import stored
from longtail.index.coded import CodedIndex
from longtail.index.exact import ExactIndex
from longtail.index.graph import GraphIndex
from longtail.index.stored import search_bias_of, search_rows_of

N_LABELS, N_POINTS, DIMENSION = 50, 300, 8
UNKNOWN = 7  # a label with a vector of zeros
MANY = 2**31 - 1
SIZES = SearchSizes(n_near_labels=5, n_near_points=4, n_voted=N_LABELS, n_popular=3)


def unit_rows(n, seed):
    rows = np.random.default_rng(seed).standard_normal((n, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


LABEL_VECTORS = unit_rows(N_LABELS, 0)
LABEL_VECTORS[UNKNOWN] = 0
POINTS = unit_rows(N_POINTS, 1)
HAS = np.random.default_rng(2).random((N_POINTS, N_LABELS)) < np.linspace(0.01, 0.1, N_LABELS)
QUERIES = unit_rows(20, 3)


def build(sizes=SIZES, *, label_vectors=LABEL_VECTORS, has=HAS, n_asked=None, bias=None):
    labels = csr_array(has.astype(np.float32))
    return CandidateSearch.build(
        label_vectors,
        POINTS[: len(has)],
        labels,
        sizes=sizes,
        seed=0,
        n_threads=1,
        n_asked=n_asked,
        bias=bias,
    )


@pytest.fixture(scope="module", params=[ExactIndex, GraphIndex])
def search(request):
    """A search by indices of each kind; a graph of so few finds what an exact search finds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "EXACT_BELOW", MANY if request.param is ExactIndex else 0)
        made = build()
    assert isinstance(made.label_index, request.param)
    assert isinstance(made.point_index, request.param)
    return made


def find(search, queries=QUERIES, more=None, n_threads=1):
    more = np.empty((len(queries), 0), np.int32) if more is None else more
    return search.find(queries, np.asarray(more, np.int32), n_threads)


def nearest(vectors, query, k):
    return np.argsort(-(vectors @ query), kind="stable")[:k]


def assert_same(first, second):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


class TestFind:
    def test_near_labels_popular_ones_and_those_of_near_points(self, search):
        known = np.flatnonzero(LABEL_VECTORS.any(axis=1))
        popular = set(np.argsort(-HAS.sum(axis=0), kind="stable")[:3].tolist())
        for query, labels, votes, nearness in zip(QUERIES, *find(search), strict=True):
            found = known[nearest(LABEL_VECTORS[known], query, 5)].tolist()
            near = nearest(POINTS, query, 4)
            squares = (POINTS[near] @ query) ** 2
            expected = squares @ HAS[near]
            n = int((labels >= 0).sum())
            assert labels[:5].tolist() == found
            assert len(set(labels[:n].tolist())) == n
            assert set(labels[:n].tolist()) == {*found, *popular, *np.flatnonzero(expected)}
            np.testing.assert_allclose(votes[:n], expected[labels[:n]], rtol=1e-5)
            assert (labels[n:] == -1).all()
            assert not votes[n:].any()
            assert nearness == pytest.approx((POINTS @ query).max(), rel=1e-5)

    def test_more_labels_join_once(self, search):
        first = find(search)
        other = int(np.setdiff1d(np.arange(N_LABELS), first.labels[0])[0])
        known = int(first.labels[0, 0])
        more = np.tile(np.array([other, -1, other, known], np.int32), (len(QUERIES), 1))
        joined = find(search, more=more).labels[0]
        assert (joined == other).sum() == 1
        assert (joined == known).sum() == 1
        assert set(joined.tolist()) - {-1} == {*first.labels[0].tolist(), other} - {-1}

    def test_a_point_of_which_nothing_is_known_has_no_candidates(self, search):
        queries = QUERIES.copy()
        queries[3] = 0
        labels, votes, nearness = find(search, queries, more=np.full((len(queries), 2), 9))
        assert (labels[3] == -1).all()
        assert not votes[3].any()
        assert nearness[3] == 0
        rest = np.arange(len(queries)) != 3
        assert (labels[rest] >= 0).any(axis=1).all()

    def test_threads_and_other_rows_do_not_matter(self, search):
        queries = unit_rows(600, 4)
        whole = find(search, queries)
        assert_same(find(search, queries, n_threads=3), whole)
        for row in (0, 255, 256, 599):
            assert_same(find(search, queries[[row]]), [part[[row]] for part in whole])

    def test_no_points_to_answer(self, search):
        labels, votes, nearness = find(search, QUERIES[:0])
        assert labels.shape == votes.shape
        assert len(labels) == len(nearness) == 0

    def test_a_label_without_a_vector_is_found_by_its_points_alone(self):
        has = np.zeros((N_POINTS, N_LABELS), bool)
        has[0, UNKNOWN] = True
        made = build(replace(SIZES, n_popular=0), has=has)
        assert UNKNOWN in find(made, POINTS[:1]).labels
        assert UNKNOWN not in find(made, -POINTS[:1]).labels

    def test_a_bias_stays_with_its_label_where_others_have_no_vector(self):
        vectors = LABEL_VECTORS.copy()
        vectors[[0, 3]] = 0
        bias = np.linspace(-1, 1, N_LABELS, dtype=np.float32)
        made = build(label_vectors=vectors, bias=bias)
        known = np.flatnonzero(vectors.any(axis=1))
        np.testing.assert_array_equal(search_bias_of(made.label_index), bias[known])


class TestSizes:
    def test_without_near_points_nobody_votes(self):
        labels, votes, nearness = find(build(replace(SIZES, n_near_points=0)))
        with_points = find(build(SIZES))
        np.testing.assert_array_equal(labels[:, :5], with_points.labels[:, :5])
        assert ((labels >= 0).sum(axis=1) <= 5 + 3).all()
        assert not votes.any()
        assert not nearness.any()

    def test_huge_sizes_take_what_there_is(self):
        huge = SearchSizes(
            n_near_labels=MANY, n_near_points=MANY, n_voted=MANY, n_popular=MANY, beam_size=MANY
        )
        labels, votes, _ = find(build(huge))
        assert labels.shape == (len(QUERIES), N_LABELS)
        for query, row, own in zip(QUERIES, labels, votes, strict=True):
            assert sorted(row.tolist()) == list(range(N_LABELS))
            expected = np.maximum(POINTS @ query, 1e-6) ** 2 @ HAS
            np.testing.assert_allclose(own, expected[row], rtol=1e-4)

    def test_no_more_places_than_labels_that_can_be_found(self):
        vectors = LABEL_VECTORS.copy()
        vectors[6:] = 0
        sizes = SearchSizes(n_near_labels=MANY, n_near_points=2, n_voted=4, n_popular=3)
        labels = find(build(sizes, label_vectors=vectors), more=np.zeros((len(QUERIES), 2))).labels
        assert labels.shape[1] == 6 + 3 + 4 + 2

    def test_only_labels_that_occur_are_popular(self):
        has = np.zeros((4, N_LABELS), bool)
        has[:, 11] = has[0, 30] = True
        assert build(replace(SIZES, n_popular=10), has=has).popular.tolist() == [11, 30]

    def test_no_label_has_a_vector(self):
        made = build(label_vectors=np.zeros_like(LABEL_VECTORS))
        labels, votes, _ = find(made)
        assert (labels[:, :3] == made.popular).all()
        assert votes.any()


def confused(search, **settings):
    starts, labels = search.confused(**settings)
    return np.split(labels, starts[1:-1])


class TestConfused:
    def test_labels_of_near_points_and_popular_ones(self, search, monkeypatch):
        monkeypatch.setattr(candidates, "N_CONFUSED_LABELS", N_LABELS)
        monkeypatch.setattr(candidates, "LEAST_CONFUSED", 0)
        labels = confused(search)
        near = search.point_index.near_rows(32)
        for point in range(0, N_POINTS, 29):
            expected = HAS[near[point][near[point] >= 0]].any(axis=0)
            expected[search.popular] = True
            np.testing.assert_array_equal(np.sort(labels[point]), np.flatnonzero(expected))

    def test_only_labels_that_many_near_points_have(self, search, monkeypatch):
        monkeypatch.setattr(candidates, "N_CONFUSED_LABELS", 2)
        monkeypatch.setattr(candidates, "LEAST_CONFUSED", 0)
        labels = confused(replace(search, popular=np.array([0])))
        near = search.point_index.near_rows(32)
        assert len(labels) == N_POINTS
        for point in range(0, N_POINTS, 29):
            counts = HAS[near[point][near[point] >= 0]].sum(axis=0)
            assert len(labels[point]) <= 3
            assert counts[labels[point][1:]].min() >= np.sort(counts)[-3]

    def test_popular_ones_of_so_many_points_alone(self, search, monkeypatch):
        monkeypatch.setattr(candidates, "N_CONFUSED_LABELS", 0)
        monkeypatch.setattr(candidates, "LEAST_CONFUSED", 0)
        monkeypatch.setattr(candidates, "MOST_FAR", N_POINTS // 2)
        monkeypatch.setattr(candidates, "_POINTS_AT_ONCE", 16)
        labels = confused(search, seed=3)
        with_popular = np.array([len(own) > 0 for own in labels])
        assert 0.3 < with_popular.mean() < 0.7
        for own in labels:
            assert len(own) == 0 or own.tolist() == search.popular.tolist()
        others = confused(search, seed=4)
        assert (with_popular != [len(own) > 0 for own in others]).any()

    def test_some_are_drawn_where_near_points_have_few(self, search, monkeypatch):
        monkeypatch.setattr(candidates, "LEAST_CONFUSED", N_LABELS - 1)
        labels = confused(search, seed=1)
        assert all(len(set(own.tolist())) == len(own) >= N_LABELS - 1 for own in labels)
        others = confused(search, seed=2)
        assert any(
            own.tolist() != other.tolist() for own, other in zip(labels, others, strict=True)
        )

    def test_threads_and_parts_change_nothing(self, search, monkeypatch):
        whole = search.confused(1, seed=5)
        monkeypatch.setattr(candidates, "_POINTS_AT_ONCE", 7)
        for part, own in zip(whole, search.confused(2, seed=5), strict=True):
            np.testing.assert_array_equal(part, own)


class TestArrays:
    def test_saved_and_loaded_finds_the_same(self, search, tmp_path):
        arrays = {}
        for name, array in search.to_arrays().items():
            np.save(tmp_path / f"{name}.npy", array)
            arrays[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        again = CandidateSearch.from_parts(json.loads(json.dumps(search.config())), arrays)
        assert type(again.label_index) is type(search.label_index)
        assert_same(find(again), find(search))
        assert again.config() == search.config()

    def test_pickled_after_use_finds_the_same(self, search):
        expected = find(search)
        again = pickle.loads(pickle.dumps(search))  # noqa: S301 - our own bytes
        assert_same(find(again), expected)

    @pytest.mark.parametrize(
        ("name", "place", "value"),
        [
            ("label_of_row", 0, N_LABELS),
            ("label_of_row", 0, -1),
            ("label_ids", 5, N_LABELS),
            ("label_ids", 5, -2),
            ("popular", 0, MANY),
            ("label_starts", 0, 1),
            ("label_starts", 7, MANY),
            ("label_starts", -1, 0),
        ],
    )
    def test_refuses_values_out_of_range(self, search, name, place, value):
        arrays = search.to_arrays()
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value
        with pytest.raises(InputError, match="do not belong together"):
            CandidateSearch.from_parts(search.config(), arrays)

    @pytest.mark.parametrize("name", ["label_of_row", "label_starts", "label_ids"])
    def test_refuses_arrays_cut_short(self, search, name):
        arrays = search.to_arrays()
        arrays[name] = arrays[name][:-1]
        with pytest.raises(InputError, match="do not belong together"):
            CandidateSearch.from_parts(search.config(), arrays)


class TestSearchRows:
    def test_of_an_exact_index_are_its_own(self):
        vectors, places = search_rows_of(ExactIndex(POINTS))
        np.testing.assert_array_equal(vectors, POINTS)
        assert places.tolist() == list(range(N_POINTS))

    def test_of_a_graph_are_kept_once(self):
        rows = POINTS[np.random.default_rng(5).integers(0, 40, 100)]
        vectors, places = search_rows_of(GraphIndex.build(rows, seed=0))
        assert len(vectors) == len(np.unique(rows, axis=0))
        assert places.dtype == np.int32
        np.testing.assert_array_equal(vectors[places], rows)


class TestOfASearchThatIsNotKept:
    """What is asked a few times is not worth a graph of its labels."""

    @pytest.mark.parametrize(("n_asked", "kind"), [(50, CodedIndex), (5_000, GraphIndex)])
    def test_few_questions_look_at_every_label(self, monkeypatch, n_asked, kind):
        monkeypatch.setattr(stored, "EXACT_BELOW", 0)
        monkeypatch.setattr(search_indices, "PRODUCTS_OF_BUILDING", 100)
        monkeypatch.setattr(search_indices, "PRODUCTS_OF_WALK", 10)
        made = build(n_asked=n_asked)
        assert isinstance(made.label_index, kind)
        assert isinstance(made.point_index, GraphIndex)
        if kind is GraphIndex:  # few neighbours are soon made
            widths = [each.label_index.neighbours.shape[1] for each in (made, build())]
            assert widths[0] == search_indices.N_POINT_NEIGHBOURS < widths[1]
        # In seven bits a number, the last label may be another.
        found, others = (np.sort(find(some).labels, axis=1) for some in (made, build()))
        assert (found == others).mean() > 0.99

    def test_of_few_labels_every_one_is_looked_at_however_often(self, monkeypatch):
        monkeypatch.setattr(stored, "EXACT_BELOW", 0)
        assert isinstance(build(n_asked=10**9).label_index, ExactIndex)
