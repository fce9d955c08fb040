"""What points carry speaks for labels that may be their own, as numpy sums it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail.kernels.arrays import read_only
from longtail.kernels.own_labels import carried_back
from longtail.kernels.sparse_lookup import SparseRows


def as_rows(matrix):
    """Sorted rows as the kernel takes them."""
    rows = csr_array(matrix)
    no_scales = read_only(np.zeros(0), np.float32)
    return SparseRows(
        read_only(rows.indptr, np.int64),
        read_only(rows.indices, np.int32),
        read_only(rows.data, np.float32),
        no_scales,
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 7),
    st.integers(0, 5),
    st.integers(1, 9),
    st.floats(0, 1),
    st.booleans(),
)
def test_carried_back(seed, n_points, k, n_labels, density, may_carry):
    random = np.random.default_rng(seed)
    ids = random.integers(-1, n_labels, (n_points, k))
    carried = random.random((n_points, n_labels)) < density
    links = random.integers(1, 4, (n_labels, n_labels)) * (random.random(2 * (n_labels,)) < density)
    start, stop = sorted(random.integers(0, n_points + 1, 2))
    evidence = np.full((n_points, k), 77, np.float32)
    rows = as_rows(carried)
    carried_back(
        read_only(ids, np.int32), *rows[:2], as_rows(links), may_carry, start, stop, evidence
    )
    expected = (carried @ links.T)[np.arange(n_points)[:, None], ids].astype(float)
    is_own = carried[np.arange(n_points)[:, None], ids]
    expected[(is_own & (not may_carry)) | (ids < 0)] = -1
    expected[:start] = expected[stop:] = 77
    np.testing.assert_array_equal(evidence, expected)
