"""Trees whose nodes rank labels, and their re-ranking with tail classifiers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from longtail.data.bags import Bags
from longtail.data.rows import unit_rows
from longtail.kernels.ranking_tree import discounted_gains
from longtail.metrics import inverse_propensities
from longtail.metrics.head_and_tail import head_and_tail_precision
from longtail.metrics.propensity import inverse_propensities_in
from longtail.recipes.pfastrexml import (
    ALPHAS,
    PfastreXML,
    best_alpha,
    n_trees_for,
    ranking_gains,
)
from longtail.restoring import scorer_from
from longtail.scorers.forest import ForestScorer
from longtail.training.run import TrainingData

few = settings(max_examples=25, deadline=None)
N_FEATURES, N_LABELS = 40, 12


def some_labels(seed, n_points=60):
    random = np.random.default_rng(seed)
    share = 0.4 / (1 + np.arange(N_LABELS))
    return csr_array((random.random((n_points, N_LABELS)) < share).astype(np.float32))


def some_points(seed=0, n_points=500):
    """Each label has three features of its own; two labels a point, some more often than others."""
    random = np.random.default_rng(seed)
    share = 1 / (1 + np.arange(N_LABELS))
    truth = np.zeros((n_points, N_LABELS), np.float32)
    for row in truth:
        row[random.choice(N_LABELS, 2, replace=False, p=share / share.sum())] = 1
    features = np.repeat(truth, 3, axis=1) * (random.random((n_points, 36)) < 0.7)
    noise = random_array((n_points, 4), density=0.5, rng=random).toarray()
    points = np.hstack([features, noise]).astype(np.float32)
    points[:, 0] += 1e-3  # none is empty
    return unit_rows(csr_array(points)), csr_array(truth)


def fitted(**kwargs):
    settings = {"n_learners": 10, "n_threads": 1, "held_out": 0, "cost": 4.0} | kwargs
    return PfastreXML(**settings).fit(*some_points())


class TestGains:
    @given(st.integers(0, 10_000))
    @few
    def test_are_inverse_propensities_over_ideal_sums(self, seed):
        labels = some_labels(seed)
        gains = ranking_gains(labels)
        worth = inverse_propensities(np.asarray(labels.sum(axis=0)).ravel(), 60)
        for row, truth in enumerate(labels.toarray()):
            own = slice(gains.row_starts[row], gains.row_starts[row + 1])
            ids = np.flatnonzero(truth)
            ideal = (1 / np.log2(2 + np.arange(len(ids)))).sum()
            np.testing.assert_array_equal(gains.labels[own], ids)
            np.testing.assert_allclose(gains.values[own], worth[ids] / (ideal or 1), rtol=1e-5)

    @given(st.integers(0, 10_000))
    @few
    def test_discounts_follow_the_ranking_of_each_half(self, seed):
        gains = ranking_gains(some_labels(seed))
        random = np.random.default_rng(seed)
        own = random.permutation(60)[:30].astype(np.int32)
        signs = random.choice(np.array([-1, 1], np.float32), 30)
        found = np.zeros((2, N_LABELS), np.float32)
        discounted_gains(gains, own, signs, np.arange(N_LABELS, dtype=np.int32), found)
        values = csr_array((gains.values, gains.labels, gains.row_starts), (60, N_LABELS)).toarray()
        for half, sign in enumerate((-1, 1)):
            totals = values[own[signs == sign]].sum(axis=0)
            ranks = np.argsort(np.argsort(-totals, kind="stable"), kind="stable")
            expected = np.where(totals > 0, 1 / np.log2(2 + ranks), 0)
            distinct = len(set(totals.round(4))) == len(totals)
            if distinct:
                np.testing.assert_allclose(found[half], expected, rtol=1e-5)
            np.testing.assert_allclose(np.sort(found[half]), np.sort(expected), rtol=1e-5)


def route(forest, root, point):
    """Follow one point down one tree, in plain numpy."""
    node = root
    while forest.children[node, 0] >= 0:
        own = slice(forest.starts[node], forest.starts[node + 1])
        margin = forest.weights[own] @ point[forest.features[own]] + forest.bias[node]
        node = forest.children[node, int(margin >= 0)]
    return node


class TestForest:
    def test_scores_are_means_over_the_leaves(self):
        points, _ = some_points()
        scorer = fitted().predictor_.scorer
        ids, scores = scorer.tree_scores(Bags.of(points[:40]), N_LABELS)
        forest = scorer.forest
        for row, point in enumerate(points[:40].toarray()):
            expected = np.zeros(N_LABELS)
            for root in forest.roots:
                leaf = route(forest, root, point)
                own = slice(forest.leaf_starts[leaf], forest.leaf_starts[leaf + 1])
                expected[forest.leaf_labels[own]] += forest.leaf_scores[own] / len(forest.roots)
            known = ids[row] >= 0
            np.testing.assert_allclose(scores[row, known], expected[ids[row, known]], rtol=1e-4)
            assert known.sum() == (expected > 0).sum()

    def test_who_asks_for_more_labels_gets_them_behind_those_of_fewer(self):
        bags = Bags.of(some_points(seed=1)[0])
        scorer = replace(fitted().predictor_.scorer, n_candidates=3)
        every, scores = scorer.top_k(bags, N_LABELS)
        assert (every >= 0).sum(axis=1).max() > 3
        assert (scores[:, :-1] >= scores[:, 1:]).all()
        for k in range(1, 4):
            np.testing.assert_array_equal(scorer.top_k(bags, k)[0], every[:, :k])

    def test_leaves_hold_the_shares_of_their_points_that_carry_a_label(self):
        points, labels = some_points()
        forest = fitted(n_learners=1, alpha=0.8).predictor_.scorer.forest
        leaf = np.array([route(forest, 0, point) for point in points.toarray()])
        for node in np.unique(leaf):
            own = slice(forest.leaf_starts[node], forest.leaf_starts[node + 1])
            expected = labels.toarray()[leaf == node].mean(axis=0)
            np.testing.assert_array_equal(forest.leaf_labels[own], np.flatnonzero(expected))
            np.testing.assert_allclose(forest.leaf_scores[own], expected[expected > 0], rtol=1e-4)

    def test_the_tail_counts_distance_to_the_mean_of_a_label_at_unit_length(self):
        points, labels = some_points()
        scorer = fitted(alpha=0.3, gamma=4.0, tail=0.0).predictor_.scorer
        bags = Bags.of(points[:20])
        ids, leaves = scorer.tree_scores(bags, 5)
        means = (labels.T @ points).toarray()
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        found = scorer.ranked(bags, ids, leaves)
        for row, point in enumerate(points[:20].toarray()):
            known = ids[row] >= 0
            squares = ((point - means[ids[row, known]]) ** 2).sum(axis=1)
            tail = -np.log1p(np.exp(4.0 / 2 * squares))
            expected = 0.3 * np.log(leaves[row, known]) + 0.7 * tail
            np.testing.assert_allclose(found[row, known], expected, rtol=1e-3)

    @pytest.mark.parametrize("is_noise", ["trees", "tail"])
    def test_the_weight_of_the_trees_is_the_best_on_given_points(self, is_noise):
        points, labels = some_points()
        scorer = fitted(alpha=0.8).predictor_.scorer
        random = np.random.default_rng(0)
        if is_noise == "trees":
            noise = np.exp(random.normal(0, 8, len(scorer.forest.leaf_scores))).astype(np.float32)
            scorer = replace(scorer, forest=scorer.forest._replace(leaf_scores=noise))
        else:
            means = scorer.tail_classifiers.means
            moved = replace(means, features=random.permutation(means.features))
            scorer = replace(scorer, tail_classifiers=replace(scorer.tail_classifiers, means=moved))
        worth = inverse_propensities_in(labels)
        found = best_alpha(scorer, TrainingData(points, labels), worth, 2)

        def quality(alpha):
            ids, _ = replace(scorer, alpha=alpha).top_k(Bags.of(points), 5)
            return head_and_tail_precision(ids, labels, worth)

        assert quality(found) == pytest.approx(max(map(quality, ALPHAS)))
        assert (found > 0.8) == (is_noise == "tail")

    def test_a_given_weight_and_too_few_points_to_choose_on(self):
        points, labels = some_points()
        few_points = PfastreXML(n_learners=5, n_threads=1).fit(points[:90], labels[:90])
        alphas = [fitted(alpha=0.3).predictor_.scorer.alpha, few_points.predictor_.scorer.alpha]
        assert alphas == [0.3, 0.8]
        assert fitted().predictor_.scorer.alpha in ALPHAS

    def test_points_that_are_all_alike_leave_nothing_to_choose_on(self):
        rows = csr_array(np.ones((120, 3), np.float32))
        labels = csr_array(np.tile([1.0, 0.0], (120, 1)))
        model = PfastreXML(n_learners=5, n_threads=1).fit(rows, labels)
        assert model.predictor_.scorer.alpha == 0.8

    def test_a_gamma_of_zero_makes_all_tail_classifiers_alike(self):
        """Padding is infinitely far, which times zero is no number."""
        scorer = fitted(alpha=0.5, gamma=0.0, n_candidates=2**31 - 1).predictor_.scorer
        bags, labels = Bags.of(some_points()[0][:1]), np.array([[2, 0, -1]], np.int32)
        np.testing.assert_allclose(
            scorer.tail_classifiers.log_probabilities(bags, labels), [[-np.log(2), -np.log(2), 0]]
        )
        assert scorer.n_candidates == N_LABELS  # as there are no more, no room is made for more

    def test_labels_get_their_inverse_propensities(self):
        points, labels = some_points()
        plain, raised = (fitted(tail=tail, alpha=0.8).predictor_.scorer for tail in (0.0, 0.7))
        bags = Bags.of(points[:20])
        ids, leaves = plain.tree_scores(bags, 3)
        more = raised.ranked(bags, ids, leaves) - plain.ranked(bags, ids, leaves)
        counts = np.asarray(labels.sum(axis=0)).ravel()
        expected = 0.7 * np.log(inverse_propensities(counts, labels.shape[0]))[ids]
        np.testing.assert_allclose(more[ids >= 0], expected[ids >= 0], atol=1e-5)


class TestPfastreXML:
    def test_learns(self):
        points, labels = some_points(seed=1)
        assert fitted().score(points, labels) > 0.9  # the most frequent label alone: .6

    def test_learns_with_trees_alone_and_with_tail_classifiers(self):
        points, labels = some_points(seed=1)
        scores = [fitted(alpha=alpha).score(points, labels) for alpha in (0.8, 1.0)]
        assert min(scores) > 0.8

    def test_threads_and_a_folder_change_nothing(self):
        points, _ = some_points()
        one, many = (fitted(n_threads=n).predictor_.scorer for n in (1, 3))
        again = scorer_from(many.config(), many.to_arrays())
        assert isinstance(again, ForestScorer)
        bags = Bags.of(points)
        for mine, theirs in zip(one.top_k(bags, 4), again.top_k(bags, 4, 3), strict=True):
            np.testing.assert_array_equal(mine, theirs)

    def test_fewer_trees_for_many_points(self):
        assert [n_trees_for(n) for n in (1, 10**6, 10**9)] == [50, 10, 10]
