"""Both indexes: right answers, the same for one row and many, and from a memory map."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from longtail.errors import InputError
from longtail.index import ExactIndex, GraphIndex, recall_against_exact
from longtail.index import graph_building as graph_module
from longtail.index.coded import CodedIndex
from longtail.model_folder import ModelFolder, write_model_folder


def unit_rows(seed, n, d=24, n_clusters=10):
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((n_clusters, d))
    rows = centres[random.integers(0, n_clusters, n)] + random.standard_normal((n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


VECTORS = unit_rows(1, 1500)
QUERIES = unit_rows(2, 150)


@pytest.fixture(scope="module")
def graph():
    return GraphIndex.build(VECTORS, seed=3, n_threads=2)


@pytest.fixture(params=["exact", "coded", "graph"])
def index(request, graph):
    kinds = {"exact": ExactIndex, "coded": CodedIndex}
    return graph if request.param == "graph" else kinds[request.param](VECTORS, n_threads=2)


BIAS = np.random.default_rng(4).random(len(VECTORS)).astype(np.float32) / 2


@pytest.mark.parametrize("make", [ExactIndex, CodedIndex, GraphIndex.build])
def test_a_bias_is_added_to_the_inner_products(make):
    index = make(VECTORS, bias=BIAS)
    ids, similarities = index.query(QUERIES, 20)
    biased = QUERIES @ VECTORS.T + BIAS
    best = np.argsort(-biased, axis=1)[:, :20]
    found = [len(set(some) & set(all_)) for some, all_ in zip(ids, best, strict=True)]
    assert sum(found) > 0.97 * best.size
    np.testing.assert_allclose(
        similarities,
        np.take_along_axis(biased, ids, axis=1),
        atol=2e-6 if make != CodedIndex else 0.02,
    )
    without = make(VECTORS).query(QUERIES, 20)[0]
    assert (without != ids).mean() > 0.5


@pytest.mark.parametrize("kind", [ExactIndex, GraphIndex])
def test_a_biased_index_is_made_again(kind):
    twice, bias = np.concatenate([VECTORS, VECTORS[:9]]), np.append(BIAS, BIAS[:9])
    made = (
        GraphIndex.build(twice, bias=bias) if kind is GraphIndex else ExactIndex(twice, bias=bias)
    )
    again = kind.from_arrays(made.to_arrays())
    for one, other in zip(again.query(QUERIES, 9), made.query(QUERIES, 9), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_bias_parts_equal_vectors():
    index = GraphIndex.build(np.ones((3, 2)), bias=[0, 1, 0])
    ids, similarities = index.query(np.ones((1, 2)), 3)
    assert (ids.tolist(), similarities.tolist()) == ([[1, 0, 2]], [[3, 2, 2]])
    assert len(index.vectors) == 2


def test_a_bias_of_other_vectors_is_refused():
    with pytest.raises(InputError, match=r"3 vectors needs as many biases, got \(2,\)"):
        ExactIndex(np.ones((3, 2)), bias=[0, 1])


def test_exact_agrees_with_sorting():
    ids, similarities = ExactIndex(VECTORS).query(QUERIES, 7)
    products = QUERIES.astype(np.float64) @ VECTORS.T.astype(np.float64)
    np.testing.assert_array_equal(ids, np.argsort(-products, axis=1)[:, :7])
    np.testing.assert_allclose(similarities, -np.sort(-products)[:, :7], rtol=1e-5, atol=1e-6)


def test_graph_finds_nearly_all(graph):
    assert recall_against_exact(graph, ExactIndex(VECTORS), QUERIES, 100) > 0.99
    assert recall_against_exact(graph, ExactIndex(VECTORS), QUERIES, 5) > 0.99


def test_codes_find_nearly_all():
    ids, similarities = CodedIndex(VECTORS).query(QUERIES * 3, 30)
    exact, _ = ExactIndex(VECTORS).query(QUERIES * 3, 30)
    n_found = sum(len(set(some) & set(all_)) for some, all_ in zip(ids, exact, strict=True))
    assert n_found > 0.98 * exact.size
    products = 3 * np.take_along_axis(QUERIES @ VECTORS.T, ids, axis=1)
    np.testing.assert_allclose(similarities, products, atol=0.05)
    assert (np.diff(similarities, axis=1) <= 0).all()


def test_codes_of_no_vector_at_all():
    ids, similarities = CodedIndex(np.zeros((1, 3))).query(np.zeros((1, 3)), 2)
    assert (ids.tolist(), similarities.tolist()) == ([[0, -1]], [[0, -np.inf]])


def test_a_wider_beam_finds_more():
    exact = ExactIndex(VECTORS)
    narrow = GraphIndex.build(VECTORS, n_neighbours=4, beam_size=10)
    wide = GraphIndex.from_arrays(narrow.to_arrays(), beam_size=400)
    found_narrow = recall_against_exact(narrow, exact, QUERIES, 10)
    found_wide = recall_against_exact(wide, exact, QUERIES, 10)
    assert found_narrow < found_wide
    assert found_wide > 0.98


def test_a_beam_is_as_wide_as_what_is_wanted():
    narrow = GraphIndex.build(VECTORS, beam_size=2)
    assert recall_against_exact(narrow, ExactIndex(VECTORS), QUERIES, 50) > 0.9


def test_one_row_is_the_row_of_a_batch(index):
    ids, similarities = index.query(QUERIES, 20)
    for row in range(0, len(QUERIES), 7):
        one_ids, one_similarities = index.query(QUERIES[row : row + 1], 20)
        np.testing.assert_array_equal(one_ids[0], ids[row])
        np.testing.assert_array_equal(one_similarities[0], similarities[row])


@pytest.mark.parametrize("d", [1, 3, 17, 70])
def test_exact_rows_do_not_depend_on_the_batch(d):
    vectors, queries = unit_rows(1, 67, d), unit_rows(2, 35, d)
    ids, similarities = ExactIndex(vectors).query(queries, 67)
    for start in (0, 1, 13, 34):
        part_ids, part = ExactIndex(vectors).query(queries[start:], 67)
        np.testing.assert_array_equal(part_ids, ids[start:])
        np.testing.assert_array_equal(part, similarities[start:])
    # Nor on which vectors stand beside one.
    alone_ids, alone = ExactIndex(vectors[66:]).query(queries, 1)
    np.testing.assert_array_equal(alone[:, 0], similarities[ids == 66])
    assert (alone_ids == 0).all()


def test_results_are_descending_with_ties_by_id(index):
    ids, similarities = index.query(QUERIES, 50)
    assert ids.dtype == np.int32
    assert similarities.dtype == np.float32
    falls = similarities[:, 1:] < similarities[:, :-1]
    ties = (similarities[:, 1:] == similarities[:, :-1]) & (ids[:, 1:] > ids[:, :-1])
    assert (falls | ties).all()


def test_threads_querying_at_once_agree(index):
    expected = index.query(QUERIES, 10)[0]
    with ThreadPoolExecutor(4) as pool:
        for ids, _ in pool.map(lambda _: index.query(QUERIES, 10), range(12)):
            np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize("limit", [graph_module.MAX_EXACT_BUILD, 100])
def test_the_same_seed_gives_the_same_bytes(monkeypatch, limit):
    monkeypatch.setattr(graph_module, "MAX_EXACT_BUILD", limit)
    one = GraphIndex.build(VECTORS, seed=5, n_threads=1).to_arrays()
    two = GraphIndex.build(VECTORS, seed=5, n_threads=3).to_arrays()
    other = GraphIndex.build(VECTORS, seed=6, n_threads=1).to_arrays()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)
    assert one["entries"].tobytes() != other["entries"].tobytes()


def test_the_build_for_many_rows_finds_nearly_all(monkeypatch):
    monkeypatch.setattr(graph_module, "MAX_EXACT_BUILD", 100)
    monkeypatch.setattr(graph_module, "JOINED_PER_EDGE", 9)
    index = GraphIndex.build(VECTORS)
    assert recall_against_exact(index, ExactIndex(VECTORS), QUERIES, 50) > 0.98


def test_the_more_rows_are_joined_the_more_are_found(monkeypatch):
    monkeypatch.setattr(graph_module, "MAX_EXACT_BUILD", 100)
    monkeypatch.setattr(graph_module, "_MIN_PROBES", 1)
    exact = ExactIndex(VECTORS)
    recalls = [
        recall_against_exact(
            GraphIndex.build(VECTORS, n_neighbours=8, beam_size=50, joined_per_edge=n),
            exact,
            QUERIES,
            50,
        )
        for n in (1, 128)
    ]
    assert recalls[0] < recalls[1]


def test_many_rows_in_tight_knots_are_found_from_more_entries(monkeypatch):
    vectors = unit_rows(0, 6_000, d=64, n_clusters=300)
    queries = vectors[::40]
    exact = ExactIndex(vectors).query(queries, 5)[1]
    found = []
    for many in (len(vectors), len(vectors) - 1):
        monkeypatch.setattr(graph_module, "_MANY_NODES", many)
        index = GraphIndex.build(vectors, n_neighbours=8, beam_size=8)
        assert len(index.entries) >= (78 if many == len(vectors) else 620)
        found.append((index.query(queries, 5)[1] >= exact[:, -1:] - 1e-5).mean())
    assert found[1] > found[0]


def test_every_knot_has_an_entry_where_there_are_as_many():
    random = np.random.default_rng(0)
    knots = np.repeat(random.permutation(40), 40)
    vectors = unit_rows(1, 40, d=32)[knots] + 0.01 * random.standard_normal((1600, 32))
    entries = GraphIndex.build(vectors.astype(np.float32), n_neighbours=8).entries
    assert len(entries) >= 40
    assert len(set(knots[entries[:40]])) > 38  # of as many at random, 25


def test_walks_begin_at_vectors_of_large_bias_too():
    bias, large = np.zeros(len(VECTORS), np.float32), np.arange(7, len(VECTORS), 50)
    bias[large] = 2
    index = GraphIndex.build(VECTORS, bias=bias)
    rows = index.members[index.member_starts[index.entries]]
    assert set(large.tolist()) < set(rows.tolist())
    assert len(rows) == len(set(rows.tolist())) < len(VECTORS) / 3


def test_entries_are_spread_where_none_are_alike():
    none, places = np.empty((0, 2), np.int64), np.array([0, 2, 5, 7])
    np.testing.assert_array_equal(graph_module._unlike(none, 10, 4), places)


def test_a_clump_larger_than_a_cluster_may_be(monkeypatch):
    monkeypatch.setattr(graph_module, "MAX_EXACT_BUILD", 100)
    monkeypatch.setattr(graph_module, "_LARGEST_CLUSTER", 50)
    clump = VECTORS[0] + 0.02 * np.random.default_rng(0).standard_normal((1500, 24))
    clump = (clump / np.linalg.norm(clump, axis=1, keepdims=True)).astype(np.float32)
    vectors = np.concatenate([VECTORS, clump[:1000]])
    index = GraphIndex.build(vectors)
    assert recall_against_exact(index, ExactIndex(vectors), QUERIES, 50) > 0.98
    assert recall_against_exact(index, ExactIndex(vectors), clump[1000:], 50) > 0.98


@pytest.mark.parametrize("kind", [ExactIndex, GraphIndex])
def test_a_memory_mapped_index_gives_the_same(tmp_path, kind):
    made = GraphIndex.build(VECTORS) if kind is GraphIndex else ExactIndex(VECTORS)
    arrays = {f"index/{name}": array for name, array in made.to_arrays().items()}
    write_model_folder(tmp_path / "m", manifest={}, arrays=arrays)
    mapped = ModelFolder.open(tmp_path / "m").arrays
    opened = kind.from_arrays({name.partition("/")[2]: mapped[name] for name in mapped})
    assert np.shares_memory(opened.vectors, mapped["index/vectors"])
    for one, other in zip(opened.query(QUERIES, 9), made.query(QUERIES, 9), strict=True):
        np.testing.assert_array_equal(one, other)


def test_scratch_stays_in_its_process(graph):
    own = GraphIndex.from_arrays(graph.to_arrays())
    size = len(pickle.dumps(own))
    own.query(QUERIES, 3)
    assert len(pickle.dumps(own)) == size


def test_near_rows_are_others_and_nearer_than_most(index):
    near = index.near_rows(8)
    assert near.shape == (len(index.vectors), 8)
    similarities = index.vectors @ index.vectors.T
    for row in range(0, len(near), 50):
        others = near[row][near[row] >= 0]
        assert len(others) > 3
        assert row not in others
        assert np.median(similarities[row, others]) > np.quantile(similarities[row], 0.9)


def test_of_equal_rows_the_first_is_near():
    vectors = unit_rows(5, 40)[[0, 1, 2, *range(40)]]  # rows 3 to 5 are rows 0 to 2 again
    graph = GraphIndex.build(vectors, seed=0)
    near = graph.near_rows(32)
    np.testing.assert_array_equal(near[:3], near[3:6])
    assert not np.isin(near, [3, 4, 5]).any()
    np.testing.assert_array_equal(graph.vectors[graph.node_of_row()], vectors)


def test_near_rows_of_few_rows():
    assert ExactIndex(np.eye(1, dtype=np.float32)).near_rows(5).shape == (1, 0)
    assert ExactIndex(np.eye(3, dtype=np.float32)).near_rows(5).shape == (3, 2)


def test_equal_rows_share_a_node_and_are_all_found():
    vectors = np.repeat(VECTORS[:20], 100, axis=0)
    index = GraphIndex.build(vectors)
    assert len(index.vectors) == 20
    ids, similarities = index.query(VECTORS[3:4], 130)
    assert ids[0, :100].tolist() == list(range(300, 400))
    expected_ids, expected = ExactIndex(vectors).query(VECTORS[3:4], 130)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(similarities, expected, rtol=1e-6)


def test_vectors_given_up_are_not_copied_where_some_are_equal():
    """Of millions of points, of which a few are equal, the copy was as large as all else."""
    vectors = unit_rows(4, 60)[[*range(60), 7, *range(20, 40)]]
    kept, given_up = GraphIndex.build(vectors).to_arrays(), vectors.copy()
    arrays = GraphIndex.build(given_up, in_place=True).to_arrays()
    assert np.shares_memory(arrays["vectors"], given_up)
    assert len(arrays["vectors"]) == 60
    for name, array in kept.items():
        np.testing.assert_array_equal(arrays[name], array)


def test_tight_clusters_far_apart_can_all_be_reached():
    random = np.random.default_rng(0)
    vectors = np.repeat(unit_rows(4, 30), 60, axis=0)
    vectors = vectors + 1e-5 * random.standard_normal(vectors.shape).astype(np.float32)
    index = GraphIndex.build(vectors)
    assert recall_against_exact(index, ExactIndex(vectors), QUERIES, 150) > 0.98


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_vectors_pad_the_answer(n):
    vectors = np.eye(5, dtype=np.float32)[:n]
    for index in (ExactIndex(vectors), GraphIndex.build(vectors)):
        ids, similarities = index.query(vectors, 8)
        assert ids[0, 0] == 0
        assert ids[0, :n].tolist() == list(range(n))
        assert (ids[:, n:] == -1).all()
        assert (similarities[:, n:] == -np.inf).all()


def test_no_queries_and_no_vectors(graph):
    assert graph.query(QUERIES[:0], 3)[0].shape == (0, 3)
    assert (ExactIndex(VECTORS[:0]).query(QUERIES, 3)[0] == -1).all()
    with pytest.raises(InputError, match="at least one vector"):
        GraphIndex.build(VECTORS[:0])


def test_wrong_queries(index):
    with pytest.raises(InputError, match="5 dimensions and the index 24"):
        index.query(np.ones((2, 5), np.float32), 3)
    with pytest.raises(InputError, match=r"shape \(n, d\)"):
        index.query(QUERIES[0], 3)
    with pytest.raises(InputError, match="k must be at least 1"):
        index.query(QUERIES, 0)
    broken = QUERIES.copy()
    broken[4, 1] = np.nan
    with pytest.raises(InputError, match="Query 4 holds NaN"):
        index.query(broken, 3)


def test_wrong_vectors():
    with pytest.raises(InputError, match="NaN"):
        GraphIndex.build(np.full((3, 2), np.inf, np.float32))
    for large in (1e16, 1e30):
        with pytest.raises(InputError, match=r"vectors hold NaN, infinity or .*beyond 1e\+15"):
            GraphIndex.build(VECTORS * np.float32(large))
    with pytest.raises(InputError, match="vectors of the index hold"):
        ExactIndex(VECTORS * np.float32(1e30)).query(QUERIES * np.float32(1e15), 3)
    with pytest.raises(InputError, match="Query 0 holds NaN, infinity or numbers beyond"):
        ExactIndex(VECTORS).query(QUERIES * np.float32(1e30), 3)
    with pytest.raises(InputError, match="vectors of real numbers, got complex64"):
        ExactIndex(VECTORS.astype(np.complex64))
    with pytest.raises(InputError, match="n_neighbours"):
        GraphIndex.build(VECTORS, n_neighbours=1)
    with pytest.raises(InputError, match=r"at most 65536 dimensions, got 65537.*ExactIndex"):
        GraphIndex.build(np.ones((1, 65_537), np.float32))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("neighbours", lambda array: array + len(array)),
        ("neighbours", lambda array: array - 2),
        ("entries", lambda array: array - 10_000),
        ("members", lambda array: array[:-1]),
        ("member_starts", lambda array: array[::-1]),
        ("vectors", lambda array: array[:-1]),
    ],
)
def test_arrays_that_do_not_belong_together(graph, name, change):
    arrays = graph.to_arrays()
    arrays[name] = change(arrays[name])
    with pytest.raises(InputError, match="do not belong together"):
        GraphIndex.from_arrays(arrays)
    del arrays[name]
    with pytest.raises(InputError, match=name):
        GraphIndex.from_arrays(arrays)


def test_near_rows_are_told_by_the_vectors_alone():
    angles = np.array([0.0, 0.1, 0.3, 1.5])
    index = ExactIndex(np.stack([np.cos(angles), np.sin(angles)], axis=1), bias=[0, 0, 0, 9])
    assert index.near_rows(1).tolist() == [[1], [0], [1], [2]]


def test_a_row_of_many_equal_ones_is_not_near_itself():
    near = ExactIndex(np.ones((5, 2))).near_rows(2)
    assert near.shape == (5, 2)
    assert not (near == np.arange(5)[:, np.newaxis]).any()


@pytest.mark.parametrize("index", [ExactIndex, CodedIndex])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_no_numbers_are_told(index, wrong):
    vectors = np.eye(3, dtype=np.float32)
    vectors[1, 1] = wrong
    with pytest.raises(InputError, match="NaN, infinity"):
        index(vectors).query(np.ones((1, 3), np.float32), k=3)
