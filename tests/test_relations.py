"""What label texts say: kernels and their numpy twins, links that are found, broken arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from longtail.blend.links import MOST_LINKS, kept_links
from longtail.blend.matches import Matches
from longtail.blend.relations import MOST_POSTINGS, LabelRelations, RelationSizes
from longtail.data.bags import Bags
from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.relations import best_links, best_matches, link_votes, sharpen_rows
from longtail.kernels.sparse_lookup import SparseRows
from longtail.row_store import RowStore
from small_comparisons import assert_same

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("n_more", [0, 1])
def test_what_rare_features_say(n_more):
    others = [[1, 0, 0]] * (MOST_POSTINGS - 2 + n_more)
    texts = csr_array(np.array([[1, 2, 0], [1, 0, 3], *others], np.float32))
    none = csr_array((1, texts.shape[0]))
    relations = LabelRelations.build(csr_array((1, 3)), none, texts, n_threads=1)
    sums = relations.rare_sums(csr_array(np.array([[5, 1, 2]], np.float32))).toarray()
    # All labels have the first feature: of a hundred labels it is rare, of one more it is not.
    assert sums[0, :3].tolist() == ([2, 6, 0] if n_more else [7, 11, 5])


@few
@given(seeds)
def test_postings_are_what_is_rare_of_the_label_texts(seed):
    random, n_labels = np.random.default_rng(seed), MOST_POSTINGS + 20
    counts = random.integers(0, n_labels, 6)  # of the labels that have each feature
    has = random.permuted(np.arange(n_labels)[:, None] < counts, axis=0)
    texts = csr_array(np.where(has, random.random(has.shape, np.float32), 0))
    none = csr_array((1, n_labels))
    relations = LabelRelations.build(csr_array((1, 6)), none, texts, n_threads=1)
    store = RowStore("int8")
    postings = (relations.posting_starts, relations.posting_labels, relations.posting_weights)
    assert_same(store.sparse(*postings, n_labels), store.split(texts, relations.is_common).rare)


@few
@given(seeds)
def test_matches_as_a_matrix(seed):
    random = np.random.default_rng(seed)
    labels = np.argsort(random.random((5, 9)), axis=1)[:, :4].astype(np.int32)
    labels[random.random(labels.shape) < 0.3] = -1
    strengths = random.choice(np.float32([0, 1e-4, 0.5, 1]), labels.shape)
    dense = np.zeros((5, 9), np.float32)
    for row, label in np.argwhere((labels >= 0) & (strengths > 1e-3 * strengths.max(1)[:, None])):
        dense[row, labels[row, label]] = strengths[row, label]
    matrix = Matches(labels, strengths).by_point(9)
    np.testing.assert_array_equal(matrix.toarray(), dense)
    assert matrix.has_sorted_indices
    assert matrix.indices.dtype == np.int32


# ------------------------------------------------------------------------------------ the kernels


def numbers(random, *shape):
    """Small whole numbers, half of them 0: sums are exact, ties are many, a few are negative."""
    return random.integers(-1, 4, shape) * random.integers(0, 2, shape)


def as_rows(matrix, starts_dtype):
    """Starts, columns and values of a matrix, and entries of 0 among them, as kernels take them."""
    is_stored = (matrix != 0) | (np.arange(matrix.size).reshape(matrix.shape) % 5 == 0)
    starts = np.concatenate([[0], np.cumsum(is_stored.sum(axis=1))])
    return (
        read_only(starts, starts_dtype),
        read_only(np.nonzero(is_stored)[1], np.int32),
        read_only(matrix[is_stored], np.float32),
    )


def best_twin(values, k):
    """Of each row, the places of the largest values above 0, padded; and the values."""
    ids, best = np.full((len(values), k), -1), np.zeros((len(values), k))
    for i, row in enumerate(values):
        order = [place for place in np.argsort(-row, kind="stable") if row[place] > 0][:k]
        ids[i, : len(order)], best[i, : len(order)] = order, row[order]
    return ids, best


def some_matches(random, n, n_labels, size=4):
    """Distinct labels in each row, -1 behind them, and strengths."""
    labels = np.array([random.permutation(n_labels + size)[:size] for _ in range(n)])
    labels = np.where(labels < n_labels, labels, -1).reshape(n, size)
    labels = np.take_along_axis(labels, np.argsort(labels < 0, axis=1, kind="stable"), axis=1)
    strengths = random.integers(1, 4, (n, size))
    return read_only(labels, np.int32), read_only(strengths, np.float32)


def sparse_rows(matrix):
    return SparseRows(*as_rows(matrix, np.int64), read_only(np.zeros(0), np.float32))


def votes_twin(matches, strengths, links):
    """How strongly each point is linked to each label: what is not positive does not count."""
    votes = np.zeros((len(matches), len(links)))
    for i in range(len(matches)):
        for match, strength in zip(matches[i], strengths[i], strict=True):
            if match < 0:
                break
            votes[i] += np.maximum(strength * links[match], 0)
    return votes


def matches_twin(bags, texts, is_common, n_likely, k):
    """The k texts most like each bag of those that share most with it but for what is common.

    And their inner products, and how much they count.
    """
    likely, sums = best_twin(bags @ (texts * ~is_common).T, n_likely)
    products = bags @ texts.T
    chosen = np.zeros(products.shape)
    for i in range(len(bags)):
        own = likely[i][(likely[i] >= 0) & (3 * sums[i] >= sums[i, 0])]
        chosen[i, own] = products[i, own]
    ids, best = best_twin(chosen, k)
    return ids, best, best**2 * (best / np.maximum(best[:, :1], 1)) ** 32


@few
@given(seeds, st.integers(0, 9), st.integers(1, 12), st.integers(1, 8), st.integers(1, 8))
def test_best_matches(seed, n, n_labels, n_likely, k):
    random = np.random.default_rng(seed)
    bags, texts = numbers(random, n, 7), numbers(random, n_labels, 7)
    is_common = random.random(7) < random.choice([0, 0.4])
    sums, dense = np.zeros(n_labels, np.float32), np.zeros(is_common.sum() + 1, np.float32)
    ids, products = np.full((n, k), 77, np.int32), np.full((n, k), 77, np.float32)
    split = RowStore("float32").split(csr_array(texts.astype(np.float32)), is_common)
    own = (*as_rows(bags, np.int32), split)
    best_matches(*own, n_likely, 0, n, sums, dense, ids, products)
    expected = matches_twin(bags, texts, is_common, n_likely, k)
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_array_equal(products, expected[1])
    sharpen_rows(ids, products)
    np.testing.assert_allclose(products, expected[2], rtol=1e-4, atol=1e-12)
    assert not sums.any()
    assert not dense.any()


@few
@given(seeds, st.integers(0, 9), st.integers(1, 12), st.integers(1, 8))
def test_best_links(seed, n, n_labels, k):
    random = np.random.default_rng(seed)
    matches, links = some_matches(random, n, n_labels), numbers(random, n_labels, n_labels)
    scratch = np.zeros(n_labels, np.float32)
    linked = np.full((n, k), 77, np.int32)
    best_links(*matches, sparse_rows(links), 0, n, scratch, linked)
    np.testing.assert_array_equal(linked, best_twin(votes_twin(*matches, links), k)[0])
    assert not scratch.any()


@few
@given(seeds, st.integers(0, 9), st.integers(1, 12), st.integers(0, 8))
def test_link_votes(seed, n, n_labels, size):
    random = np.random.default_rng(seed)
    matches, links = some_matches(random, n, n_labels), numbers(random, n_labels, n_labels)
    labels = read_only(random.integers(-1, n_labels, (n, size)), np.int32)
    scratch = np.zeros(n_labels, np.float32)
    votes = np.full((n, size), 77, np.float32)
    link_votes(*matches, sparse_rows(links), labels, 0, n, scratch, votes)
    every = votes_twin(*matches, links)
    expected = np.where(labels < 0, 0, np.take_along_axis(every, labels.astype(int), axis=1))
    np.testing.assert_array_equal(votes, expected)
    assert not scratch.any()


def test_rows_outside_the_range_are_left_alone():
    random = np.random.default_rng(0)
    matches, links = some_matches(random, 5, 6), sparse_rows(numbers(random, 6, 6))
    linked = np.full((5, 3), 77, np.int32)
    best_links(*matches, links, 1, 3, np.zeros(6, np.float32), linked)
    assert (linked[[0, 3, 4]] == 77).all()
    assert (linked[1:3] < 6).all()


# ------------------------------------------------------------------------------------- relations


def unit(matrix):
    matrix = np.asarray(matrix, np.float32)
    return csr_array(matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9))


def ring(n=12):
    """Texts of things, each a word of its own and one of all; each refers to its neighbours."""
    texts = unit(np.column_stack([np.eye(n), np.full(n, 0.5)]))
    refers = np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1)
    return texts, csr_array(refers.astype(np.float32))


def ring_without_first(n=12, n_threads=1):
    """Relations learnt where point 0 is missing, and the bag of that point."""
    texts, refers = ring(n)
    relations = LabelRelations.build(texts[1:], refers[1:], texts, n_threads=n_threads)
    return relations, Bags.of(texts[:1])


def test_links_of_further_points_are_not_numbered_by_64_bits(monkeypatch):
    texts, refers = ring()
    relations = LabelRelations.build(texts[2:], refers[2:], texts, n_threads=1)
    kept = []
    monkeypatch.setattr(
        "longtail.blend.relations.kept_links", lambda links: kept.append(links) or kept_links(links)
    )
    relations.linked_also_by(texts[:2], refers[:2])
    assert kept[0].indices.dtype == np.int32


def made_up(n_points=600, n_labels=70):
    """Relations of random sparse texts, and bags with some empty ones among them."""
    random = np.random.default_rng(0)
    texts = unit(random_array((n_labels, 90), density=0.1, rng=random).toarray())
    points = unit(random_array((n_points, 90), density=0.04, rng=random).toarray())
    labels = random_array((n_points, n_labels), density=0.05, rng=random, format="csr")
    labels = csr_array(labels.astype(bool), dtype=np.float32)
    return LabelRelations.build(points, labels, texts, n_threads=2), Bags.of(points)


@pytest.fixture(scope="module")
def random_relations():
    return made_up()


def said(relations, bags, n_threads=1):
    """All that relations say of some bags."""
    matches = relations.matches(bags, n_threads)
    every = np.arange(-1, relations.texts.n_labels, dtype=np.int32)
    labels = np.tile(every, (bags.n_rows, 1))
    votes = relations.votes(matches, labels, n_threads)
    return (*matches, relations.linked(matches, n_threads), votes)


def test_what_refers_to_a_new_point_is_found():
    relations, new = ring_without_first()
    matches = relations.matches(new)
    assert matches.labels[0, 0] == 0
    assert matches.strengths[0, 0] == pytest.approx(1)
    linked = relations.linked(matches)[0]
    assert set(linked[:2].tolist()) == {1, 11}
    votes = relations.votes(matches, np.array([[1, 5, -1, 11]], np.int32))[0]
    assert votes[0] == pytest.approx(1, abs=0.1)
    assert votes[[0, 3]].min() > 5 * votes[1]
    assert votes[2] == 0


def test_a_label_is_linked_to_the_points_that_carry_it():
    relations, _ = ring_without_first()
    of_label = np.split(relations.link_labels, relations.link_starts[1:-1])
    assert of_label[4].tolist() == [3, 5]
    assert of_label[1].tolist() == [2]  # point 0, which carries it too, was not there


def test_common_tokens_match_nothing():
    n_labels = MOST_POSTINGS + 1
    texts, refers = ring(n_labels)
    relations = LabelRelations.build(texts, refers, texts, n_threads=1)
    common = Bags.one(np.array([n_labels], np.int32), np.ones(1, np.float32))
    assert (relations.matches(common).labels == -1).all()
    own = Bags.one(np.array([4, n_labels], np.int32), np.full(2, 0.7, np.float32))
    assert relations.matches(own).labels.tolist() == [[4, -1, -1, -1, -1]]


def test_labels_of_one_text_match_alike_and_links_tell_them_apart():
    """Label 12, which nobody carries, is no point's own, and whoever reads so matches it, too."""
    texts, refers = ring()
    alike = unit(np.vstack([texts.toarray(), texts.toarray()[3]]))  # label 12 reads as label 3
    points = csr_array(np.hstack([refers.toarray(), np.zeros((12, 1))]).astype(np.float32))
    relations = LabelRelations.build(texts, points, alike, n_threads=1)
    matches = relations.matches(Bags.of(texts[3:4]))
    assert matches.labels[0, :2].tolist() == [3, 12]
    np.testing.assert_allclose(matches.strengths[0], [1, 1, 0, 0, 0], atol=1e-3)
    of_label = np.split(relations.link_labels, relations.link_starts[1:-1])
    assert sorted(of_label[4].tolist()) == [3, 5]


def test_all_tokens_decide_between_likely_labels():
    """Of two labels with the same rare token, that which shares the common ones is the best."""
    n_others = MOST_POSTINGS + 1
    common = np.repeat(np.eye(2), n_others, axis=0)  # two tokens, each of too many labels
    rare = np.zeros((2 * n_others, 1))
    rare[[5, n_others + 5]] = 1
    texts = unit(np.hstack([common, rare]))
    nothing = csr_array((1, texts.shape[1]), dtype=np.float32)
    links = csr_array((1, texts.shape[0]), dtype=np.float32)
    relations = LabelRelations.build(nothing, links, texts, n_threads=1)
    bag = Bags.one(np.array([1, 2], np.int32), np.array([0.5, 0.5], np.float32))
    assert relations.matches(bag).labels[0, :3].tolist() == [n_others + 5, 5, -1]


def test_a_label_keeps_its_strongest_links():
    n = MOST_LINKS + 20
    texts = unit(np.eye(n))
    points = texts.toarray()
    points[: n - MOST_LINKS] *= 0.5  # their own labels are matched less well
    to_hub = np.zeros((n, n), np.float32)
    to_hub[:, 0] = 1
    relations = LabelRelations.build(csr_array(points), csr_array(to_hub), texts, n_threads=1)
    assert np.diff(relations.link_starts).tolist() == [MOST_LINKS] + [0] * (n - 1)
    assert sorted(relations.link_labels.tolist()) == list(range(n - MOST_LINKS, n))


def as_matrix(relations):
    parts = (relations.link_weights, relations.link_labels, relations.link_starts)
    return csr_array(parts, shape=(len(relations.link_starts) - 1,) * 2).toarray()


def test_further_points_add_to_the_links():
    texts, refers = ring(MOST_LINKS)  # so few that none is too many
    of_all = LabelRelations.build(texts, refers, texts, n_threads=1)
    of_some = LabelRelations.build(texts[:20], refers[:20], texts, n_threads=1)
    both = of_some.linked_also_by(texts[20:], refers[20:])
    np.testing.assert_allclose(as_matrix(both), as_matrix(of_all), rtol=1e-6)
    assert as_matrix(of_some).sum() < as_matrix(of_all).sum()
    none = of_some.linked_also_by(texts[:0], refers[:0])
    assert_same(said(none, Bags.of(texts)), said(of_some, Bags.of(texts)))


def test_fewer_labels_than_matches_are_padded():
    relations, new = ring_without_first(n=3)
    alone = LabelRelations.build(
        *(csr_array(np.ones((1, 1), np.float32)) for _ in range(3)), n_threads=1
    )
    bag = Bags.one(np.array([0], np.int32), np.ones(1, np.float32))
    assert alone.matches(bag).labels.tolist() == [[0, -1, -1, -1, -1]]
    linked = alone.linked(alone.matches(bag))
    assert linked.tolist() == [[0] + [-1] * (RelationSizes.n_linked - 1)]
    assert relations.matches(new).labels[0].tolist() == [0, -1, -1, -1, -1]


def test_a_bag_without_tokens_says_nothing():
    relations, _ = ring_without_first()
    empty = Bags(np.zeros(3, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
    labels, strengths, linked, votes = said(relations, empty)
    assert (labels == -1).all()
    assert (linked == -1).all()
    assert not strengths.any()
    assert not votes.any()
    assert linked.shape == (2, RelationSizes.n_linked)
    assert said(relations, empty.rows(0, 0))[0].shape == (0, RelationSizes.n_matches)


def test_points_of_which_nothing_matches_make_no_links():
    texts, refers = ring()
    nothing = csr_array(texts.shape, dtype=np.float32)
    relations = LabelRelations.build(nothing, refers, texts, n_threads=1)
    assert len(relations.link_labels) == 0
    assert (relations.linked(relations.matches(Bags.of(texts))) == -1).all()


def test_threads_and_other_rows_do_not_matter(random_relations):
    relations, bags = random_relations
    whole = said(relations, bags)
    assert (whole[0][:, 0] < 0).any()
    assert (whole[2] >= 0).any()
    assert_same(said(relations, bags, n_threads=3), whole)
    for row in (0, 255, 256, 599):
        assert_same(said(relations, bags.rows(row, row + 1)), [part[[row]] for part in whole])


def test_threads_do_not_change_what_is_built():
    first, second = (ring_without_first(n_threads=n)[0].to_arrays() for n in (1, 2))
    assert_same(first.values(), second.values())


def test_saved_and_loaded_says_the_same(random_relations, tmp_path):
    relations, bags = random_relations
    arrays = {}
    for name, array in relations.to_arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
        arrays[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    again = LabelRelations.from_arrays(arrays)
    assert_same(said(again, bags), said(relations, bags))
    copied = pickle.loads(pickle.dumps(relations))  # noqa: S301 - our own bytes
    assert_same(said(copied, bags), said(relations, bags))


def test_links_of_labels_that_are_training_points_count_less():
    """Labels 3 and 12 have one text, and label 3 is a training point: so a new one is label 12."""
    texts, refers = ring()
    alike = unit(np.vstack([texts.toarray(), texts.toarray()[3]]))
    carried = np.hstack([refers.toarray(), np.zeros((12, 1))])
    carried[8, 12] = 1  # of label 12, it is not known who is linked to it
    relations = LabelRelations.build(texts, csr_array(carried.astype("f")), alike, n_threads=1)
    votes = relations.votes(relations.matches(Bags.of(texts[3:4])), np.array([[2, 8]], np.int32))
    assert votes[0, 1] > 5 * votes[0, 0] > 0


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


BROKEN = {
    "posting label too large": ("posting_labels", lambda a: changed(a, 3, 12)),
    "negative posting label": ("posting_labels", lambda a: changed(a, 3, -1)),
    "link label too large": ("link_labels", lambda a: changed(a, 0, 2**31 - 1)),
    "negative link label": ("link_labels", lambda a: changed(a, -1, -5)),
    "postings begin late": ("posting_starts", lambda a: changed(a, 0, 1)),
    "postings end late": ("posting_starts", lambda a: changed(a, -1, 2**40)),
    "postings run back": ("posting_starts", lambda a: changed(a, 2, 20)),
    "links end early": ("link_starts", lambda a: changed(a, -1, 3)),
    "links run back": ("link_starts", lambda a: changed(a, 4, -7)),
    "too few link starts": ("link_starts", lambda a: np.delete(a, 3)),
    "no posting starts": ("posting_starts", lambda a: a[:0]),
    "too few posting weights": ("posting_weights", lambda a: a[:-1]),
    "too few link weights": ("link_weights", lambda a: a[:-1]),
    "labels taken of too few": ("taken", lambda a: a[:-1]),
    "other texts": ("texts.bias", lambda a: a[:-1]),
}


@pytest.mark.parametrize(("name", "damage"), BROKEN.values(), ids=BROKEN.keys())
def test_refuses_arrays_that_do_not_fit(name, damage):
    arrays = ring_without_first()[0].to_arrays()
    with pytest.raises(InputError, match=r"label relations do not belong|Sparse classifiers"):
        LabelRelations.from_arrays(arrays | {name: damage(arrays[name])})


@pytest.mark.parametrize("value", [0, -1, np.nan])
def test_weights_that_are_not_positive_do_not_count(value):
    """A damaged file may hold them; they must not lead a kernel out of bounds."""
    relations, new = ring_without_first()
    arrays = relations.to_arrays()
    for name in ("posting_weights", "link_weights"):
        arrays[name] = np.full_like(arrays[name], value)
    damaged = LabelRelations.from_arrays(arrays)
    assert (damaged.matches(new).labels == -1).all()
    matches = Matches(np.array([[0, 1, 2]], np.int32), np.ones((1, 3), np.float32))
    assert (damaged.linked(matches) == -1).all()
