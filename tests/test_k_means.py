"""Spherical k-means, as a user of several label representatives sees it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.clustering.k_means import spherical_k_means
from longtail.errors import InputError
from small_groups import planted

few = settings(max_examples=25, deadline=None)


def test_finds_planted_centres():
    vectors, groups = planted(6, 30)
    scales = np.random.default_rng(1).uniform(0.1, 9, (180, 1)).astype(np.float32)
    centres = spherical_k_means(vectors * scales, 6, seed=0)
    nearest = (vectors @ centres.T).argmax(axis=1)
    assert len(set(zip(nearest.tolist(), groups.tolist(), strict=True))) == 6
    assert len(set(nearest.tolist())) == 6


@few
@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 10**6))
def test_centres_have_unit_length(n_rows, n_centres, seed):
    random = np.random.default_rng(seed)
    vectors = random.integers(-1, 2, (n_rows, 3)).astype(np.float32)  # many alike, some zero
    centres = spherical_k_means(vectors, n_centres, seed=seed)
    assert centres.dtype == np.float32
    assert centres.shape == (min(n_centres, int(vectors.any(axis=1).sum())), 3)
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 1.0, rtol=1e-5)


def test_iterations_raise_the_mean_cosine():
    vectors = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    one, many = (
        (unit @ spherical_k_means(vectors, 10, seed=0, max_iterations=n).T).max(axis=1).mean()
        for n in (1, 50)
    )
    assert many > one + 0.005


@few
@given(st.integers(2, 40), st.integers(0, 10**6))
def test_a_centre_for_each_direction_where_there_are_enough(n_rows, seed):
    directions = np.random.default_rng(seed).standard_normal((4, 6)).astype(np.float32)
    vectors = directions[np.random.default_rng(seed + 1).integers(0, 4, n_rows)]
    centres = spherical_k_means(vectors, 6, seed=seed)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert (unit @ centres.T).max(axis=1).min() > 0.999


def test_same_seed_same_centres():
    vectors, _ = planted(3, 20)
    assert np.array_equal(
        spherical_k_means(vectors, 7, seed=3), spherical_k_means(vectors, 7, seed=3)
    )


def test_refuses_what_is_not_a_matrix():
    with pytest.raises(InputError, match="must be a matrix"):
        spherical_k_means(np.ones(3, np.float32), 2, seed=0)
