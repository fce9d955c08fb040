"""Rows of a pool by kernels, held to their twin of tensor operations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.row_adagrad import RowAdagrad
from longtail.training.unit_rows import PoolRows, UnitRows
from longtail.training.units import PoolUnits, Units

few = settings(max_examples=25, deadline=None)


@few
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.integers(4, 37),  # in one dimension all gradients are zero but for rounding
    st.booleans(),
)
def test_kernels_do_what_tensor_operations_do(seed, n_rows, dimension, with_texts):
    random = torch.Generator().manual_seed(seed)
    start = torch.randn(50, dimension, generator=random)
    start[7] = 0  # a label of which nothing is known
    rows = torch.randperm(50, generator=random)[:n_rows].sort().values
    texts = UnitRows.of(torch.randn(n_rows, dimension, generator=random)) if with_texts else None
    if with_texts:
        rows[torch.rand(n_rows, generator=random) < 0.3] = -1  # these texts stand alone
    gradients = [torch.randn(n_rows, dimension, generator=random) for _ in range(2)]

    table, here = start.numpy().copy(), RowAdagrad(50)
    for gradient in gradients:
        units = None
        if texts is not None:
            units = Units(texts.unit.numpy().copy(), texts.lengths[:, 0].numpy())
        pool = PoolUnits(table, rows.numpy(), units)
        pool.step(here, gradient.numpy(), 20.0, 0.1)

    expected, anywhere = start.clone(), RowwiseAdagrad(start)
    for gradient in gradients:
        twin = PoolRows(expected, rows, texts, torch.float32)
        to_texts = twin.step(anywhere, gradient, 20.0, 0.1)

    np.testing.assert_allclose(pool.unit, twin.unit, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.from_numpy(table), expected, rtol=1e-3, atol=1e-4)
    known = np.arange(50) != 7  # the slope of a row of zeros is as large as it is arbitrary
    sums = anywhere.state()["sums"].numpy()
    np.testing.assert_allclose(here.sums[known], sums[known], rtol=1e-3, atol=1e-3)
    if texts is not None:
        found, largest = torch.from_numpy(units.unit), to_texts.abs().max().item()
        torch.testing.assert_close(found, to_texts, rtol=1e-2, atol=1e-4 * largest)


def test_texts_that_stand_alone_leave_the_table_as_it_is():
    table, texts = np.eye(3, dtype=np.float32), Units.in_place(np.float32([[3, 4, 0]]))
    unit, optimiser = texts.unit.copy(), RowAdagrad(3)
    pool = PoolUnits(table, np.array([-1]), texts)
    np.testing.assert_allclose(pool.unit, unit)
    pool.step(optimiser, np.float32([[0.8, -0.6, 0]]), 10.0, 0.1)
    np.testing.assert_allclose(texts.unit, np.float32([[8, -6, 0]]) / 5, rtol=1e-5)
    np.testing.assert_array_equal(table, np.eye(3))
    assert not optimiser.sums.any()


@pytest.mark.parametrize("n_rows", [1, 600])  # more than one chunk of rows
def test_sums_of_zeros_stay_so(n_rows):
    table = np.ones((n_rows, 3), np.float32)
    texts = Units(-table, np.ones(n_rows, np.float32))
    assert not PoolUnits(table, np.arange(n_rows), texts).unit.any()
