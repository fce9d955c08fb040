"""Linear support vector machines on hard negatives, and the scores of their sparse weights."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from sklearn.svm import LinearSVC

from longtail.classifiers.listed_points import points_listing
from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.data.bags import Bags
from longtail.data.rows import unit_rows
from longtail.errors import InputError
from longtail.kernels.random_bits import random_unit
from longtail.scorers.sparse_label_vectors import SparseLabelVectors
from small_runs import a_run, on_shortlists

EXACT = SparseOneVsRest(tolerance=1e-5, max_passes=2000, prune=0.0)


def a_problem(seed, n_points=60, n_features=30, n_labels=7):
    random = np.random.default_rng(seed)
    features = random_array((n_points, n_features), density=0.2, rng=random, format="csr")
    labels = random_array((n_points, n_labels), density=0.2, rng=random, format="csr")
    return unit_rows(csr_array(features, dtype=np.float32)), csr_array(labels)


def all_shortlisted(labels):
    """Every point is a negative of every label that it does not carry."""
    return np.tile(np.arange(labels.shape[1], dtype=np.int32), (labels.shape[0], 1))


def dense_weights(classifier, n_features):
    """Weights and, last, the bias: (n_labels, n_features + 1)."""
    shape = (classifier.n_labels, n_features)
    arrays = (classifier.weights, classifier.features, classifier.starts)
    return np.column_stack([csr_array(arrays, shape).toarray(), classifier.bias])


def same(first, second):
    return all(
        np.array_equal(array, second.to_arrays()[name]) for name, array in first.to_arrays().items()
    )


def xorshift(bits):
    bits ^= bits << 13 & 0xFFFFFFFF
    bits ^= bits >> 17
    return bits ^ (bits << 5 & 0xFFFFFFFF)


def twin(rows, signs, settings, seed, label):
    """Hsieh et al. (2008), algorithm 3, in plain numpy, with Newton's steps of the bias."""
    n_points, diagonal = len(rows), np.float32(0.5 / settings.cost)
    alpha, weights = np.zeros(n_points, np.float32), np.zeros(rows.shape[1], np.float32)
    active, n_active, limit = list(range(n_points)), n_points, np.inf
    bits = int(1 + random_unit(seed, label, 0) * (2**32 - 2))
    products = rows @ rows.T
    own = products.trace() / n_points + diagonal
    others = max(products.sum() - products.trace(), 0) / (n_points * (n_points - 1))
    bias, step, slope, least = signs.sum() / (own + n_points), 0, 0, 0
    for _ in range(settings.max_passes):
        gradients, place = [], 0
        while place < n_active:
            bits = xorshift(bits)
            other = place + (bits * (n_active - place) >> 32)
            active[place], active[other] = active[other], active[place]
            i = active[place]
            gradient = signs[i] * (rows[i] @ weights + bias) - 1 + diagonal * alpha[i]
            if alpha[i] == 0 and gradient > limit:
                n_active -= 1
                active[place], active[n_active] = active[n_active], active[place]
                continue
            place += 1
            gradients.append(min(gradient, 0) if alpha[i] == 0 else gradient)
            new = max(alpha[i] - gradients[-1] / (rows[i] @ rows[i] + diagonal), 0)
            weights += (new - alpha[i]) * signs[i] * rows[i]
            alpha[i] = new
        before, slope, n_support = slope, bias - signs @ alpha, (alpha > 0).sum()
        if slope * before < 0:
            least = max(least, min((before - slope) / step, 1 + n_support / diagonal))
        curvature = max(1 + n_support / (own + (n_support - 1) * others), least)
        step = np.clip(slope / curvature, -0.2, 0.2)
        bias -= step
        if np.ptp(gradients or [0]) + 2 * abs(step) > settings.tolerance:
            limit = max(gradients, default=-np.inf)
            limit = limit if limit > 0 else np.inf
        elif n_active == n_points:
            break
        else:
            n_active, limit = n_points, np.inf
    return np.append(weights, bias)


class TestSolver:
    # The same problems each time: in one of a thousand, rounding decides whether a point is set
    # aside, and the steps part there.
    @given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 10.0]), st.sampled_from([1, 3, 20]))
    @settings(max_examples=25, deadline=None, derandomize=True)
    def test_takes_the_steps_of_its_twin(self, seed, cost, max_passes):
        features, labels = a_problem(seed)
        solver = SparseOneVsRest(cost=cost, max_passes=max_passes, prune=0.0)
        candidates, group = csr_array(np.ones((1, 60))), np.zeros(7, np.int32)
        found = solver.learn_among(features, labels, candidates, group, seed=seed, n_threads=1)
        for label, weights in enumerate(dense_weights(found, 30)):
            signs = np.where(labels.toarray()[:, label] > 0, 1, -1)
            if (signs == 1).any():
                expected = twin(features.toarray(), signs, solver, seed, label)
                np.testing.assert_allclose(weights, expected, atol=1e-4)

    @pytest.mark.parametrize("cost", [0.5, 5.0])
    def test_finds_what_scikit_learn_finds(self, cost):
        features, labels = a_problem(1)
        solver = SparseOneVsRest(cost=cost, tolerance=1e-5, max_passes=2000, prune=0.0)
        found = dense_weights(
            on_shortlists(solver, features, labels, all_shortlisted(labels), a_run()), 30
        )
        for label in range(7):
            theirs = LinearSVC(C=cost, loss="squared_hinge", dual=True, tol=1e-8, max_iter=100_000)
            theirs.fit(features, labels.toarray()[:, label] > 0)
            np.testing.assert_allclose(found[label, :-1], theirs.coef_[0], atol=1e-3)
            np.testing.assert_allclose(found[label, -1], theirs.intercept_[0], atol=1e-3)

    @pytest.mark.parametrize("kind", ["signed", "alike", "two kinds", "rows of any length", "one"])
    def test_finds_it_wherever_the_bias_has_to_go(self, kind):
        # Where the curvature of the bias is guessed badly, steps that are too long are shortened.
        random = np.random.default_rng(0)
        rows = random.normal(size=(90, 12)).astype(np.float32)
        if kind == "alike":
            rows += 3
        if kind == "two kinds":
            rows[:45] = 5 + rows[:45] / 10
        if kind != "rows of any length":
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        is_positive = np.arange(90) < (1 if kind == "one" else 60)
        labels = csr_array(is_positive[:, None].astype(np.float32))
        candidates, group = csr_array(np.ones((1, 90))), np.zeros(1, np.int32)
        for cost in (0.1, 1.0):
            solver = SparseOneVsRest(cost=cost, tolerance=1e-4, max_passes=1000, prune=0.0)
            found = solver.learn_among(
                csr_array(rows), labels, candidates, group, seed=0, n_threads=1
            )
            theirs = LinearSVC(C=cost, dual=False, tol=1e-8).fit(rows, is_positive)
            expected = np.append(theirs.coef_[0], theirs.intercept_[0])
            np.testing.assert_allclose(dense_weights(found, 12)[0], expected, atol=2e-3)

    def test_tells_separable_labels_apart(self):
        features = csr_array(np.repeat(np.eye(5, dtype=np.float32), 4, axis=0))
        labels = features.copy()
        learnt = on_shortlists(
            SparseOneVsRest(), features, labels, all_shortlisted(labels), a_run()
        )
        logits = learnt.logits(Bags.of(features), all_shortlisted(labels))
        np.testing.assert_array_equal(logits > 0, labels.toarray() > 0)


class TestLearn:
    def test_points_that_list_labels_are_not_numbered_by_64_bits(self):
        # Of millions of points, each has a hundred labels that it is told apart from.
        lists = points_listing(np.array([[1, -1], [1, 0]], np.int32), n_labels=2)
        assert lists.indices.dtype == lists.indptr.dtype == np.int32

    def test_only_shortlisted_points_without_the_label_are_negatives(self):
        features, labels = a_problem(2)
        truth = labels.toarray() > 0
        random = np.random.default_rng(0)
        is_listed = random.random(truth.shape) < 0.4
        shortlists = np.where(is_listed, np.arange(7), -1).astype(np.int32)
        shortlists = -np.sort(-shortlists, axis=1)  # padding last
        found = dense_weights(on_shortlists(EXACT, features, labels, shortlists, a_run()), 30)
        for label in range(7):
            own = truth[:, label] | is_listed[:, label]
            subset = EXACT.learn_among(
                features[own],
                labels[own],
                csr_array(np.ones((1, own.sum()))),
                np.zeros(7, np.int32),
                seed=3,
                n_threads=1,
            )
            np.testing.assert_allclose(found[label], dense_weights(subset, 30)[label], atol=1e-3)

    def test_threads_change_nothing_and_the_seed_does(self):
        features, labels = a_problem(3, n_points=300, n_labels=40)
        shortlists = all_shortlisted(labels)
        one, four, other = (
            on_shortlists(SparseOneVsRest(), features, labels, shortlists, run)
            for run in (a_run(), a_run(n_threads=4), a_run(seed=1))
        )
        assert same(one, four)
        assert not same(one, other)

    def test_prunes_small_weights_only(self):
        features, labels = a_problem(4)
        shortlists = all_shortlisted(labels)
        whole = dense_weights(
            on_shortlists(SparseOneVsRest(prune=0.0), features, labels, shortlists, a_run()), 30
        )
        pruned = dense_weights(
            on_shortlists(SparseOneVsRest(prune=0.3), features, labels, shortlists, a_run()), 30
        )
        is_small = np.abs(whole) < 0.3
        is_small[:, -1] = False
        assert is_small[:, :-1].any()
        np.testing.assert_array_equal(pruned, np.where(is_small, 0, whole))

    def test_features_ascend_within_a_label(self):
        learnt = on_shortlists(
            SparseOneVsRest(), *a_problem(5), np.zeros((60, 1), np.int32), a_run()
        )
        for start, stop in zip(learnt.starts[:-1], learnt.starts[1:], strict=True):
            assert (np.diff(learnt.features[start:stop]) > 0).all()

    def test_a_label_without_points(self):
        features, labels = a_problem(6)
        wider = csr_array((labels.data, labels.indices, labels.indptr), (60, 9))
        learnt = on_shortlists(SparseOneVsRest(), features, wider, all_shortlisted(wider), a_run())
        assert learnt.bias[7:].tolist() == [-1, -1]
        assert learnt.starts[7] == learnt.starts[9]

    def test_points_without_features(self):
        features = csr_array((6, 4), dtype=np.float32)
        labels = csr_array(np.eye(6, 3))
        learnt = on_shortlists(
            SparseOneVsRest(), features, labels, all_shortlisted(labels), a_run()
        )
        assert len(learnt.weights) == 0
        assert (learnt.bias < 0).all()

    def test_leaves_its_arguments_alone(self):
        features, labels = a_problem(7)
        arrays = [a for m in (features, labels) for a in (m.data, m.indices, m.indptr)]
        before = [array.copy() for array in arrays]
        on_shortlists(SparseOneVsRest(), features, labels, all_shortlisted(labels), a_run())
        for array, old in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, old)

    def test_refuses_what_does_not_fit(self):
        features, labels = a_problem(8)
        shortlists = all_shortlisted(labels)
        with pytest.raises(InputError, match="59 points, `labels` 60 and `candidates` 60"):
            on_shortlists(SparseOneVsRest(), features[:-1], labels, shortlists, a_run())
        with pytest.raises(InputError, match="60 points, `labels` 60 and `candidates` 59"):
            on_shortlists(SparseOneVsRest(), features, labels, shortlists[:-1], a_run())
        broken = features.copy()
        broken.data[0] = np.nan
        with pytest.raises(InputError, match="NaN"):
            on_shortlists(SparseOneVsRest(), broken, labels, shortlists, a_run())
        with pytest.raises(InputError, match="one group below 1 for each of 7 labels"):
            SparseOneVsRest().learn_among(
                features,
                labels,
                csr_array(np.ones((1, 60))),
                np.ones(7, np.int32),
                seed=0,
                n_threads=1,
            )


class TestLogits:
    @given(st.integers(0, 10_000), st.sampled_from([0.02, 0.5]))
    @settings(max_examples=25, deadline=None)
    def test_equal_a_dense_product(self, seed, density):
        random = np.random.default_rng(seed)
        weights = random_array((9, 300), density=0.6, rng=random, format="csr", dtype=np.float32)
        points = random_array((20, 350), density=density, rng=random, format="csr")
        points = csr_array(points, dtype=np.float32)
        bias = random.normal(size=9).astype(np.float32)
        labels = random.integers(-1, 9, (20, 5), np.int32)
        classifier = SparseLabelVectors(weights.indptr, weights.indices, weights.data, bias)
        every = points.toarray()[:, :300] @ weights.toarray().T + bias
        expected = np.where(labels < 0, -np.inf, np.take_along_axis(every, labels, axis=1))
        found = classifier.logits(Bags.of(points), labels, n_threads=2)
        np.testing.assert_allclose(found, expected, atol=1e-4)
        for row in range(20):
            alone = classifier.logits(Bags.of(points).rows(row, row + 1), labels[row : row + 1])
            np.testing.assert_array_equal(alone[0], found[row])

    def test_no_points_and_no_weights(self):
        classifier = SparseLabelVectors(
            np.zeros(3), np.empty(0), np.empty(0), np.array([1.0, -1.0])
        )
        nothing = Bags(np.zeros(2, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
        assert classifier.logits(nothing, np.array([[1, 0]], np.int32)).tolist() == [[-1, 1]]
        assert classifier.logits(nothing.rows(0, 0), np.empty((0, 2), np.int32)).shape == (0, 2)

    def test_arrays_make_it_again(self):
        learnt = on_shortlists(
            SparseOneVsRest(), *a_problem(9), np.zeros((60, 1), np.int32), a_run()
        )
        assert same(SparseLabelVectors(**learnt.to_arrays()), learnt)

    def test_refuses_arrays_that_do_not_fit(self):
        with pytest.raises(InputError, match="got 2 starts, the last \\[3\\], 2 features"):
            SparseLabelVectors(np.array([0, 3]), np.zeros(2), np.zeros(2), np.zeros(1))

    def test_needs_no_torch(self):
        code = (
            "import sys\n"
            "import longtail.scorers.sparse_label_vectors\n"
            "import longtail.classifiers.sparse_one_vs_rest\n"
            "sys.exit('torch' in sys.modules)\n"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others free memory otherwise")
def test_what_threads_have_left_is_given_back_while_it_is_joined():
    """From the first part on, freed memory would stay with the process up to the last."""
    code = (
        "import numpy as np\n"
        "from longtail.classifiers.sparse_one_vs_rest import _joined\n"
        "from longtail.training.peak_memory import peak_memory\n"
        "np.ones(10**7, np.uint8)\n"  # from now on, smaller arrays lie on the heap
        "of_one = np.arange(200_000, dtype=np.int32)\n"
        "parts = [(of_one + part, np.float32(of_one)) for part in range(64)]\n"
        "before = peak_memory()\n"
        "features, _ = _joined(parts)\n"
        "assert (features.reshape(64, -1)[:, 0] == np.arange(64)).all()\n"
        "print((peak_memory() - before) / (2 * features.nbytes))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert float(ran.stdout) < 0.6
