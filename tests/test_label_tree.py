"""Trees of labels: how they are grown, and how predictions go down them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

import longtail
from longtail.data.bags import Bags
from longtail.data.rows import unit_rows
from longtail.errors import InputError
from longtail.recipes.parabel import Bonsai, Parabel
from longtail.restoring import scorer_from
from longtail.scorers.ensemble import EnsembleScorer
from longtail.scorers.label_tree import LabelTreeScorer
from longtail.scorers.sparse_label_vectors import SparseLabelVectors
from longtail.surrogates.label_tree import LabelTree, balanced_tree, k_means_tree
from small_trees import a_tree

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10_000)
N_FEATURES = 30


def some_rows(seed, n_rows, density=0.3):
    random = np.random.default_rng(seed)
    rows = random_array((n_rows, N_FEATURES), density=density, rng=random, format="csr")
    return unit_rows(csr_array(rows, dtype=np.float32))


def groups(n_groups, size):
    """`n_groups` directions, each with a little of another one, `size` times over."""
    rows = np.repeat(np.eye(n_groups, dtype=np.float32), size, axis=0)
    rows += 0.1 * np.random.default_rng(0).random(rows.shape, np.float32)
    return unit_rows(csr_array(rows))


def a_scorer(seed, beam_size=4, n_threads=1):
    """A random tree with random classifiers: the scorer, tree, labels, weights and bias."""
    tree = a_tree(seed, 40)
    random = np.random.default_rng(seed)
    starts, labels = tree.child_starts(), random.permutation(100)[:40].astype(np.int32)
    weights = some_rows(seed + 1, starts[-1] - 1)
    weights.data *= np.float32(3)
    bias = random.normal(size=starts[-1] - 1).astype(np.float32)
    nodes = SparseLabelVectors(weights.indptr, weights.indices, weights.data, bias)
    scorer = LabelTreeScorer.of(starts, labels, nodes, beam_size=beam_size, n_threads=n_threads)
    return scorer, tree, labels, weights.toarray(), bias


def twin(point, tree, labels, weights, bias, beam_size):
    """Score the labels below the best branches: {label: score}."""
    penalty = np.maximum(0, 1 - weights @ point - bias) ** 2
    beam, first = {0: 0.0}, 1
    for level in range(1, tree.depth + 1):
        parents = tree.parents(level)
        children = {
            node: beam[parent] - penalty[first - 1 + node]
            for node, parent in enumerate(parents)
            if parent in beam
        }
        first += len(parents)
        best = sorted(children, key=lambda node: -children[node])
        beam = {node: children[node] for node in best[:beam_size]}
    return {labels[node]: np.exp(score) for node, score in children.items()}


class TestLabelTree:
    @given(seeds)
    @few
    def test_children_are_neighbours(self, seed):
        tree = a_tree(seed, 40)
        starts, first = tree.child_starts(), 0
        for level in range(tree.depth):
            below = first + tree.n_nodes(level)
            for node in range(tree.n_nodes(level)):
                children = np.flatnonzero(tree.parents(level + 1) == node) + below
                expected = np.arange(starts[first + node], starts[first + node + 1])
                np.testing.assert_array_equal(children, expected)
            first = below
        assert starts[-1] == first + 40

    def test_a_single_leaf(self):
        tree = LabelTree.of_paths(np.zeros((1, 3), int))
        assert tree.child_starts().tolist() == [1, 4]
        assert tree.parents(1).tolist() == [0, 0, 0]


class TestBalancedTree:
    @given(seeds, st.integers(1, 30), st.integers(1, 12))
    @few
    def test_leaves_are_full_but_not_too_full(self, seed, n_labels, leaf_size):
        tree = balanced_tree(some_rows(seed, n_labels), leaf_size=leaf_size, seed=seed, n_threads=1)
        for nodes in tree.nodes:
            assert np.ptp(np.bincount(nodes)) <= tree.depth
        sizes = np.bincount(tree.nodes[-1])
        assert sizes.max() <= leaf_size
        assert tree.depth == 1 or 2 * sizes.max() > leaf_size / 2

    def test_like_labels_stay_together(self):
        tree = balanced_tree(groups(4, 8), leaf_size=8, seed=0, n_threads=2)
        assert np.ptp(tree.nodes[-1].reshape(4, 8), axis=1).tolist() == [0] * 4

    def test_refuses_leaves_of_nothing(self):
        with pytest.raises(InputError, match="leaf_size must be at least 1"):
            balanced_tree(some_rows(0, 5), leaf_size=0, seed=0, n_threads=1)


class TestKMeansTree:
    def grown(self, rows, **kwargs):
        given = {"n_children": 5, "leaf_size": 10, "depth": 3, "seed": 0, "n_threads": 1}
        return k_means_tree(rows, **given | kwargs)

    def test_stops_at_small_leaves_and_at_the_depth(self):
        rows = some_rows(0, 300)
        assert np.bincount(self.grown(rows, depth=9).nodes[-1]).max() <= 10
        assert self.grown(rows, depth=1).depth == 2
        assert self.grown(rows, depth=1).n_nodes(1) <= 5
        assert self.grown(rows, leaf_size=300).depth == 1

    def test_finds_clusters(self):
        leaves = self.grown(groups(3, 20), n_children=12, leaf_size=20, depth=1).nodes[-1]
        together = leaves.reshape(3, 20)
        assert not set(together[0]) & set(together[1])
        assert not set(together[1]) & set(together[2])

    def test_threads_change_nothing_and_the_seed_does(self):
        rows = some_rows(1, 3000)
        one = self.grown(rows).nodes
        np.testing.assert_array_equal(self.grown(rows, n_threads=3).nodes, one)
        assert not np.array_equal(self.grown(rows, seed=1).nodes, one)

    def test_labels_without_features(self):
        assert self.grown(csr_array((50, 4), dtype=np.float32)).nodes.shape[1] == 50

    @pytest.mark.parametrize("name", ["n_children", "leaf_size", "depth"])
    def test_refuses_zero(self, name):
        with pytest.raises(InputError, match=f"{name} must be at least 1"):
            self.grown(some_rows(0, 5), **{name: 0})


class TestScorer:
    @given(seeds, st.sampled_from([1, 3, 100]))
    @few
    def test_follows_the_best_branches(self, seed, beam_size):
        scorer, *tree = a_scorer(seed, beam_size, n_threads=2)
        points = some_rows(seed + 2, 8)
        points = points[np.diff(points.indptr) > 0]
        ids, scores = scorer.top_k(Bags.of(points), 6)
        for row, point in enumerate(points.toarray()):
            expected = twin(point, *tree, beam_size)
            best = sorted(expected.values(), reverse=True)[:6]
            known = ids[row] >= 0
            assert known.sum() == len(best)
            np.testing.assert_allclose(scores[row, known], best, rtol=1e-3, atol=1e-9)
            own = [expected[label] for label in ids[row, known]]
            np.testing.assert_allclose(scores[row, known], own, rtol=1e-3, atol=1e-9)

    def test_one_point_equals_its_row_to_the_bit(self):
        scorer = a_scorer(3)[0]
        bags = Bags.of(some_rows(4, 600))
        ids, scores = scorer.top_k(bags, 5, n_threads=3)
        for row in range(0, 600, 37):
            one_ids, one_scores = scorer.top_k(bags.rows(row, row + 1), 5)
            np.testing.assert_array_equal(one_ids[0], ids[row])
            np.testing.assert_array_equal(one_scores[0], scores[row])

    def test_a_point_without_features_has_no_labels(self):
        scorer = a_scorer(5)[0]
        ids, scores = scorer.top_k(Bags.of(csr_array((2, N_FEATURES))), 3)
        assert (ids == -1).all()
        assert (scores == -np.inf).all()

    def test_features_that_it_never_saw_change_nothing(self):
        scorer = a_scorer(6)[0]
        point = some_rows(7, 1)
        more = Bags.one(
            np.append(point.indices, 10**6).astype(np.int32), np.append(point.data, np.float32(9))
        )
        for mine, theirs in zip(
            scorer.top_k(Bags.of(point), 5), scorer.top_k(more, 5), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)

    def test_is_made_again_from_its_parts(self):
        bags = Bags.of(some_rows(9, 5))
        for scorer in (a_scorer(8)[0], EnsembleScorer((a_scorer(8)[0], a_scorer(9)[0]))):
            again = scorer_from(scorer.config(), scorer.to_arrays())
            for mine, theirs in zip(scorer.top_k(bags, 4), again.top_k(bags, 4), strict=True):
                np.testing.assert_array_equal(mine, theirs)


class TestRecipes:
    @pytest.mark.parametrize(
        "make",
        [
            lambda **kwargs: Parabel(leaf_size=3, **kwargs),
            lambda **kwargs: Bonsai(leaf_size=3, n_children=4, **kwargs),
        ],
        ids=["Parabel", "Bonsai"],
    )
    def test_many_labels_are_learnt_and_saved(self, make, tmp_path):
        features, labels = groups(30, 5), csr_array(np.repeat(np.eye(30), 5, axis=0))
        model = make(n_threads=1, held_out=0).fit(features, labels)
        assert model.score(features, labels) > 0.99
        model.save(tmp_path / "model")
        loaded = longtail.load(tmp_path / "model")
        np.testing.assert_array_equal(
            loaded.predict_topk(features, 3)[0], model.predict_topk(features, 3)[0]
        )

    def test_an_only_child_is_as_probable_as_its_node(self):
        random = np.random.default_rng(0)
        features = random.standard_normal((60, 8)).astype(np.float32)
        labels = csr_array((features @ features[:3].T > 0).astype(np.float32))

        class Of(Parabel):
            paths: ClassVar = None

            def grow(self, *_):
                return LabelTree.of_paths(np.array(self.paths))

        class Short(Of):
            paths: ClassVar = [[0, 0, 0], [0, 1, 1]]

        class Long(Of):
            paths: ClassVar = [[0, 0, 0], [0, 0, 0], [0, 1, 1]]

        made = (kind(n_threads=1, n_learners=1, held_out=0) for kind in (Short, Long))
        bags = Bags.of(csr_array(-features))
        short, long = (one.fit(features, labels).predictor_.scorer.top_k(bags, 3) for one in made)
        np.testing.assert_allclose(long[1], short[1], atol=0.05)

    def test_threads_change_nothing(self):
        features, labels = groups(30, 5), csr_array(np.repeat(np.eye(30), 5, axis=0))
        one, three = (
            Parabel(leaf_size=3, n_threads=n, n_learners=1).fit(features, labels) for n in (1, 3)
        )
        for name, array in one.predictor_.scorer.to_arrays().items():
            np.testing.assert_array_equal(three.predictor_.scorer.to_arrays()[name], array)
