"""Sparse rows laid out anew, beside scipy and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from longtail.kernels.packed_ids import pack_ids, unpacked_ids
from longtail.kernels.sparse_splitting import (
    count_ids,
    keep_columns,
    keep_weights,
    place_rows,
    place_weights,
    quantise_entries,
)
from longtail.row_store import (
    RowStore,
    are_common,
    column_ids,
    float_weights,
    whole_rows,
)


def drawn_rows(seed, shape=(9, 7)):
    rows = random_array(shape, density=0.4, format="csr", dtype=np.float32, rng=seed)
    rows.data -= np.float32(0.5)
    return csr_array(rows)


def as_kernels_take(rows):
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_entries_are_transposed_as_scipy_does(seed):
    rows = drawn_rows(seed)
    is_left = np.random.default_rng(seed).random(rows.shape[1]) < 0.3
    starts, columns, weights = as_kernels_take(rows)
    counts = np.zeros(rows.shape[1], np.int64)
    count_ids(columns, counts)
    assert counts.tolist() == np.bincount(columns, minlength=rows.shape[1]).tolist()
    kept = rows.copy()
    kept.data[is_left[kept.indices]] = 0
    kept.eliminate_zeros()
    expected = csr_array(kept.T.tocsr())
    placed, values = np.empty(kept.nnz, np.int32), np.empty(kept.nnz, np.float32)
    next_places = expected.indptr[:-1].astype(np.int64)
    place_rows(starts, columns, is_left, next_places, placed)
    assert next_places.tolist() == expected.indptr[1:].tolist()
    place_weights(columns, weights, is_left, expected.indptr[:-1].astype(np.int64), values)
    assert placed.tolist() == expected.indices.tolist()
    assert values.tolist() == expected.data.tolist()


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_some_columns_are_kept_under_new_ids(seed):
    rows = drawn_rows(seed)
    is_kept = np.random.default_rng(seed).random(rows.shape[1]) < 0.5
    new_ids = np.cumsum(is_kept).astype(np.int32)
    n_kept = int(is_kept[rows.indices].sum())
    columns, weights = np.empty(n_kept, np.int32), np.empty(n_kept, np.float32)
    starts = np.empty(rows.shape[0] + 1, np.int64)
    row_starts, row_columns, row_weights = as_kernels_take(rows)
    keep_columns(row_starts, row_columns, is_kept, new_ids, columns, starts)
    keep_weights(row_columns, row_weights, is_kept, weights)
    dense = rows.toarray()[:, is_kept]
    found = csr_array((weights, columns - 1, starts), dense.shape)
    assert (found.toarray() == dense).all()


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_codes_of_entries_are_those_of_numpy(seed):
    starts, _, weights = as_kernels_take(drawn_rows(seed))
    codes, scales = np.empty(len(weights), np.int8), np.empty(len(starts) - 1, np.float32)
    quantise_entries(starts, weights, codes, scales)
    for row, scale in enumerate(scales):
        own = slice(starts[row], starts[row + 1])
        assert scale == pytest.approx(np.abs(weights[own]).max(initial=0) / 127, rel=1e-6)
        assert np.abs(codes[own] * scale - weights[own]).max(initial=0) <= scale * 0.5001


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_rows_that_were_split_are_found_again(dtype):
    rows = drawn_rows(3, (40, 30))
    for is_common in (np.arange(30) % 3 == 0, np.zeros(30, bool), np.ones(30, bool)):
        split = RowStore(dtype).split(rows, is_common)
        again = whole_rows(split, 40).toarray()
        assert np.abs(again - rows.toarray()).max() < {"int8": 0.5 / 127}.get(dtype, 1e-3)
        assert len(column_ids(split.rare)) == np.count_nonzero(~is_common[rows.indices])
        assert len(float_weights(split.common)) == np.count_nonzero(is_common[rows.indices])


def test_more_ids_than_are_packed_at_once(monkeypatch):
    monkeypatch.setattr("longtail.kernels.packed_ids._AT_ONCE", 4)
    ids = [5, 70_000, -1, 3, 2, 1, 0, 9, 8]
    packed = pack_ids(ids, 70_001)
    assert packed.shape == (11, 3)
    assert unpacked_ids(packed).tolist() == [i if i >= 0 else 2**24 - 1 for i in ids]


def test_weights_of_few_labels_are_all_kept_with_their_features():
    every_label_has_it = csr_array(np.ones((200, 1), np.float32))
    assert not are_common(every_label_has_it).any()
    assert are_common(csr_array(np.ones((201, 1), np.float32))).all()
