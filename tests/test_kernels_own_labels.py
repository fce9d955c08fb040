"""What points carry speaks for labels that may be their own, as numpy sums and sorts it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail.kernels.arrays import read_only
from longtail.kernels.own_labels import carried_back, keep_strongest
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


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(1, 30), st.integers(0, 8))
def test_keep_strongest(seed, n_rows, n_labels, most):
    random = np.random.default_rng(seed)
    matrix = random.integers(0, 4, (n_rows, n_labels))  # many are equally strong
    rows = as_rows(matrix)
    kept_starts = np.append(0, np.cumsum(np.minimum(np.diff(rows.starts), most))).astype(np.int64)
    labels = np.full(kept_starts[-1], -7, np.int32)
    weights = np.full(kept_starts[-1], -7, np.float32)
    keep_strongest(*rows[:3], kept_starts, labels, weights)
    for row in range(n_rows):
        order = np.lexsort((np.arange(n_labels), -matrix[row]))
        order = order[matrix[row][order] > 0][:most]
        kept = slice(kept_starts[row], kept_starts[row + 1])
        np.testing.assert_array_equal(labels[kept], order)
        np.testing.assert_array_equal(weights[kept], matrix[row][order])
