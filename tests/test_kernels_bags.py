"""The bag kernel, held to a plain numpy twin.

Small whole numbers: their sums are exact, so the twins must agree to the bit.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.bags import Bags
from longtail.kernels.arrays import read_only
from longtail.kernels.bags import sum_chosen_rows, sum_rows
from longtail.training.chosen_bags import ChosenBags, by_column
from longtail.training.scratch import Scratch

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def bags(seed, n_rows, n_tokens):
    """A CSR matrix of whole numbers, with repeated tokens and empty rows."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 6, n_rows)
    row_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    columns = random.integers(0, n_tokens, counts.sum()).astype(np.int32)
    values = random.integers(-2, 3, counts.sum()).astype(np.float32)
    return read_only(row_starts, np.int32), read_only(columns, np.int32), read_only(values, "f4")


def table(seed, n_tokens, dimension):
    drawn = np.random.default_rng(seed).integers(-2, 3, (n_tokens, dimension))
    return read_only(drawn, np.float32)


def sum_rows_twin(row_starts, columns, values, vectors):
    rows = [slice(*ends) for ends in pairwise(row_starts)]
    sums = [(values[row, np.newaxis] * vectors[columns[row]]).sum(axis=0) for row in rows]
    return np.array(sums, np.float32).reshape(len(rows), vectors.shape[1])


@few
@given(seeds, st.integers(0, 20), st.integers(1, 12), st.integers(1, 300))
def test_sum_rows(seed, n_rows, n_tokens, dimension):
    some, vectors = bags(seed, n_rows, n_tokens), table(seed + 1, n_tokens, dimension)
    sums = np.full((n_rows, dimension), 77, np.float32)
    sum_rows(*some, vectors, 0, n_rows, sums)
    np.testing.assert_array_equal(sums, sum_rows_twin(*some, vectors))


@few
@given(seeds, st.integers(0, 20), st.integers(1, 12), st.integers(1, 700), st.booleans())
def test_sum_chosen_rows_of_either_kind(seed, n_rows, n_tokens, dimension, is_half):
    """The small numbers of the table are bfloat16s too."""
    some, vectors = bags(seed, 9, n_tokens), table(seed + 1, n_tokens, dimension)
    chosen = np.random.default_rng(seed).integers(0, 9, n_rows)
    stored = (vectors.view(np.uint32) >> 16).astype(np.uint16) if is_half else vectors
    sums = np.full((n_rows, dimension), 77, np.float32)
    sum_chosen_rows(chosen, *some, stored, 0, n_rows, sums)
    np.testing.assert_array_equal(sums, sum_rows_twin(*some, vectors)[chosen])


@few
@given(seeds)
def test_the_transpose_gives_the_gradient_of_the_table(seed):
    row_starts, columns, values = bags(seed, 9, 5)
    slopes = table(seed + 1, 9, 7)
    matrix = sp.csr_array((values, columns, row_starts), shape=(9, 5))
    transposed = matrix.tocsc()
    gradient = np.empty((5, 7), np.float32)
    arrays = (read_only(transposed.indptr, np.int32), read_only(transposed.indices, np.int32))
    sum_rows(*arrays, read_only(transposed.data, np.float32), slopes, 0, 5, gradient)
    np.testing.assert_array_equal(gradient, matrix.toarray().T @ slopes)


def test_other_rows_are_left_alone():
    sums = np.full((6, 3), 77, np.float32)
    sum_rows(*bags(0, 6, 4), table(1, 4, 3), 2, 4, sums)
    assert (sums[[0, 1, 4, 5]] == 77).all()
    assert (sums[2:4] != 77).all()


def test_a_row_has_the_same_bits_whatever_stands_beside_it():
    random = np.random.default_rng(0)
    row_starts, columns, _ = bags(3, 40, 30)
    values = read_only(random.standard_normal(len(columns)), np.float32)
    vectors = read_only(random.standard_normal((30, 37)), np.float32)
    sums = np.empty((40, 37), np.float32)
    sum_rows(row_starts, columns, values, vectors, 0, 40, sums)
    for row in range(40):
        ends = slice(row_starts[row], row_starts[row + 1])
        starts = read_only([0, ends.stop - ends.start], np.int32)
        alone = np.empty((1, 37), np.float32)
        sum_rows(starts, columns[ends], values[ends], vectors, 0, 1, alone)
        assert alone[0].tobytes() == sums[row].tobytes()


@few
@given(seeds, st.integers(0, 20), st.integers(1, 12), st.integers(0, 3))
def test_by_column(seed, n_rows, n_tokens, n_parts):
    some = Bags(*bags(seed, n_rows, n_tokens))
    random = np.random.default_rng(seed)
    chosen = [random.permutation(n_rows)[: random.integers(0, n_rows + 1)] for _ in range(n_parts)]
    room, scratch = np.zeros(n_tokens, np.int32), Scratch()
    for _ in range(2):  # in fresh memory, and in that of the first
        parts = [ChosenBags.of(some, rows) for rows in chosen]
        touched, by_token = by_column(parts, room, scratch)
    in_order = [row for rows in chosen for row in rows]
    entries = [
        (column, row, value)
        for row, own in enumerate(in_order)
        for column, value in zip(*entries_of(some, own), strict=True)
    ]
    firsts = list(dict.fromkeys(column for column, _, _ in entries))
    assert touched.tolist() == firsts
    grouped = [
        (column, row, value)
        for t, column in enumerate(firsts)
        for row, value in zip(*entries_of(by_token, t), strict=True)
    ]
    assert grouped == sorted(entries, key=lambda entry: firsts.index(entry[0]))
    assert not room.any()


def entries_of(some, row):
    """The columns and the values of a bag."""
    ends = slice(some.row_starts[row], some.row_starts[row + 1])
    return some.columns[ends].tolist(), some.values[ends].tolist()


@few
@given(seeds, st.integers(1, 20), st.integers(1, 12))
def test_sum_chosen_rows(seed, n_rows, n_tokens):
    arrays, vectors = bags(seed, n_rows, n_tokens), table(seed, n_tokens, 5)
    chosen = np.random.default_rng(seed).integers(0, n_rows, 2 * n_rows)
    sums = np.empty((len(chosen), 5), np.float32)
    ChosenBags.of(Bags(*arrays), chosen).times(vectors, sums, 2)
    np.testing.assert_array_equal(sums, sum_rows_twin(*arrays, vectors)[chosen])
