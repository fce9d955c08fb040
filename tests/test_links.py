"""Which labels training points are themselves, and how these link labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from longtail.blend.links import MOST_LINKS, TEXT_ALONE, Links, own_labels
from longtail.blend.matches import Matches

N = 12


def carried_by_neighbours(n=N):
    """Point i is label i, and carries the labels before and behind: all run both ways."""
    return csr_array((np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1)).astype("f"))


def likest(candidates, products=None):
    """Labels that points may be, all as like their texts unless products are given."""
    width = max(map(len, candidates))
    ids = np.full((len(candidates), width), -1, np.int32)
    strengths = np.zeros((len(candidates), width), np.float32)
    for row, own in enumerate(candidates):
        ids[row, : len(own)] = own
        strengths[row, : len(own)] = 0.5 if products is None else products[row]
    return Matches(ids, strengths)


def linked(links, label):
    """The labels of which links are more than a little, the strongest first."""
    row = links.weights.toarray()[label]
    return [int(other) for other in np.argsort(-row, kind="stable") if row[other] > 0.1 * row.max()]


def of_points(candidates, labels, **options):
    products = options.pop("products", None)
    return Links.of_points(likest(candidates, products), labels, n_threads=1, **options)


def test_a_label_is_linked_to_the_points_that_carry_it():
    links = of_points([[i] for i in range(N)], carried_by_neighbours())
    assert sorted(linked(links, 4)) == [3, 5]
    np.testing.assert_allclose(links.taken, 1)
    np.testing.assert_allclose(links.weights.data, 0.5)  # as far as the texts are like the points


def test_of_labels_of_one_text_a_point_is_that_which_its_labels_carry():
    """Labels i and i + N have one text; nothing but who carries what tells them apart."""
    both_ways = carried_by_neighbours()
    labels = csr_array((both_ways.data, both_ways.indices, both_ways.indptr), shape=(N, 2 * N))
    # Label N + 3 is the one that points 2 and 4 carry, label 3 is nobody's.
    labels = labels.toarray()
    labels[[2, 4], N + 3], labels[[2, 4], 3] = 1, 0
    links = of_points([[i, i + N] for i in range(N)], csr_array(labels))
    assert sorted(linked(links, 4)) == [5, N + 3]
    assert links.taken[N + 3] == pytest.approx(1)
    assert links.taken[3] < 1e-3


def test_a_point_does_not_carry_its_own_label():
    """Its text is most like a label that it carries: a part is named after the whole."""
    candidates, products = [[1, 0], *([i] for i in range(1, N))], [[0.9, 0.8], *[[0.9]] * (N - 1)]
    links = of_points(candidates, carried_by_neighbours(), products=products)
    assert sorted(linked(links, 1)) == [0, 2]
    np.testing.assert_allclose(links.taken, 1)


def test_where_points_carry_their_likest_labels_these_may_be_own():
    both_ways = carried_by_neighbours() + csr_array(np.eye(N, dtype=np.float32))
    links = of_points([[i] for i in range(N)], both_ways.tocsr())
    assert sorted(linked(links, 4)) == [3, 4, 5]
    np.testing.assert_allclose(links.taken, 1)


def test_a_label_is_one_points_own():
    """Both texts are most like label 0, of which but one point is what carries its labels."""
    labels = np.zeros((3, 4), np.float32)
    labels[0, 2] = labels[1, 3] = labels[2, 0] = 1  # point 2 is label 2
    links = of_points([[0, 1], [0, 1], [2]], csr_array(labels))
    assert linked(links, 2) == [0]
    np.testing.assert_allclose(links.taken[[0, 2]], 1)
    # Of point 1 the text alone tells, which leaves label 1 to it.
    weights = links.weights.toarray()
    assert weights[3, 1] > 5 * weights[3, 0]


def test_the_text_alone_counts_less():
    one_way = csr_array(np.array([[0, 1]], np.float32))
    links = of_points([[0]], one_way)
    assert links.taken.tolist() == pytest.approx([TEXT_ALONE, 0])
    assert links.weights.toarray()[1, 0] == pytest.approx(TEXT_ALONE * 0.5)


def test_by_its_text_alone_only_the_likest_label_is_a_points_own():
    one_way = csr_array(np.array([[0, 0, 1]], np.float32))
    links = of_points([[0, 1]], one_way, products=[[0.5, 0.4]])
    assert linked(links, 2) == [0]


def test_further_points_take_what_is_left():
    """Labels 1 and 2 have one text, and one of them is a known point's own."""
    labels = csr_array(np.array([[1, 0, 0]], np.float32))
    no_links = csr_array((3, 3), dtype=np.float32)
    known = Links(no_links, np.array([0, 1, 0], np.float32))
    links = of_points([[1, 2]], labels, known=known)
    assert linked(links, 0) == [2]
    assert links.taken[1] == 1


def test_further_points_are_told_by_known_links_and_add_to_them():
    both_ways = carried_by_neighbours()
    first = of_points([[i] for i in range(N - 1)], both_ways[: N - 1])
    both = of_points([[3, N - 1]], both_ways[N - 1 :], known=first)
    assert (both.weights - first.weights).toarray().min() >= 0
    assert sorted(linked(both, 0)) == [1, N - 1]
    assert both.taken[N - 1] == pytest.approx(1)


def test_no_points_and_points_that_nothing_matches():
    for n in (0, 2):
        labels = csr_array(np.ones((n, 3), np.float32))
        empty = Matches(np.full((n, 4), -1, np.int32), np.zeros((n, 4), np.float32))
        links = Links.of_points(empty, labels, n_threads=1)
        assert links.weights.nnz == 0
        assert not links.taken.any()
        assert links.weights.shape == (3, 3)


def test_threads_do_not_matter():
    random = np.random.default_rng(0)
    labels = csr_array(random_array((700, 90), density=0.05, rng=random), dtype=np.float32)
    ids = np.array([random.permutation(90)[:6] for _ in range(700)], np.int32)
    some = Matches(ids, np.sort(random.random((700, 6)).astype("f"), axis=1)[:, ::-1])
    one, other = (Links.of_points(some, labels, n_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(one.weights.toarray(), other.weights.toarray())
    np.testing.assert_array_equal(one.taken, other.taken)
    assert one.weights.nnz > MOST_LINKS


def test_the_order_of_a_points_labels_does_not_matter():
    labels = carried_by_neighbours()
    backwards = csr_array((labels.data, labels.indices.copy(), labels.indptr), shape=labels.shape)
    backwards.indices.reshape(N, 2)[:] = labels.indices.reshape(N, 2)[:, ::-1]
    one, other = (
        of_points([[i, (i + 1) % N] for i in range(N)], some) for some in (labels, backwards)
    )
    np.testing.assert_array_equal(one.weights.toarray(), other.weights.toarray())


def test_weights_lie_between_0_and_1():
    random = np.random.default_rng(1)
    ids = np.array([random.permutation(30)[:5] for _ in range(40)], np.int32)
    shares = random.random((40, 5)).astype("f")
    evidence = random.integers(-1, 3, (40, 5)).astype("f")
    before = random.random(30).astype("f")
    weights, taken = own_labels(ids, shares, evidence, before)
    assert weights.min() >= 0
    assert weights.max() <= 1
    assert (taken >= before).all()
    assert taken.max() <= 1
    is_told = (evidence > 0).any(axis=1)
    assert 5 < is_told.sum() < 40
    assert not weights[is_told][evidence[is_told] < 0].any()


def test_many_points_are_told_as_few_are(monkeypatch):
    random = np.random.default_rng(2)
    ids = np.array([random.permutation(30)[:5] for _ in range(40)], np.int32)
    shares = random.random((40, 5)).astype("f")
    evidence = random.integers(-1, 3, (40, 5)).astype("f")
    before = np.zeros(30, np.float32)
    whole = own_labels(ids, shares, evidence, before)
    assert not before.any()
    chunks = [slice(0, 7), slice(7, 39), slice(39, 40)]
    monkeypatch.setattr("longtail.blend.links.row_chunks", lambda n_rows: chunks)
    for one, other in zip(whole, own_labels(ids, shares, evidence, before), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_label_is_taken_as_far_as_it_is_a_points_own_in_the_end():
    """Each point carries a label that no other carries: links say whose own it is in the end."""
    random = np.random.default_rng(3)
    labels = csr_array(np.eye(N, dtype=np.float32)[random.permutation(N)])
    candidates = [random.permutation(N)[:4].tolist() for _ in range(N)]
    links = of_points(candidates, labels, products=[[0.5, 0.45, 0.4, 0.35]] * N)
    np.testing.assert_allclose(links.weights.toarray().max(axis=0), 0.5 * links.taken, rtol=1e-5)
