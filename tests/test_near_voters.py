"""How many near training points vote for their labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import longtail
from longtail import LongtailClassifier
from longtail.blend.candidates import CandidateSearch, SearchSizes
from longtail.blend.near_voters import FEW_VOTERS, MANY_VOTERS, with_voters_for
from longtail.compiled.expanded import expanded
from longtail.recipes import longtail_training
from longtail.training.run import TrainingData

N_POINTS, N_GROUPS = 600, 6


def search_of(vectors, labels):
    sizes = SearchSizes()
    return CandidateSearch.build(
        vectors[:0], vectors, csr_array(labels), sizes=sizes, seed=0, n_threads=1
    )


def drawn(*, own_tells):
    """Points around the centres of groups; labels are their groups', or those of their place."""
    random = np.random.default_rng(0)
    centres = 4 * np.eye(N_GROUPS, dtype=np.float32)
    group = random.integers(0, N_GROUPS, 2 * N_POINTS)
    vectors = centres[group] + 0.2 * random.standard_normal((len(group), N_GROUPS))
    if own_tells:  # each point of the second half is one of the first, and has its label alone
        vectors[N_POINTS:] = vectors[:N_POINTS]
        label = np.tile(np.arange(N_POINTS), 2)
        labels = np.zeros((len(group), N_POINTS), np.float32)
        labels[np.arange(len(label)), label] = 1
    else:  # of a group's twenty labels, five are more frequent than the others
        chance = np.kron(np.eye(N_GROUPS), np.repeat([0.25, 0.1], [5, 15]))
        labels = (random.random((len(group), 20 * N_GROUPS)) < chance[group]).astype(np.float32)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return vectors, labels


@pytest.mark.parametrize(("own_tells", "expected"), [(False, MANY_VOTERS), (True, 20)])
def test_many_vote_where_one_says_little(own_tells, expected):
    vectors, labels = drawn(own_tells=own_tells)
    seen, truth = csr_array(labels[:N_POINTS]), csr_array(labels[N_POINTS:])
    search = search_of(vectors[:N_POINTS], seen)
    found = with_voters_for(search, vectors[N_POINTS:], truth, seen)
    assert found.sizes == replace(search.sizes, n_near_points=expected)


@pytest.mark.parametrize("n_usual", [20, FEW_VOTERS, 5])
def test_few_vote_where_groups_are_small(n_usual):
    """Groups of nine points, each beside one of twenty: of twenty near points most are of that."""
    random = np.random.default_rng(0)
    small, large = np.repeat(np.arange(12), 18), np.repeat(np.arange(12), 40)
    pair = np.concatenate([small, large])
    is_small = np.arange(len(pair)) < len(small)
    vectors = 4 * np.eye(12)[pair] + 0.05 * random.standard_normal((len(pair), 12))
    vectors = np.column_stack([vectors, np.where(is_small, 1.0, 0.0)])
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    labels = np.eye(24, dtype=np.float32)[pair + 12 * is_small]
    seen, truth = csr_array(labels[::2]), csr_array(labels[1::2])
    search = search_of(vectors[::2], seen)
    search = replace(search, sizes=replace(search.sizes, n_near_points=n_usual))
    found = with_voters_for(search, vectors[1::2], truth, seen)
    assert found.sizes.n_near_points == min(n_usual, FEW_VOTERS)


@pytest.mark.parametrize(("n_that_gain", "expected"), [(10, MANY_VOTERS), (1, 1)])
def test_a_near_point_says_more_than_several_that_are_far(n_that_gain, expected):
    """The second point has the label; five others have three points each that are far away."""
    angles = np.concatenate([[0.0, 0.05], np.full(15, 1.4)])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    label = np.concatenate([[0, 1], 2 + np.arange(15) % 5])
    seen = csr_array(np.eye(8, dtype=np.float32)[label])
    search = search_of(vectors, seen)
    search = replace(search, sizes=replace(search.sizes, n_near_points=1))
    truth = csr_array(np.eye(8, dtype=np.float32)[np.where(np.arange(10) < n_that_gain, 1, 7)])
    found = with_voters_for(search, np.tile(vectors[:1], (10, 1)), truth, seen)
    assert found.sizes.n_near_points == expected  # one gain of ten may be chance


def test_points_from_all_over_are_asked(monkeypatch):
    given = []
    monkeypatch.setattr(longtail_training, "MOST_ASKED", 4)
    monkeypatch.setattr(
        longtail_training,
        "with_voters_for",
        lambda search, points, truth, seen: given.append((truth.indices, seen.shape)) or search,
    )
    texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    model = LongtailClassifier(dimension=8, epochs=1, n_threads=1).fit(texts, labels)
    scorer = expanded(model.predictor_.scorer)
    features, own = model.predictor_.vectorizer.transform(texts), csr_array(np.eye(20))
    data, held_out = TrainingData(features[:9], own[:9]), TrainingData(features, own)
    given.clear()
    training = longtail_training.LongtailTraining(settings=model, pieces="no", run=model.run_)
    training._with_voters(scorer, data, held_out)
    ((asked, seen_shape),) = given
    assert len(asked) == 4
    assert asked.max() > 12
    assert seen_shape == (9, 20)


def test_without_votes_or_points_nothing_is_changed():
    vectors, labels = drawn(own_tells=False)
    search, truth = search_of(vectors, labels), csr_array(labels)
    none = replace(search, sizes=replace(search.sizes, n_near_points=0))
    assert with_voters_for(none, vectors, truth, truth) is none
    assert with_voters_for(search, vectors[:0], truth[:0], truth) is search


def lists():
    """Lists of items of one of three groups, and other items of the group; some are frequent."""
    random = np.random.default_rng(0)
    chance = 1 / np.arange(2, 202)
    texts, labels = [], []
    for _ in range(1500):
        some = random.choice(200, 8, replace=False, p=chance / chance.sum())
        names = [f"i{item}" for item in 200 * random.integers(0, 3) + some]
        texts.append(" ".join(names[:5]))
        labels.append(names[5:])
    return texts, labels


@pytest.mark.thorough
def test_lists_of_items_are_answered_by_many_points(tmp_path):
    texts, labels = lists()
    model = LongtailClassifier(random_state=0, epochs=2, n_threads=1).fit(texts, labels)
    model.save(tmp_path / "m")
    scorer = longtail.load(tmp_path / "m").scorer
    assert scorer.sizes.n_near_points == MANY_VOTERS
    asked = LongtailClassifier(random_state=0, epochs=2, n_threads=1, n_near_points=20)
    assert asked.fit(texts, labels).predictor_.scorer.sizes.n_near_points == 20
