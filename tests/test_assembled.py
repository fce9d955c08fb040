"""Arrays that several threads put together, against numpy and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from longtail.data.assembled import joined, moved_up, rows_of

few = settings(max_examples=40, deadline=None)


@few
@given(st.lists(st.integers(0, 5), max_size=20), st.integers(1, 3))
def test_joined(lengths, n_threads):
    parts = [np.arange(i, i + length, dtype=np.float32) for i, length in enumerate(lengths)]
    whole = joined(parts, np.float32, n_threads)
    assert whole.dtype == np.float32
    np.testing.assert_array_equal(whole, np.concatenate([np.zeros(0), *parts]))


@few
@given(st.integers(0, 1000), st.integers(1, 30), st.integers(1, 3), st.booleans())
def test_rows_of(seed, n, n_threads, in_order):
    random = np.random.default_rng(seed)
    matrix = random_array((n, 7), density=0.3, rng=random, format="csr", dtype=np.float32)
    rows = random.integers(0, n, random.integers(0, 2 * n))
    rows = np.unique(rows) if in_order else rows
    some = rows_of(matrix, rows, n_threads)
    assert some.shape == (len(rows), 7)
    assert (some.indices.dtype, some.indptr.dtype) == (np.int32, np.int32)
    assert some.has_canonical_format
    np.testing.assert_array_equal(some.toarray(), matrix.toarray()[rows])


@few
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 5))
def test_moved_up(is_kept, n_at_once):
    rows = np.flatnonzero(is_kept).astype(np.int32)
    matrix = np.arange(3 * len(is_kept), dtype=np.float32).reshape(-1, 3)
    wanted = matrix[rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longtail.data.assembled.ROWS_MOVED", n_at_once)
        moved = moved_up(matrix, rows)
    assert np.shares_memory(moved, matrix) or not len(rows)
    np.testing.assert_array_equal(moved, wanted)


@pytest.mark.parametrize("rows", [[0, 1], [1], []])
def test_rows_of_keeps_entries_as_they_are(rows):
    arrays = (np.array([2, 3, 4], np.int8), np.array([1, 0, 1]), np.array([0, 3, 3]))
    matrix = csr_array(arrays, (2, 2))  # out of order, and twice the same
    some = rows_of(matrix, np.array(rows, np.int64), n_threads=1)
    assert some.dtype == np.int8
    assert not matrix.has_canonical_format
    np.testing.assert_array_equal(some.toarray(), matrix.toarray()[rows])
