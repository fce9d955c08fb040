"""Random rows: the compiled loop and its numpy twin write the same bits, of the right spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.random_rows import uniform_rows


def twin(seed: int, largest: float, n_rows: int, dimension: int) -> np.ndarray:
    """Return what SplitMix64 draws, whole arrays at a time."""
    places = np.arange(n_rows * dimension, dtype=np.uint64)
    bits = np.uint64(seed) + places * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    share = (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return ((2 * share - 1) * np.float32(largest)).reshape(n_rows, dimension)


def drawn(seed: int, largest: float, n_rows: int, dimension: int, cut: int = 0) -> np.ndarray:
    """Return rows written in two parts."""
    rows = np.empty((n_rows, dimension), np.float32)
    for start, stop in ((cut, n_rows), (0, cut)):
        uniform_rows(np.uint64(seed), np.float32(largest), start, stop, rows)
    return rows


@settings(deadline=None)  # of the first, code is compiled
@given(
    seed=st.integers(0, 2**32 - 1),
    largest=st.floats(0.125, 8, width=32),
    n_rows=st.integers(0, 20),
    dimension=st.integers(1, 20),
    share=st.floats(0, 1),
)
def test_rows_are_those_of_the_twin_in_whatever_parts_they_are_written(
    seed, largest, n_rows, dimension, share
):
    rows = drawn(seed, largest, n_rows, dimension, cut=int(share * n_rows))
    np.testing.assert_array_equal(rows, twin(seed, largest, n_rows, dimension))
    assert np.abs(rows).max(initial=0) <= np.float32(largest)


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_numbers_are_spread_evenly_and_rows_point_in_all_directions(seed):
    rows = drawn(seed, 3**0.5, 2000, 64)
    counts, _ = np.histogram(rows, bins=16)
    assert abs(counts / rows.size * 16 - 1).max() < 0.05
    assert abs(rows.mean()) < 0.01
    assert abs(rows.std() - 1) < 0.01
    cosines = rows[:1000] @ rows[1000:].T / 64
    assert abs(cosines.std() - 64**-0.5) < 0.01  # as of directions drawn at random


def test_another_seed_draws_other_numbers():
    assert not np.isin(drawn(0, 1.0, 10, 10), drawn(1, 1.0, 10, 10)).any()
