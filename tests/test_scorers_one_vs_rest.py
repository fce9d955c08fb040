"""DiSMEC: every label is scored, exactly, through an inverted index."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from sklearn.svm import LinearSVC

from longtail.data.bags import Bags
from longtail.data.rows import unit_rows
from longtail.kernels.one_vs_rest import keep_best
from longtail.recipes.dismec import DiSMEC
from longtail.restoring import scorer_from
from longtail.scorers import one_vs_rest
from longtail.scorers.one_vs_rest import OneVsRestScorer
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

few = settings(max_examples=25, deadline=None)
N_LABELS, N_FEATURES = 30, 12


def some_rows(seed, n_rows):
    random = np.random.default_rng(seed)
    rows = random_array((n_rows, N_FEATURES), density=0.4, rng=random, format="csr")
    return unit_rows(csr_array(rows, dtype=np.float32))


def classifiers(seed):
    weights, random = some_rows(seed, N_LABELS), np.random.default_rng(seed)
    bias = random.integers(-2, 2, N_LABELS).astype(np.float32)
    return SparseLabelVectors(weights.indptr, weights.indices, weights.data, bias), weights


class TestScorer:
    @given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([1, 4, 7, 8192]))
    @few
    def test_scores_every_label(self, seed, k, block):
        vectors, weights = classifiers(seed)
        labels = np.arange(N_LABELS, dtype=np.int32) * 3 + 5
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(one_vs_rest, "LABELS_A_BLOCK", block)
            scorer = OneVsRestScorer.of(labels, vectors)
        points = some_rows(seed + 1, 20)
        ids, scores = scorer.top_k(Bags.of(points), k)
        expected = (points @ weights.T).toarray() + vectors.bias
        known = np.diff(points.indptr) > 0
        n_found = min(k, N_LABELS)
        assert (ids[~known] == -1).all()
        assert (ids[known, n_found:] == -1).all()
        best = -np.sort(-expected[known], axis=1)[:, :n_found]
        np.testing.assert_allclose(scores[known, :n_found], best, atol=1e-5)
        own = np.take_along_axis(expected[known], (ids[known, :n_found] - 5) // 3, axis=1)
        np.testing.assert_allclose(scores[known, :n_found], own, atol=1e-5)

    def test_threads_and_a_folder_change_nothing(self):
        vectors, _ = classifiers(3)
        scorer = OneVsRestScorer.of(np.arange(N_LABELS, dtype=np.int32), vectors)
        again = scorer_from(scorer.config(), scorer.to_arrays())
        bags = Bags.of(some_rows(4, 300))
        for mine, theirs in zip(scorer.top_k(bags, 5), again.top_k(bags, 5, 3), strict=True):
            np.testing.assert_array_equal(mine, theirs)

    @given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 8), st.integers(0, 30))
    @few
    def test_keeps_the_best_with_ties_by_label(self, scores, k, cut):
        scores = np.array(scores, np.float32)
        labels = np.arange(len(scores), dtype=np.int32)
        ids, best = np.full(k, -1, np.int32), np.full(k, -np.inf, np.float32)
        n_kept = keep_best(labels[:cut], scores[:cut], 0, ids, best)
        n_kept = keep_best(labels[cut:], scores[cut:], n_kept, ids, best)
        expected = np.lexsort((labels, -scores))[:k]
        assert ids[:n_kept].tolist() == expected.tolist()
        assert best[:n_kept].tolist() == scores[expected].tolist()


def test_dismec_is_scikit_learns_one_versus_rest():
    random = np.random.default_rng(0)
    features = some_rows(1, 400)
    features = features[np.diff(features.indptr) > 0]
    truth = features @ random.normal(size=(N_FEATURES, 6)) > 0.3
    features, truth = features[truth.any(axis=1)], truth[truth.any(axis=1)]
    model = DiSMEC(cost=0.02, prune=0, tolerance=1e-5, held_out=0, n_threads=2)
    model.fit(features, truth.astype(int))
    ids, scores = model.predictor_.scorer.top_k(Bags.of(features), 6)
    mine = np.empty(truth.shape)
    np.put_along_axis(mine, ids, scores, axis=1)
    for label in range(6):
        theirs = LinearSVC(C=0.02, dual=True, tol=1e-7, max_iter=100_000)
        theirs.fit(features, truth[:, label])
        np.testing.assert_allclose(mine[:, label], theirs.decision_function(features), atol=5e-3)


def test_pruning_makes_it_small():
    features = some_rows(1, 300)
    labels = csr_array(features.toarray()[:, :5] > 0.4)
    sizes = []
    for prune in (0.0, 0.01, 0.5):
        model = DiSMEC(prune=prune, n_threads=1).fit(features, labels)
        sizes.append(len(model.predictor_.scorer.blocks.weights))
    assert sizes[0] >= sizes[1] > sizes[2] > 0
