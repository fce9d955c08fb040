"""Logistic regression with an L1 penalty, against the conditions of an optimum and LIBLINEAR."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from sklearn.linear_model import LogisticRegression

from longtail.kernels.sparse_logistic import Regression, separate
from longtail.kernels.sparse_points import Points


def problem(seed, n_points=60, n_features=12):
    random = np.random.default_rng(seed)
    rows = random_array((n_points, n_features), density=0.4, rng=random, dtype=np.float32)
    rows = csr_array(rows)
    signs = np.where(rows @ random.standard_normal(n_features) > 0.1, 1, -1).astype(np.float32)
    signs[:2] = -1, 1
    return rows, signs


def points_of(rows):
    norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel().astype(np.float32)
    columns = rows.indices.astype(np.uint32)
    return Points(rows.indptr.astype(np.int64), columns, rows.data, norms, rows.shape[1])


def solved(rows, signs, cost, tolerance=1e-4, max_passes=500):
    weights = np.zeros(rows.shape[1], np.float32)
    bias = separate(points_of(rows), signs, Regression(cost, tolerance, max_passes), weights)
    return weights, bias


def costs_of(signs, cost):
    share = (signs > 0).mean()
    return np.where(signs > 0, cost / share, cost / (1 - share))


def objective(rows, signs, cost, weights, bias):
    losses = np.logaddexp(0, -signs * (rows @ weights + bias))
    return abs(weights).sum() + abs(bias) + (costs_of(signs, cost) * losses).sum()


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.5, 4.0]))
@settings(max_examples=25, deadline=None)
def test_the_conditions_of_an_optimum_hold(seed, cost):
    rows, signs = problem(seed)
    weights, bias = solved(rows, signs, cost)
    chances = 1 / (1 + np.exp(signs * (rows @ weights + bias)))
    pulls = -signs * costs_of(signs, cost) * chances  # of the loss, on each margin
    slopes = np.append(rows.T @ pulls, pulls.sum())
    both = np.append(weights, bias)
    assert (abs(slopes[both == 0]) <= 1.02).all()
    np.testing.assert_allclose(slopes[both != 0], -np.sign(both[both != 0]), atol=0.1)


@pytest.mark.parametrize("cost", [0.2, 2.0])
def test_as_low_as_liblinear(cost):
    rows, signs = problem(3, n_points=300, n_features=40)
    share = (signs > 0).mean()
    peer = LogisticRegression(
        l1_ratio=1,
        solver="liblinear",
        C=cost,
        class_weight={1: 1 / share, -1: 1 / (1 - share)},
        tol=1e-6,
        max_iter=2000,
    ).fit(rows, signs)
    least = objective(rows, signs, cost, peer.coef_[0], peer.intercept_[0])
    assert objective(rows, signs, cost, *solved(rows, signs, cost)) <= 1.001 * least


def test_one_group_alone_and_points_without_features():
    rows, signs = problem(0)
    weights, bias = solved(rows, np.ones_like(signs), 1.0)
    assert np.isfinite(weights).all()
    assert bias > 0
    empty = csr_array(rows.shape, dtype=np.float32)
    assert not solved(empty, signs, 1.0)[0].any()
