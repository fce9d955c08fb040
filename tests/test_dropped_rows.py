"""Rows after dropout by kernels, held to their twin of tensor operations."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longtail.training.dropped_rows import (
    _DroppedByKernels,
    _DroppedByTensors,
    dropped_rows,
    unit_rows_in_place,
)
from longtail.training.scratch import Scratch, empty_tensor
from longtail.training.unit_rows import UnitRows

few = settings(max_examples=25, deadline=None)


@few
@example(1, 31, 1, 0.0, torch.float32)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.integers(1, 37),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_kernels_do_what_tensor_operations_do(seed, n_rows, dimension, dropout, dtype):
    random = torch.Generator().manual_seed(seed)
    start = torch.randn(n_rows, dimension, generator=random)
    start[0] = 0  # a bag without a known token
    gradient = torch.randn(n_rows, dimension, generator=random).to(dtype)
    found = []
    for kind in (_DroppedByKernels, _DroppedByTensors):
        torch.manual_seed(seed)
        rows = kind(start.clone(), dropout, dtype)
        unit = rows.unit.float().clone()
        found.append((unit, rows.backward(gradient, 20.0)))
    rounding = 1e-5 if dtype == torch.float32 else 1 / 128
    torch.testing.assert_close(found[0][0], found[1][0], rtol=rounding, atol=1e-5)
    slope, expected = found[0][1], found[1][1]
    torch.testing.assert_close(slope[0], expected[0], rtol=rounding, atol=1e-3)  # over 1e-6
    # Where one number of a row is left, its slope is 0 but for the rounding of what is taken from
    # what, and that is the larger the shorter the row.
    of_rounding = 20 * gradient.float().norm(dim=1, keepdim=True) / rows._rows.lengths * rows._kept
    allowed = 1e-2 * expected.abs() + 1e-5 * of_rounding
    assert ((slope - expected).abs() <= allowed)[1:].all()


def test_in_main_memory_the_gradient_takes_the_place_of_the_rows():
    rows = torch.randn(3, 8)
    dropped = dropped_rows(rows, 0.3, torch.bfloat16)
    assert dropped.backward(dropped.unit, 1.0).data_ptr() == rows.data_ptr()


def test_unit_rows_in_place():
    rows = torch.randn(5, 7)
    rows[2] = 0
    expected = UnitRows.of(rows.clone())
    found = unit_rows_in_place(rows)
    assert found.unit.data_ptr() == rows.data_ptr()
    torch.testing.assert_close(found.unit, expected.unit)
    torch.testing.assert_close(found.lengths, expected.lengths)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_device_takes_tensor_operations():
    rows = torch.eye(3, device="cuda")
    assert isinstance(dropped_rows(rows, 0.0, torch.float32), _DroppedByTensors)
    assert unit_rows_in_place(rows).unit.data_ptr() != rows.data_ptr()


class TestMemory:
    @pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 33)])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
    def test_begins_with_a_line(self, shape, dtype):
        tensor = empty_tensor(shape, dtype)
        assert tensor.shape == shape
        assert tensor.dtype == dtype
        assert tensor.is_contiguous()
        assert tensor.data_ptr() % 64 == 0 or tensor.numel() == 0

    def test_scratch_is_used_again_and_grows(self):
        scratch = Scratch()
        first = scratch.tensor("a", (4, 2)).fill_(1)
        other = scratch.tensor("b", (4, 2)).fill_(2)
        assert (first == 1).all()
        assert scratch.tensor("a", (3,), torch.int64).data_ptr() == first.data_ptr()
        larger = scratch.tensor("a", (40, 2))
        assert larger.shape == (40, 2)
        larger.fill_(3)
        assert (other == 2).all()
        assert scratch.array("b", 2, torch.int32).shape == (2,)
