"""Label clustering, as a user of the surrogate task sees it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.clustering.balanced import balanced_clusters
from longtail.errors import InputError
from longtail.surrogates.label_clusters import (
    LabelClusters,
    label_centroids,
    label_correlation,
    meta_labels,
    n_meta_labels,
)
from small_groups import planted

few = settings(max_examples=25, deadline=None)


def random_sparse(n_rows, n_columns, seed, density=0.3):
    random = np.random.default_rng(seed)
    return sp.random_array(
        (n_rows, n_columns), density=density, rng=random, dtype=np.float32, format="csr"
    )


def agree(clusters, groups):
    """Say whether two assignments are the same up to the names of the clusters."""
    pairs = set(zip(clusters.tolist(), groups.tolist(), strict=True))
    return len(pairs) == len(set(clusters.tolist())) == len(set(groups.tolist()))


class TestNMetaLabels:
    @few
    @given(st.integers(1, 10**7), st.integers(1, 2**20))
    def test_is_the_largest_power_of_two_allowed(self, n_labels, requested):
        n = n_meta_labels(n_labels, requested)
        limit = max(1, min(requested, n_labels // 2))
        assert n & (n - 1) == 0
        assert n <= limit < 2 * n
        assert n_meta_labels(n_labels, np.int64(requested)) == n

    @pytest.mark.parametrize(("n_labels", "requested"), [(0, 4), (4, 0), (4, -1)])
    def test_refuses_less_than_one(self, n_labels, requested):
        with pytest.raises(InputError, match="at least 1"):
            n_meta_labels(n_labels, requested)


class TestLabelCentroids:
    @few
    @given(st.integers(0, 10**6), st.booleans())
    def test_equals_the_formula(self, seed, normalise_points):
        features = random_sparse(12, 7, seed)
        labels = random_sparse(12, 5, seed + 1)
        points = features.toarray().astype(np.float64)
        if normalise_points:
            points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-30)
        expected = (labels.toarray() != 0).T.astype(float) @ points
        expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-30)
        sparse = label_centroids(features, labels, normalise_points=normalise_points)
        dense = label_centroids(features.toarray(), labels, normalise_points=normalise_points)
        np.testing.assert_allclose(sparse.toarray(), expected, atol=1e-5)
        np.testing.assert_allclose(dense, expected, atol=1e-5)

    def test_label_without_points_has_an_empty_row(self):
        labels = sp.csr_array(([1.0, 0.0], ([0, 1], [0, 1])), shape=(2, 2))  # a stored zero
        centroids = label_centroids(sp.eye_array(2, format="csr"), labels, normalise_points=True)
        assert np.diff(centroids.indptr).tolist() == [1, 0]

    def test_max_entries_keeps_the_largest_and_unit_length(self):
        features = sp.csr_array(np.array([[4, 1, 3, -5]], dtype=np.float32))
        labels = sp.csr_array(np.ones((1, 2)))
        centroids = label_centroids(features, labels, normalise_points=True, max_entries=2)
        expected = np.array([4, 0, 0, -5]) / np.sqrt(41)
        np.testing.assert_allclose(centroids.toarray(), [expected, expected], rtol=1e-6)

    def test_repeated_entries_count_as_their_sum(self):
        features = sp.csr_array((np.array([1, 1, 1], np.float32), [0, 0, 1], [0, 3]), shape=(1, 2))
        centroids = label_centroids(features, sp.csr_array([[1]]), normalise_points=True)
        np.testing.assert_allclose(centroids.toarray(), [[2 / 5**0.5, 1 / 5**0.5]], rtol=1e-6)

    def test_leaves_its_input_alone(self):
        features, labels = random_sparse(9, 4, 0), random_sparse(9, 3, 1)
        before = features.data.copy(), labels.data.copy()
        label_centroids(features, labels, normalise_points=True)
        assert np.array_equal(features.data, before[0])
        assert np.array_equal(labels.data, before[1])

    def test_refuses_different_numbers_of_points(self):
        with pytest.raises(InputError, match="3 rows but `labels` has 2"):
            label_centroids(np.ones((3, 1)), sp.csr_array((2, 1)), normalise_points=True)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_refuses_values_that_are_not_finite(self, value):
        features = sp.csr_array(np.array([[1, value]]))
        with pytest.raises(InputError, match="NaN or infinite"):
            label_centroids(features, sp.csr_array([[1]]), normalise_points=True)


class TestLabelCorrelation:
    @few
    @given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 40))
    def test_rows_are_distributions_with_the_label_itself(self, seed, n_kept, walk_length):
        labels = random_sparse(10, 8, seed, density=0.2)
        walk = label_correlation(labels, n_kept=n_kept, walk_length=walk_length, seed=seed)
        np.testing.assert_allclose(walk.sum(axis=1), 1.0, rtol=1e-5)
        assert (walk.diagonal() > 0).all()
        assert np.diff(walk.indptr).max() <= n_kept
        # Two labels that no chain of points joins are never mixed.
        n_parts, part = sp.csgraph.connected_components((labels.T @ labels) != 0, directed=False)
        first, second = walk.nonzero()
        assert n_parts >= 1
        assert (part[first] == part[second]).all()

    def test_long_walk_approaches_the_exact_distribution(self):
        labels = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0]])
        to_point = labels.T / labels.T.sum(axis=1, keepdims=True)
        to_label = labels / labels.sum(axis=1, keepdims=True)
        step, restart = to_point @ to_label, 0.3
        # visits = restart * step + (1 - restart) * visits * step, solved for each start
        exact = restart * step @ np.linalg.inv(np.eye(4) - (1 - restart) * step)
        walk = label_correlation(
            sp.csr_array(labels), walk_length=200_000, restart_probability=restart, seed=1
        )
        np.testing.assert_allclose(walk.toarray(), exact, atol=0.006)

    def test_threads_do_not_matter_and_seeds_do(self):
        labels = random_sparse(3000, 2500, 0, density=0.002)
        one, two, other = (
            label_correlation(labels, seed=seed, n_threads=n_threads)
            for seed, n_threads in ((0, 1), (0, 3), (1, 1))
        )
        assert (one != two).nnz == 0
        assert (one != other).nnz > 0

    def test_label_too_frequent_gives_the_identity(self):
        labels = sp.csr_array(np.array([[1, 1], [1, 0], [1, 0]]))
        skipped = label_correlation(labels, seed=0, max_label_frequency=2)
        walked = label_correlation(labels, seed=0, max_label_frequency=3)
        assert np.array_equal(skipped.toarray(), np.eye(2))
        assert not np.array_equal(walked.toarray(), np.eye(2))

    @pytest.mark.parametrize(
        "setting", [{"walk_length": 0}, {"n_kept": 0}, {"restart_probability": 1.5}]
    )
    def test_refuses_settings_out_of_range(self, setting):
        with pytest.raises(InputError, match=next(iter(setting))):
            label_correlation(sp.csr_array([[1]]), seed=0, **setting)


class TestBalancedClusters:
    @few
    @given(
        n_rows=st.integers(0, 70),
        depth=st.integers(0, 5),
        n_zero=st.integers(0, 20),
        seed=st.integers(0, 10**6),
        sparse=st.booleans(),
    )
    def test_every_level_is_balanced(self, n_rows, depth, n_zero, seed, sparse):
        vectors = np.random.default_rng(seed).standard_normal((n_rows, 5)).astype(np.float32)
        vectors[np.abs(vectors) < 0.5] = 0.0
        vectors[:n_zero] = 0.0
        clusters = balanced_clusters(
            sp.csr_array(vectors) if sparse else vectors, 2**depth, seed=seed, n_threads=1
        )
        assert clusters.shape == (n_rows,)
        assert clusters.dtype == np.int32
        assert np.ptp(np.bincount(clusters, minlength=2**depth)) <= 1
        with_direction = clusters[vectors.any(axis=1)]
        for level in range(depth):
            sizes = np.bincount(with_direction >> level, minlength=2 ** (depth - level))
            assert np.ptp(sizes) <= 1

    @pytest.mark.parametrize("plus_plus", [True, False])
    @pytest.mark.parametrize("sparse", [True, False])
    def test_finds_planted_clusters(self, sparse, plus_plus):
        vectors, groups = planted(2, 51)
        rows = sp.csr_array(vectors) if sparse else vectors
        clusters = balanced_clusters(rows, 2, seed=0, n_threads=2, plus_plus=plus_plus)
        assert agree(clusters, groups)

    def test_deeper_clusters_hold_similar_rows(self):
        vectors, groups = planted(16, 8)
        clusters = balanced_clusters(vectors, 16, seed=0, n_threads=1)
        same_cluster = clusters[:, np.newaxis] == clusters
        # By chance 6 % of the rows that share a cluster would share the group too.
        assert (groups[:, np.newaxis] == groups)[same_cluster].mean() > 0.7

    def test_scale_of_rows_does_not_matter(self):
        vectors, _ = planted(4, 10)
        scaled = vectors * np.random.default_rng(1).uniform(0.1, 9, (40, 1)).astype(np.float32)
        assert agree(
            balanced_clusters(vectors, 4, seed=0, n_threads=1),
            balanced_clusters(scaled, 4, seed=0, n_threads=1),
        )

    @pytest.mark.parametrize("sparse", [True, False])
    def test_threads_do_not_matter_and_seeds_do(self, sparse):
        vectors = random_sparse(500, 30, 0)
        rows = vectors if sparse else vectors.toarray()
        one, two, other = (
            balanced_clusters(rows, 32, seed=seed, n_threads=n_threads)
            for seed, n_threads in ((0, 1), (0, 3), (1, 1))
        )
        assert np.array_equal(one, two)
        assert not np.array_equal(one, other)

    def test_identical_rows_are_cut_by_id(self):
        clusters = balanced_clusters(np.ones((7, 3)), 4, seed=0, n_threads=1)
        assert clusters.tolist() == [0, 0, 1, 1, 2, 2, 3]

    def test_rows_of_zeros_are_dealt_out(self):
        vectors = np.zeros((12, 3))
        vectors[:4] = 1.0
        clusters = balanced_clusters(sp.csr_array(vectors), 4, seed=0, n_threads=1)
        assert clusters.tolist() == [0, 1, 2, 3] * 3

    def test_more_clusters_than_rows_gives_each_its_own(self):
        clusters = balanced_clusters(np.eye(3), 8, seed=0, n_threads=1)
        assert len(set(clusters.tolist())) == 3

    @pytest.mark.parametrize(
        ("n_clusters", "n_threads", "message"),
        [(3, 1, "power of two"), (0, 1, "at least 1"), (2, 0, "n_threads")],
    )
    def test_refuses_settings_out_of_range(self, n_clusters, n_threads, message):
        with pytest.raises(InputError, match=message):
            balanced_clusters(np.eye(3), n_clusters, seed=0, n_threads=n_threads)


class TestMetaLabels:
    @few
    @given(st.integers(0, 10**6))
    def test_holds_the_clusters_of_a_points_labels(self, seed):
        labels = random_sparse(8, 6, seed)
        assignment = np.random.default_rng(seed).integers(0, 3, 6).astype(np.int32)
        result = meta_labels(labels, assignment, 3)
        assert result.dtype == np.float32
        for point in range(8):
            expected = set(assignment[labels[[point]].indices])
            assert set(result[[point]].indices) == expected
        assert set(result.data) <= {1.0}

    def test_refuses_an_assignment_of_another_size(self):
        with pytest.raises(InputError, match="3 columns"):
            meta_labels(sp.csr_array((2, 3)), np.zeros(2, np.int32), 1)

    def test_a_label_may_have_none(self):
        labels = sp.csr_array(np.array([[1, 1, 0], [0, 0, 1]]))
        result = meta_labels(labels, np.array([1, -1, -1], np.int32), 2)
        assert result.toarray().tolist() == [[0, 1], [0, 0]]

    @pytest.mark.parametrize("cluster", [-2, 2])
    def test_refuses_clusters_out_of_range(self, cluster):
        with pytest.raises(InputError, match="allowed are 0 to 1"):
            meta_labels(sp.csr_array((2, 1)), np.array([cluster], np.int32), 2)


class TestLabelClusters:
    def data(self):
        """64 labels in 4 topics; the points of a topic share its words and its labels."""
        random = np.random.default_rng(0)
        topics = random.integers(0, 4, 600)
        words = 10 * topics[:, np.newaxis] + random.integers(0, 10, (600, 5))
        tags = 16 * topics[:, np.newaxis] + random.integers(0, 16, (600, 2))
        features, labels = sp.lil_array((600, 40), dtype=np.float32), sp.lil_array((600, 64))
        for point in range(600):
            features[point, words[point]] = 1.0
            labels[point, tags[point]] = 1.0
        return sp.csr_array(features), sp.csr_array(labels)

    @pytest.mark.parametrize("settings", [{}, {"label_correlation": False}, {"max_entries": 8}])
    def test_two_clusters_respect_the_topics(self, settings):
        features, labels = self.data()
        task = LabelClusters(n_meta_labels=2, **settings)
        clusters = task.assign(features, labels, seed=0, n_threads=2)
        assert (clusters.reshape(4, 16) == clusters[::16, np.newaxis]).all()
        assert np.bincount(clusters).tolist() == [32, 32]

    def test_shrinks_to_the_labels_there_are(self):
        features, labels = self.data()
        clusters = LabelClusters().assign(features, labels, seed=0, n_threads=1)
        assert np.bincount(clusters).tolist() == [2] * 32

    def test_label_correlation_joins_labels_without_common_words(self):
        # Four labels with words of their own; 0 and 2, and 1 and 3, stand at the same points now
        # and then, and only the walk can tell, since those points are empty.
        own = np.repeat(np.eye(4), 3, axis=0)
        together = np.repeat([[1, 0, 1, 0], [0, 1, 0, 1]], 9, axis=0)
        features = sp.csr_array(np.vstack([own, np.zeros((18, 4))]))
        labels = sp.csr_array(np.vstack([own, together]))
        for seed in range(5):
            clusters = LabelClusters(n_meta_labels=2).assign(
                features, labels, seed=seed, n_threads=1
            )
            assert clusters[0] == clusters[2] != clusters[1] == clusters[3]

    def test_dense_and_sparse_features_give_the_same(self):
        features, labels = self.data()
        task = LabelClusters(max_entries=None)
        assert np.array_equal(
            task.assign(features, labels, seed=0, n_threads=1),
            task.assign(features.toarray(), labels, seed=0, n_threads=1),
        )

    def test_a_label_is_mixed_with_those_that_its_own_walk_finds(self, monkeypatch):
        features, labels = random_sparse(200, 20, 0), random_sparse(200, 60, 1, density=0.02)
        given = []
        monkeypatch.setattr(
            "longtail.surrogates.label_clusters.balanced_clusters",
            lambda vectors, *_, **__: given.append(vectors),
        )
        LabelClusters(max_entries=None).assign(features, labels, seed=0, n_threads=1)
        own = label_centroids(features, labels, normalise_points=True)
        mixed = label_correlation(labels, seed=0) @ own
        mixed = mixed.toarray() / np.sqrt(mixed.multiply(mixed).sum(axis=1))[:, np.newaxis]
        np.testing.assert_allclose(given[0].toarray(), mixed, rtol=1e-3, atol=1e-5)

    def test_every_setting_is_used(self):
        features, labels = random_sparse(600, 40, 0), random_sparse(600, 300, 1, density=0.01)
        task = LabelClusters(n_meta_labels=16)
        usual = task.assign(features, labels, seed=0, n_threads=1)
        for change in (
            {"normalise_points": False},
            {"label_correlation": False},
            {"walk_length": 3},
            {"restart_probability": 0.9},
            {"n_kept": 2},
            {"max_label_frequency": 1},
            {"plus_plus": False},
            {"max_iterations": 1},
            {"tolerance": 1.0},
            {"max_entries": 3},
        ):
            changed = replace(task, **change).assign(features, labels, seed=0, n_threads=1)
            assert not np.array_equal(changed, usual), change

    def test_one_label(self):
        clusters = LabelClusters().assign(
            np.ones((2, 3)), sp.csr_array([[1], [0]]), seed=0, n_threads=1
        )
        assert clusters.tolist() == [0]

    def test_no_label_at_all_is_refused(self):
        with pytest.raises(InputError, match="n_labels"):
            LabelClusters().assign(np.ones((2, 3)), sp.csr_array((2, 0)), seed=0, n_threads=1)

    def test_labels_without_points_do_not_fill_clusters_of_their_own(self):
        features, labels = self.data()
        wider = sp.hstack([sp.csr_array((600, 64)), labels], format="csr")
        clusters = LabelClusters(n_meta_labels=16).assign(features, wider, seed=0, n_threads=1)
        assert np.bincount(clusters[:64]).tolist() == [4] * 16
