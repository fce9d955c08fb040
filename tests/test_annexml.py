"""AnnexML: neighbours by labels, partitions, the ranking loss, votes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import longtail
from longtail.data.bags import Bags
from longtail.kernels.annexml import (
    Comparisons,
    embedding_epoch,
    encode_in_partitions,
    loss_slopes,
    partition_epoch,
    points_sharing_labels,
)
from longtail.recipes.annexml import AnnexML, telling_labels
from longtail.restoring import scorer_from
from longtail.scorers.annexml import AnnexLearner


def grouped_points(n_points=300, n_groups=6, seed=0):
    """Points of groups, each with words of its own among common ones, and a label of the group."""
    random = np.random.default_rng(seed)
    group = random.integers(0, n_groups, n_points)
    features = 0.7 * random.random((n_points, 40)) * (random.random((n_points, 40)) < 0.2)
    features[np.arange(n_points), group] = 1
    labels = np.zeros((n_points, 2 * n_groups))
    labels[np.arange(n_points), group] = 1
    labels[np.arange(n_points), n_groups + random.integers(0, n_groups, n_points)] = 1
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return csr_array(features.astype(np.float32)), csr_array(labels.astype(np.float32)), group


def bags_of(features):
    """Bags as a training passes them, so that its compiled code serves."""
    return Bags.of(features)._replace(n_columns=None)


def near_by_labels(labels, n_near, is_used=None, noise=1e-6):
    points = labels.T.tocsr()
    near = np.empty((labels.shape[0], n_near), np.int32)
    if is_used is None:
        is_used = np.ones(labels.shape[1], bool)
    points_sharing_labels(
        (labels.indptr, labels.indices),
        (points.indptr, points.indices),
        is_used,
        np.full(labels.shape[0], noise, np.float32),
        0,
        labels.shape[0],
        near,
    )
    return near


class TestNearByLabels:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 6))
    def test_are_the_most_similar(self, seed, n_points, n_near):
        random = np.random.default_rng(seed)
        dense = (random.random((n_points, 5)) < 0.4).astype(np.float32)
        similarity = dense @ (dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)).T
        np.fill_diagonal(similarity, 0)
        for i, found in enumerate(near_by_labels(csr_array(dense), n_near)):
            n_similar = min(int((similarity[i] > 0).sum()), n_near)
            if not n_similar:
                assert (found == -1).all()
                continue
            assert len(set(found)) == n_similar
            assert (found == np.resize(found[:n_similar], n_near)).all()
            best = np.sort(similarity[i])[::-1][:n_similar]
            np.testing.assert_allclose(np.sort(similarity[i, found[:n_similar]])[::-1], best, 1e-4)

    def test_of_many_points_more_labels_are_looked_over(self):
        counts = np.array([3_000, 1, 2_000], np.int32)
        assert telling_labels(counts, 1_000).tolist() == [False, True, True]
        assert telling_labels(counts, 4_000).all()

    def test_labels_that_are_too_frequent_do_not_count(self):
        labels = csr_array(np.array([[1, 1], [1, 0], [0, 1]], np.float32))
        found = near_by_labels(labels, 1, is_used=np.array([True, False]))
        assert found.tolist() == [[1], [0], [-1]]


class TestEmbedding:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.integers(1, 4))
    def test_gains_are_the_slope_of_the_loss(self, seed, n_near):
        cosines = np.random.default_rng(seed).uniform(-1, 1, n_near + 3)

        def loss(values):
            apart = values[:n_near, None] - values[None, n_near:]
            return np.log1p(np.exp(-5 * apart).sum(axis=1)).sum()

        steps = 1e-5 * np.eye(len(cosines))
        slope = [(loss(cosines + step) - loss(cosines - step)) / 2e-5 for step in steps]
        gains = loss_slopes(cosines.astype(np.float32), n_near, np.float32(5))
        np.testing.assert_allclose(gains, -np.array(slope), rtol=1e-3, atol=1e-4)

    def test_gains_of_a_large_gamma_are_numbers(self):
        """The exponential of 2,000 is not."""
        gains = loss_slopes(np.array([-1, 1, 1], np.float32), 1, np.float32(1000))
        np.testing.assert_allclose(gains, [1000, -500, -500], rtol=1e-5)

    def test_a_step_is_up_the_slope(self):
        random = np.random.default_rng(0)
        features = csr_array(np.eye(4, dtype=np.float32))
        table = random.normal(size=(4, 5)).astype(np.float32)

        def loss(vectors):
            unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            cosines = unit[1:] @ unit[0]
            return np.log1p(np.exp(3 * (cosines[1:] - cosines[0])).sum())

        one = np.array([[1]] + 3 * [[-1]], np.int32), np.array(4 * [[2, 3]], np.int32)
        changed = table.copy()
        compared = Comparisons(np.array([0], np.int32), *one)
        embedding_epoch(bags_of(features), compared, 1e-3, 3.0, changed, np.ones(4, np.float32))
        for place in np.ndindex(table.shape):
            step = np.zeros_like(table, np.float64)
            step[place] = 1e-4
            slope = (loss(table + step) - loss(table - step)) / 2e-4
            moved = (changed - table)[place] * 1e3
            assert moved == pytest.approx(-slope, rel=0.3, abs=2e-3)  # Adagrad shortens it a bit

    def test_brings_points_of_a_label_together(self):
        features, labels, group = grouped_points()
        table = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)
        near = near_by_labels(labels[:, :6], 5)
        far = np.random.default_rng(2).integers(0, 300, near.shape, np.int32)
        compared = Comparisons(np.arange(300, dtype=np.int32), near, far)
        before = cosines_apart(features @ table, group)
        for _ in range(5):
            embedding_epoch(bags_of(features), compared, 0.1, 10.0, table, np.ones(40, np.float32))
        assert cosines_apart(features @ table, group) > before + 0.3


EPOCH = """
import sys
import numpy as np
from scipy.sparse import random_array
from longtail.data.bags import Bags
from longtail.kernels.annexml import Comparisons, embedding_epoch
random = np.random.default_rng(0)
points = random_array((300, 200), density=0.05, rng=random, dtype=np.float32).tocsr()
compared = Comparisons(
    random.permutation(300).astype(np.int32),
    random.integers(0, 300, (300, 10), np.int32),
    random.integers(0, 300, (300, 9), np.int32),
)
table = random.normal(size=(200, 50)).astype(np.float32)
embedding_epoch(Bags.of(points), compared, 0.1, 10.0, table, np.ones(200, np.float32))
sys.stdout.buffer.write(table.tobytes())
"""


@pytest.mark.thorough  # compiles
def test_the_process_that_compiles_gets_the_bits_of_later_ones(tmp_path):
    sources = Path(longtail.__file__).parent  # copied, since compiled code lies beside them
    copied = shutil.ignore_patterns("__pycache__")
    shutil.copytree(sources, tmp_path / "src" / "longtail", ignore=copied)
    paths = {"PYTHONPATH": str(tmp_path / "src"), "NUMBA_CACHE_DIR": str(tmp_path / "code")}
    results, kept = [], []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", EPOCH], env=os.environ | paths, capture_output=True, check=True
        )
        results.append(done.stdout)
        kept.append(sorted((tmp_path / "code").rglob("*.nbc")))
    assert kept[0]  # compiled by the first
    assert kept[0] == kept[1]
    assert results[0] == results[1]


def cosines_apart(vectors, group):
    """Return by how much cosines within groups are above those between groups."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    same = group[:, None] == group
    cosines = unit @ unit.T
    return cosines[same].mean() - cosines[~same].mean()


class TestPartitions:
    def test_points_of_a_label_stay_together(self):
        features, labels, group = grouped_points()
        near = near_by_labels(labels[:, :6], 5)
        random = np.random.default_rng(0)
        weights = np.ascontiguousarray(features[:3].toarray().T)
        squares, sums = np.ones_like(weights), weights / np.float32(0.1)
        for _ in range(5):
            far = random.integers(0, 300, near.shape, np.int32)
            order = random.permutation(300).astype(np.int32)
            compared = Comparisons(order, near, far)
            partition_epoch(bags_of(features), compared, 0.1, 0.1, weights, squares, sums)
        partitions = (features @ weights).argmax(axis=1)
        largest = [np.bincount(partitions[group == g]).max() for g in range(6)]
        assert sum(largest) > 0.9 * 300
        assert len(set(partitions)) > 1

    def test_no_penalty_is_on_what_a_partition_starts_from(self):
        features, labels, _ = grouped_points()
        settings = {"partition_size": 150, "n_learners": 1, "epochs": 1, "penalty": 1e4}
        model = AnnexML(**settings, n_threads=1).fit(features, labels)
        (learner,) = model.predictor_.scorer.learners
        assert learner.partition_weights.any(axis=0).all()

    def test_a_penalty_leaves_few_weights(self):
        features, labels, _ = grouped_points()
        compared = Comparisons(
            np.arange(300, dtype=np.int32),
            near_by_labels(labels, 5),
            np.random.default_rng(0).integers(0, 300, (300, 5), np.int32),
        )
        n_weights = []
        for penalty in (0.0, 20.0):
            weights = np.zeros((40, 2), np.float32)
            squares, sums = np.ones_like(weights), np.zeros_like(weights)
            partition_epoch(bags_of(features), compared, 0.1, penalty, weights, squares, sums)
            n_weights.append(np.count_nonzero(weights))
        assert n_weights[1] < n_weights[0]

    def test_each_has_tokens_of_its_own(self):
        points = Bags.of(csr_array(np.array([[3, 4, 0], [1, 0, 1], [0, 1, 0]], np.float32)))
        table = np.array([[1, 0], [0, 1], [2, 0]], np.float32)
        vectors = np.empty((3, 2), np.float32)
        starts, tokens = np.array([0, 2, 3]), np.array([0, 1, 2], np.int32)
        partitions = np.array([0, 1, 1], np.int32)
        encode_in_partitions(points, partitions, starts, tokens, table, 0, 3, vectors)
        np.testing.assert_allclose(vectors, [[0.6, 0.8], [1, 0], [0, 0]], rtol=1e-6)


@pytest.fixture(scope="module")
def fitted():
    features, labels, _ = grouped_points(900)
    model = AnnexML(n_learners=3, dimension=16, partition_size=200, n_threads=1)
    return model.fit(features[:800], labels[:800])


class TestAnnexML:
    def test_learns(self, fitted):
        features, _, group = grouped_points(900)
        ids, _ = fitted.predict_topk(features[800:], 1)
        assert (ids[:, 0] == group[800:]).mean() > 0.9

    def test_a_score_is_a_share_of_the_near_points(self, fitted):
        features, _, _ = grouped_points(900)
        scorer = fitted.predictor_.scorer
        bags = Bags.of(features[800:810])
        near = np.hstack([one.near_points(bags, 10) for one in scorer.learners])
        held = csr_array(
            (np.ones(len(scorer.label_ids)), scorer.label_ids, scorer.label_starts),
            (len(scorer.label_starts) - 1, scorer.n_labels),
        ).toarray()
        ids, scores = scorer.top_k(bags, 12)
        for row in range(10):
            shares = held[near[row]].mean(axis=0)
            known = ids[row] >= 0
            np.testing.assert_allclose(scores[row, known], shares[ids[row, known]], rtol=1e-5)
            assert known.sum() == (shares > 0).sum()

    def test_no_more_neighbours_than_points(self):
        features, labels, _ = grouped_points(60)
        model = AnnexML(n_learners=1, dimension=4, n_neighbours=2**31 - 1, epochs=1, held_out=0)
        assert model.fit(features, labels).predictor_.scorer.n_neighbours == 60

    def test_threads_and_a_folder_change_nothing(self, fitted):
        features, labels, _ = grouped_points(900)
        other = AnnexML(n_learners=3, dimension=16, partition_size=200, n_threads=3)
        other.fit(features[:800], labels[:800])
        scorer = other.predictor_.scorer
        again = scorer_from(scorer.config(), scorer.to_arrays())
        expected = fitted.predictor_.scorer.top_k(Bags.of(features), 5)
        for found in (scorer.top_k(Bags.of(features), 5, 3), again.top_k(Bags.of(features), 5)):
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])

    def test_points_turned_around_are_parted_and_embedded_alike(self, fitted):
        features, labels, _ = grouped_points(900)
        turned = AnnexML(n_learners=3, dimension=16, partition_size=200, n_threads=1)
        turned.fit(-features[:800], labels[:800])
        expected = fitted.predict_topk(features[800:], 5)
        found = turned.predict_topk(-features[800:], 5)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_a_small_part_has_few_near_points_and_a_point_of_which_nothing_is_known_none():
    unit, both = np.eye(2, dtype=np.float32), np.array([0, 2])
    learner = AnnexLearner(
        partition_weights=np.ones((3, 1), np.float32),
        token_starts=both,
        tokens=np.arange(2),
        token_vectors=unit,
        point_starts=both,
        points=np.arange(2),
        point_vectors=unit,
    )
    bags = Bags.of(csr_array(np.array([[0, 1, 0], [0, 0, 1]], np.float32)))
    assert learner.near_points(bags, 4).tolist() == [[1, 0, -1, -1], [-1] * 4]
