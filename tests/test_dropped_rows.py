"""Rows after dropout by kernels, held to their twin of tensor operations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longtail.training.dropped_rows import _DroppedByKernels, _DroppedByTensors, dropped_rows
from longtail.training.scratch import Scratch, empty_array
from longtail.training.unit_rows import UnitRows
from longtail.training.units import Units, random_bytes

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
    rows = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    rows[2] = 0
    expected = UnitRows.of(torch.from_numpy(rows.copy()))
    found = Units.in_place(rows)
    assert found.unit is rows
    np.testing.assert_allclose(found.unit, expected.unit, rtol=1e-5)
    np.testing.assert_allclose(found.lengths, expected.lengths[:, 0], rtol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.2, 1.0])
def test_random_bytes_say_which_units_are_left_out(dropout):
    drawn, n_dropped = random_bytes((300, 67), dropout, np.random.default_rng(0))
    assert drawn.shape == (300, 67 if dropout else 0)
    left_out = np.mean(drawn < n_dropped) if dropout else 0
    assert left_out == pytest.approx(dropout, abs=0.01)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_device_takes_tensor_operations():
    rows = torch.eye(3, device="cuda")
    assert isinstance(dropped_rows(rows, 0.0, torch.float32), _DroppedByTensors)


class TestMemory:
    @pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 33)])
    @pytest.mark.parametrize("dtype", [np.float32, np.uint16, np.uint8])
    def test_begins_with_a_line(self, shape, dtype):
        array = empty_array(shape, dtype)
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.ctypes.data % 64 == 0 or array.size == 0

    def test_scratch_is_used_again_and_grows(self):
        scratch = Scratch()
        first, other = scratch.array("a", (4, 2)), scratch.array("b", (4, 2))
        first[:], other[:] = 1, 2
        assert (first == 1).all()
        assert np.shares_memory(scratch.array("a", (3,), np.int64), first)
        larger = scratch.array("a", (40, 2))
        assert larger.shape == (40, 2)
        larger[:] = 3
        assert (other == 2).all()
        assert scratch.array("b", (2,), np.int32).shape == (2,)
