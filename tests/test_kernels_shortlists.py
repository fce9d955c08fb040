"""Shortlists turned around, as numpy does it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.shortlists import points_of_listed


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 9), st.integers(0, 5), st.integers(1, 6))
def test_points_of_listed(seed, n_points, size, n_labels):
    random = np.random.default_rng(seed)
    shortlists = random.integers(-2, n_labels, (n_points, size)).astype(np.int32)  # some twice
    row_starts = np.arange(n_points + 1) * size
    starts, points = points_of_listed(row_starts, shortlists.ravel(), n_labels)
    expected = [np.flatnonzero((shortlists == label).any(axis=1)) for label in range(n_labels)]
    assert starts.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert points.tolist() == np.concatenate(expected).tolist()
    assert (starts.dtype, points.dtype) == (np.int64, np.int32)
