"""Products of training, by numpy and by torch, and who may compute on how many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from longtail.training import products
from longtail.training.products import (
    Bfloat16Products,
    Float32Products,
    one_blas_thread,
    products_for,
)
from longtail.training.threads import training_threads


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("shape", [(0, 3, 2), (1, 5, 4), (130, 17, 9)])
def test_products_of_views_are_those_of_float64(n_threads, shape):
    n, m, k = shape
    random = np.random.default_rng(0)
    left = random.standard_normal((m, n)).astype(np.float32).T  # as of slopes by labels
    right = random.standard_normal((k, m)).astype(np.float32).T
    out = np.empty((n, k), np.float32)
    with training_threads(n_threads), one_blas_thread():
        Float32Products().write(left, right, out)
    expected = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_products_of_bfloat16s_are_those_of_torch():
    left, right = (torch.randn(shape).to(torch.bfloat16) for shape in ((9, 5), (5, 4)))
    arrays = [part.view(torch.uint16).numpy() for part in (left, right)]
    out = np.empty((9, 4), np.uint16)
    Bfloat16Products().write(*arrays, out)
    found = torch.from_numpy(out).view(torch.bfloat16).float()
    torch.testing.assert_close(found, left.float() @ right.float(), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("multiplies", [True, False])
@pytest.mark.parametrize("has_torch", [True, False])
def test_large_trainings_take_bfloat16s_where_they_can(monkeypatch, multiplies, has_torch):
    monkeypatch.setattr(products, "has_bfloat16", lambda: multiplies)
    monkeypatch.setattr(products, "find_spec", lambda _: has_torch or None)
    kind = Bfloat16Products if multiplies and has_torch else Float32Products
    assert isinstance(products_for(1e13), kind)
    assert isinstance(products_for(1e9), Float32Products)


def test_numpy_has_its_threads_again_when_the_last_has_ended():
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            with ThreadPoolExecutor(1) as other, one_blas_thread():
                assert other.submit(blas_threads).result() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}
