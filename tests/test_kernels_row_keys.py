"""Keys of sparse rows, as numpy computes them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail.kernels.row_keys import keys_of_heaviest


def mixed(number: int) -> np.ndarray:
    z = (np.array([number], np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_keys_of_heaviest(seed, n_heaviest):
    random = np.random.default_rng(seed)
    matrix = csr_array(random.integers(-1, 3, (7, 12)).astype(np.float32))  # many equal weights
    n_rows_with = np.bincount(matrix.indices, minlength=12)
    keys = np.empty(7, np.uint64)
    starts = matrix.indptr.astype(np.int64)
    keys_of_heaviest(starts, matrix.indices, matrix.data, n_rows_with, n_heaviest, keys)
    for row in range(7):
        columns = matrix.indices[starts[row] : starts[row + 1]]
        weights = matrix.data[starts[row] : starts[row + 1]]
        heaviest = np.lexsort((columns, n_rows_with[columns], -weights))[:n_heaviest]
        assert int(keys[row]) == sum(int(mixed(c)[0]) for c in columns[heaviest]) % 2**64
