"""Rows of a pool by kernels, held to their twin of tensor operations."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.unit_rows import UnitRows, _RowsOfKernels, _RowsOfTensors, pool_rows

few = settings(max_examples=25, deadline=None)


@few
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.integers(4, 37),  # in one dimension all gradients are zero but for rounding
    st.booleans(),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_kernels_do_what_tensor_operations_do(seed, n_rows, dimension, with_texts, dtype):
    random = torch.Generator().manual_seed(seed)
    start = torch.randn(50, dimension, generator=random)
    start[7] = 0  # a label of which nothing is known
    rows = torch.randperm(50, generator=random)[:n_rows].sort().values
    texts = UnitRows.of(torch.randn(n_rows, dimension, generator=random)) if with_texts else None
    if with_texts:
        rows[torch.rand(n_rows, generator=random) < 0.3] = -1  # these texts stand alone
    gradients = [torch.randn(n_rows, dimension, generator=random).to(dtype) for _ in range(2)]
    found = []
    for kind in (_RowsOfKernels, _RowsOfTensors):
        table = start.clone()
        optimiser = RowwiseAdagrad(table)
        for gradient in gradients:
            own = texts and UnitRows(texts.unit.clone(), texts.lengths)  # may be written over
            pool = kind(table, rows, own, dtype)
            to_texts = pool.step(optimiser, gradient, 20.0, 0.1)
        found.append((pool.unit.float(), table, optimiser.state()["sums"], to_texts))
    (unit, table, sums, to_texts), (expected_unit, *expected) = found
    rounding = 1e-5 if dtype == torch.float32 else 1 / 128
    torch.testing.assert_close(unit, expected_unit, rtol=rounding, atol=1e-5)
    torch.testing.assert_close(table, expected[0], rtol=1e-3, atol=1e-4)
    known = torch.arange(50) != 7  # the slope of a row of zeros is as large as it is arbitrary
    torch.testing.assert_close(sums[known], expected[1][known], rtol=1e-3, atol=1e-3)
    assert (to_texts is None) == (not with_texts)
    if to_texts is not None:
        largest = expected[2].abs().max().item()
        torch.testing.assert_close(to_texts, expected[2], rtol=1e-2, atol=1e-4 * largest)


@pytest.mark.parametrize("kind", [_RowsOfKernels, _RowsOfTensors])
def test_texts_that_stand_alone_leave_the_table_as_it_is(kind):
    table, texts = torch.eye(3), UnitRows.of(torch.tensor([[3.0, 4.0, 0.0]]))
    optimiser = RowwiseAdagrad(table)
    pool = kind(table, torch.tensor([-1]), UnitRows(texts.unit.clone(), texts.lengths), table.dtype)
    torch.testing.assert_close(pool.unit, texts.unit)
    to_texts = pool.step(optimiser, torch.tensor([[0.8, -0.6, 0.0]]), 10.0, 0.1)
    torch.testing.assert_close(to_texts, torch.tensor([[8.0, -6.0, 0.0]]) / 5)
    assert torch.equal(table, torch.eye(3))
    assert not optimiser.state()["sums"].any()


def test_sums_of_zeros_stay_so():
    table = torch.ones(1, 3)
    texts = UnitRows(-table, torch.ones(1, 1))
    rows = pool_rows(table, torch.zeros(1, dtype=torch.int64), texts, torch.float32)
    assert not rows.unit.any()


def test_several_processes_take_tensor_operations(monkeypatch):
    monkeypatch.setattr(
        "longtail.training.unit_rows.processes", lambda: type("Two", (), {"count": 2})
    )
    table = torch.eye(3)
    assert isinstance(pool_rows(table, torch.arange(2), None, torch.float32), _RowsOfTensors)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_device_takes_tensor_operations():
    table = torch.eye(3, device="cuda")
    rows = torch.arange(2, device="cuda")
    assert isinstance(pool_rows(table, rows, None, torch.float32), _RowsOfTensors)
