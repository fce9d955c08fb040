"""The decoupled softmax's kernel, held to its twin of plain tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.exponential import fast_exp
from longtail.training.optimisers import numbers_of
from longtail.training.threads import training_threads
from longtail.training.unit_labels import write_slopes
from longtail.training.unit_labels_on_device import decoupled_softmax

few = settings(max_examples=25, deadline=None)


@few
@given(st.floats(-86, 86, width=32))
def test_fast_exp(x):
    assert fast_exp(np.float32(x)) == pytest.approx(math.exp(x), rel=1e-5)


@pytest.mark.parametrize(("x", "end"), [(-1e6, 2.0**-126), (1e6, 2.0**126)])
def test_fast_exp_stays_finite(x, end):
    assert fast_exp(np.float32(x)) == pytest.approx(end, rel=1e-5)


@few
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 20),
    st.integers(1, 70),
    st.sampled_from([1.0, 20.0]),
    st.sampled_from([torch.float32, torch.bfloat16]),
    st.integers(1, 3),
)
def test_slopes_in_place(seed, n, n_pool, scale, dtype, n_threads):
    random = np.random.default_rng(seed)
    truth = np.nonzero(random.random((n, n_pool)) < 0.1)
    products = torch.from_numpy(random.uniform(-1, 1, (n, n_pool)).astype(np.float32)).to(dtype)
    bias = random.uniform(-3, 3, n_pool).astype(np.float32)
    logits = products.float() * scale + torch.from_numpy(bias)

    places = (torch.from_numpy(part) for part in truth)
    expected_loss, expected = decoupled_softmax(logits, *places, scale)
    slopes = products.clone()
    with training_threads(n_threads):
        loss, to_bias = write_slopes(numbers_of(slopes), bias, scale, *truth)

    rounding = 1e-5 if dtype == torch.float32 else 1 / 128
    torch.testing.assert_close(slopes.float(), expected, rtol=rounding, atol=1e-6)
    np.testing.assert_allclose(to_bias, expected.sum(dim=0), rtol=1e-4, atol=1e-5)
    assert loss == pytest.approx(expected_loss, rel=1e-4, abs=1e-5)
