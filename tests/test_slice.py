"""Slice: fixed vectors, dense support vector machines on shortlists, and the fusion of both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array, vstack
from sklearn.svm import LinearSVC

from longtail.classifiers.dense_one_vs_rest import DenseOneVsRest
from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.data.bags import Bags
from longtail.data.rows import unit_rows
from longtail.errors import InputError
from longtail.features.fixed_vectors import AsGiven, RandomProjection, TruncatedSVD
from longtail.recipes.slice import Slice
from small_runs import a_run, on_shortlists


def a_problem(seed, n_points=60, dimension=10, n_labels=5):
    random = np.random.default_rng(seed)
    vectors = unit_rows(random.normal(size=(n_points, dimension)).astype(np.float32))
    labels = csr_array(random.random((n_points, n_labels)) < 0.3)
    shortlists = np.where(random.random((n_points, n_labels)) < 0.6, np.arange(n_labels), -1)
    return vectors, labels, -np.sort(-shortlists.astype(np.int32), axis=1)


def sparse_points(seed=0, n_points=300, n_features=60):
    rows = random_array(
        (n_points, n_features), density=0.1, rng=np.random.default_rng(seed), format="csr"
    )
    return unit_rows(csr_array(rows, dtype=np.float32))


class TestDenseOneVsRest:
    @given(st.integers(0, 10_000))
    @settings(max_examples=25, deadline=None)
    def test_takes_the_steps_of_the_sparse_solver(self, seed):
        vectors, labels, shortlists = a_problem(seed)
        dense = DenseOneVsRest().learn(vectors, labels, shortlists, a_run())
        sparse = on_shortlists(
            SparseOneVsRest(prune=0), csr_array(vectors), labels, shortlists, a_run()
        )
        everything = np.tile(np.arange(5, dtype=np.int32), (60, 1))
        expected = sparse.logits(Bags.of(csr_array(vectors)), everything)
        np.testing.assert_allclose(dense.logits(vectors, everything), expected, atol=1e-3)

    def test_finds_what_scikit_learn_finds(self):
        vectors, labels, _ = a_problem(1)
        all_listed = np.tile(np.arange(5, dtype=np.int32), (60, 1))
        solver = DenseOneVsRest(tolerance=1e-5, max_passes=2000)
        found = solver.learn(vectors, labels, all_listed, a_run())
        for label in range(5):
            theirs = LinearSVC(C=1, dual=True, tol=1e-8, max_iter=100_000)
            theirs.fit(vectors, labels.toarray()[:, label])
            np.testing.assert_allclose(found.vectors[label], theirs.coef_[0], atol=1e-3)
            np.testing.assert_allclose(found.bias[label], theirs.intercept_[0], atol=1e-3)

    def test_threads_change_nothing(self):
        problem = a_problem(2, n_labels=40)
        one, many = (DenseOneVsRest().learn(*problem, a_run(n_threads=n)) for n in (1, 3))
        np.testing.assert_array_equal(one.vectors, many.vectors)

    def test_a_label_without_points(self):
        vectors, labels, shortlists = a_problem(3)
        found = DenseOneVsRest().learn(vectors, csr_array(labels.shape), shortlists, a_run())
        assert (found.bias == -1).all()
        assert not found.vectors.any()

    def test_refuses_what_does_not_fit(self):
        vectors, labels, shortlists = a_problem(4)
        learn = DenseOneVsRest().learn
        with pytest.raises(InputError, match="does not fit 60 points and 5 labels"):
            learn(vectors, labels, shortlists[:-1], a_run())
        with pytest.raises(InputError, match="labels up to 5 does not fit"):
            learn(vectors, labels, shortlists + 1, a_run())
        with pytest.raises(InputError, match="`vectors` has 59 points, `labels` 60"):
            learn(vectors[:-1], labels, shortlists[:-1], a_run())


class TestFixedVectors:
    def test_as_given(self):
        points = sparse_points()
        encoder = AsGiven().learn(points, a_run())
        np.testing.assert_allclose(encoder.encode(Bags.of(points)), points.toarray(), atol=1e-6)

    def test_random_projection_keeps_products_roughly(self):
        points = sparse_points()
        encoder = RandomProjection(dimension=4096).learn(points, a_run())
        vectors = encoder.encode(Bags.of(points))
        np.testing.assert_allclose(vectors @ vectors.T, (points @ points.T).toarray(), atol=0.15)

    def test_svd_finds_the_true_directions(self):
        random = np.random.default_rng(0)
        points = csr_array((random.random((300, 8)) @ random.random((8, 60))).astype(np.float32))
        encoder = TruncatedSVD(dimension=8, power=1.0).learn(points, a_run())
        vectors = encoder.encode(Bags.of(points))
        rows = unit_rows(points).toarray()
        np.testing.assert_allclose(vectors @ vectors.T, rows @ rows.T, atol=1e-3)

    def test_svd_of_few_points(self):
        encoder = TruncatedSVD(dimension=512).learn(sparse_points(n_points=4), a_run())
        assert encoder.token_vectors.shape == (60, 4)

    def test_svd_of_points_that_repeat_others(self):
        points, others = sparse_points(n_points=45), Bags.of(sparse_points(seed=1))
        repeated = csr_array(vstack([points] * 3))
        once, thrice = (
            TruncatedSVD(dimension=60).learn(some, a_run()).encode(others)
            for some in (points, repeated)
        )
        np.testing.assert_allclose(thrice @ thrice.T, once @ once.T, atol=1e-3)

    def test_svd_of_points_without_features(self):
        nothing = csr_array((4, 3), dtype=np.float32)
        assert not TruncatedSVD(dimension=2).learn(nothing, a_run()).token_vectors.any()

    def test_threads_change_nothing_and_the_seed_does(self):
        points = sparse_points()
        one, many = (TruncatedSVD(dimension=5).learn(points, a_run(n_threads=n)) for n in (1, 3))
        other = TruncatedSVD(dimension=5).learn(points, a_run(seed=1))
        np.testing.assert_array_equal(one.token_vectors, many.token_vectors)
        assert not np.array_equal(one.token_vectors, other.token_vectors)


class TestSlice:
    def test_takes_dense_vectors_as_they_are(self):
        vectors = np.random.default_rng(0).normal(size=(100, 20))
        y = (vectors @ np.random.default_rng(1).normal(size=(20, 4)) > 2).astype(int)
        model = Slice(dimension=5, n_threads=1).fit(vectors, y)
        table = model.predictor_.scorer.encoder.token_vectors
        np.testing.assert_array_equal(table, np.eye(20))

    @pytest.mark.parametrize(("n_features", "dimension"), [(40, 40), (41, 40)])
    def test_takes_few_sparse_features_as_they_are(self, n_features, dimension):
        points = sparse_points(n_points=100, n_features=n_features)
        y = csr_array((points.toarray()[:, :8] > 0.3).astype(int))
        model = Slice(dimension=40, n_threads=1, held_out=0.0).fit(points, y)
        table = model.predictor_.scorer.encoder.token_vectors
        assert table.shape == (n_features, dimension)
        assert (table == np.eye(*table.shape)).all() == (n_features == dimension)

    @pytest.mark.parametrize("part", [None, RandomProjection(dimension=64), AsGiven()])
    def test_learns_from_sparse_points(self, part):
        points = sparse_points(n_points=600)
        y = csr_array((points.toarray()[:, :8] > 0.3).astype(int))
        model = Slice(vectors=part, dimension=40, n_threads=1).fit(points[:500], y[:500])
        some = np.flatnonzero(y[500:].sum(axis=1)) + 500
        assert model.score(points[some], y[some]) > (0.6 if part != AsGiven() else 0.8)

    def test_weighs_classifier_and_nearness_on_held_out_points(self, monkeypatch):
        points = sparse_points(n_points=600)
        y = csr_array((points.toarray()[:, :8] > 0.3).astype(int))
        monkeypatch.setattr("longtail.recipes.slice.GRID", (0.33,))  # weights of its own are tried
        model = Slice(held_out=0.2, n_threads=1).fit(points, y)
        assert "score fusion" in model.run_.timings
        assert model.predictor_.scorer.fusion.alpha == 0.33


def test_more_labels_are_shortlisted_than_usual():
    random = np.random.default_rng(0)
    vectors = unit_rows(random.normal(size=(800, 24)).astype(np.float32))
    labels = csr_array(np.eye(400, dtype=np.float32)[np.arange(800) % 400])
    settings = {"n_threads": 1, "held_out": 0.0}
    for size in (50, 350):
        model = Slice(shortlist_size=size, **settings).fit(csr_array(vectors), labels)
        ids, _ = model.predict_topk(csr_array(vectors[:20]), k=400)
        assert ((ids >= 0).sum(axis=1) == size).all()
