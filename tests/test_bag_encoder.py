"""Bags and the frozen bag-of-tokens encoder."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data import bags as bags_module
from longtail.data.bags import Bags
from longtail.errors import InputError
from longtail.features.bag_encoder import BagEncoder, StoredBagEncoder, UnitBagEncoder
from longtail.kernels.bags import sum_rows
from longtail.row_store import RowStore

few = settings(max_examples=25, deadline=None)


def sparse_rows(seed, n, n_tokens=60):
    return sp.random_array(
        (n, n_tokens), density=0.1, rng=np.random.default_rng(seed), dtype=np.float32, format="csr"
    )


def encoder(dimension=33, n_tokens=60):
    drawn = np.random.default_rng(5).standard_normal((n_tokens, dimension))
    return BagEncoder(drawn.astype(np.float32))


@few
@given(st.integers(0, 10**6), st.integers(0, 30))
def test_features_are_the_formula(seed, n):
    rows = sparse_rows(seed, n)
    expected = np.maximum(rows.toarray() @ encoder().token_vectors, 0)
    features = encoder().encode(Bags.of(rows))
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-5)


def test_one_bag_is_the_row_of_a_batch_and_threads_do_not_matter():
    rows = sparse_rows(0, 2500)
    model = encoder()
    features = model.encode(Bags.of(rows))
    assert model.encode(Bags.of(rows), n_threads=3).tobytes() == features.tobytes()
    for row in range(0, 2500, 97):
        ends = slice(rows.indptr[row], rows.indptr[row + 1])
        bag = Bags.one(rows.indices[ends], rows.data[ends])
        assert model.encode(bag).tobytes() == features[row].tobytes()


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-5), ("float16", 1e-3), ("int8", 0.1)])
def test_vectors_of_stored_tokens(dtype, error):
    vectors, bags = encoder().token_vectors, Bags.of(sparse_rows(3, 500))
    store = RowStore(dtype)
    stored = StoredBagEncoder(store.tokens(vectors), 33)
    exact = UnitBagEncoder(vectors).encode(bags)
    found = stored.encode(bags, n_threads=2)
    np.testing.assert_allclose(found, exact, atol=error)
    served = UnitBagEncoder(stored.token_vectors).encode(bags)  # what the codes stand for
    np.testing.assert_allclose(found, served, atol=1e-5)
    for own, again in zip(stored.rows, stored.stored(store), strict=True):
        assert np.shares_memory(own, again) or not len(own)
    assert stored.stored(RowStore("float16")).values.dtype == np.uint16


def test_an_empty_bag_has_no_features():
    bag = Bags.one(np.empty(0, np.int32), np.empty(0, np.float32))
    assert not encoder().encode(bag).any()
    assert encoder().encode(bag).shape == (1, 33)


def test_consecutive_bags():
    bags = Bags.of(sparse_rows(1, 40))
    some = bags.rows(7, 19)
    assert some.n_rows == 12
    assert np.shares_memory(some.values, bags.values)
    np.testing.assert_array_equal(encoder().encode(some), encoder().encode(bags)[7:19])
    assert bags.rows(4, 4).n_rows == 0


def test_bags_of_a_matrix_share_its_memory():
    rows = sparse_rows(2, 10)
    bags = Bags.of(rows)
    assert np.shares_memory(bags.values, rows.data)
    assert np.shares_memory(bags.columns, rows.indices)


def test_bags_of_a_matrix_with_other_types():
    rows = sparse_rows(3, 10)
    wide = rows.astype(np.float64)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    bags = Bags.of(wide)
    assert [part.dtype for part in bags[:3]] == [np.int32, np.int32, np.float32]
    assert encoder().encode(bags).tobytes() == encoder().encode(Bags.of(rows)).tobytes()


def test_more_columns_than_can_be_counted_are_refused():
    wide = sp.csr_array((1, 2**31), dtype=np.float32)
    with pytest.raises(InputError, match="hash the features"):
        bags_module.Bags.of(wide)


def test_a_read_only_table_is_neither_copied_nor_compiled_for_again():
    table = encoder().token_vectors.copy()
    mapped = table.copy()
    mapped.flags.writeable = False
    bags = Bags.of(sparse_rows(4, 5))
    expected = BagEncoder(table).encode(bags)
    n_compiled = len(sum_rows.signatures)
    frozen = Bags(*(part.copy() for part in bags[:3]))
    for part in frozen[:3]:
        part.flags.writeable = False
    assert BagEncoder(mapped).encode(frozen).tobytes() == expected.tobytes()
    assert len(sum_rows.signatures) == n_compiled
    assert np.shares_memory(BagEncoder(mapped).to_arrays()["token_vectors"], mapped)
