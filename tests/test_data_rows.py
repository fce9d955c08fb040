"""The row helpers that the surrogate tasks share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.csr import csr_of_chosen, n_labels_of, row_with_repeats, with_int32_indices
from longtail.data.rows import (
    as_rows,
    binary,
    row_norms,
    unit_product,
    unit_rows,
)
from longtail.errors import InputError

few = settings(max_examples=25, deadline=None)


def whole_numbers(seed, *shape):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


@few
@given(st.integers(0, 10**6), st.booleans())
def test_unit_rows_have_unit_length_or_none(seed, sparse):
    rows = whole_numbers(seed, 9, 4)
    rows[3] = 0
    lengths = np.linalg.norm(rows, axis=1)
    given_rows = sp.csr_array(rows) if sparse else rows
    np.testing.assert_allclose(row_norms(given_rows), lengths, rtol=1e-6)
    unit = dense(unit_rows(given_rows))
    np.testing.assert_allclose(unit * lengths[:, np.newaxis], rows, atol=1e-6)
    assert not unit[3].any()


def test_unit_rows_are_not_copied():
    rows = np.eye(3, dtype=np.float32)
    assert unit_rows(rows) is rows


@few
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 3))
def test_unit_product_keeps_the_largest_entries(seed, max_entries, n_threads):
    left, right = whole_numbers(seed, 300, 6), whole_numbers(seed + 1, 6, 5)
    # Distinct sizes: which of two equal entries is kept is not promised.
    product = (left * 1.01 ** np.arange(6, dtype=np.float32)) @ (right + np.eye(6, 5) / 9)
    left_rows = sp.csr_array(product.astype(np.float32))
    identity = sp.eye_array(5, dtype=np.float32, format="csr")
    found = unit_product(left_rows, identity, max_entries, n_threads).toarray()
    for row, values in zip(found, left_rows.toarray(), strict=True):
        kept = np.flatnonzero(row)
        assert len(kept) == min(max_entries, np.count_nonzero(values))
        dropped = np.setdiff1d(np.flatnonzero(values), kept)
        assert np.abs(values[dropped]).max(initial=0) <= np.abs(values[kept]).min(initial=np.inf)
        length = np.linalg.norm(values[kept])
        np.testing.assert_allclose(row[kept] * length, values[kept], rtol=1e-5, atol=1e-6)


def test_as_rows_sums_duplicates_and_leaves_its_input_alone():
    rows = sp.csr_array((np.array([1.0, 2.0]), [1, 1], [0, 2]), shape=(1, 2))
    brought = as_rows("x", rows)
    assert brought.toarray().tolist() == [[0.0, 3.0]]
    assert brought.dtype == np.float32
    assert rows.nnz == 2


def test_as_rows_refuses_what_is_not_finite_or_not_a_matrix():
    with pytest.raises(InputError, match="`x` holds NaN"):
        as_rows("x", np.array([[np.nan]]))
    with pytest.raises(InputError, match="`x` must be a matrix, got 1"):
        as_rows("x", np.ones(2))


def test_binary_drops_stored_zeros():
    rows = sp.csr_array((np.array([5.0, 0.0]), [0, 1], [0, 2]), shape=(1, 2))
    ones = binary(rows)
    assert ones.indices.tolist() == [0]
    assert ones.data.tolist() == [1.0]
    assert rows.nnz == 2


def test_chosen_entries_are_sorted_and_padding_is_left_out():
    ids = np.array([[1, 0], [-1, -1]], np.int32)
    matrix = csr_of_chosen(ids, np.array([[0.25, 0.75], [0, 0]]), ids >= 0, 2)
    assert matrix.toarray().tolist() == [[0.75, 0.25], [0.0, 0.0]]
    assert matrix.nnz == 2


@pytest.mark.parametrize(
    ("columns", "starts", "expected"),
    [
        ([2, 1, 2], [0, 2, 3], None),  # the second row has what the first one ends with
        ([2, 1, 2], [0, 3, 3], 0),
        ([0, 2, 1, 2], [0, 1, 4], 1),
    ],
)
def test_a_column_that_a_row_has_twice(columns, starts, expected):
    shape = len(starts) - 1, 3
    assert (
        row_with_repeats(sp.csr_array((np.ones(len(columns)), columns, starts), shape)) == expected
    )


def test_many_ids_may_be_of_very_many_labels():
    ids = np.zeros(100_001, np.int32)
    ids[-1] = 10_000_001
    assert n_labels_of(ids) == 10_000_002
    with pytest.raises(InputError, match="An id is a row number"):
        n_labels_of(ids[2:])


def test_indices_that_int32_cannot_hold_stay_as_they_are():
    entries = np.ones(1, np.float32), np.array([2**31 + 1]), np.array([0, 1])
    wide = sp.csr_array(entries, shape=(1, 2**31 + 2))
    assert with_int32_indices(wide) is wide
