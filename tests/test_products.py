"""Products of training by numpy, and who may compute on how many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from longtail.training.products import one_blas_thread, write_product
from longtail.training.threads import training_threads


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("shape", [(0, 3, 2), (1, 5, 4), (130, 17, 9)])
def test_products_are_those_of_float64(n_threads, shape):
    n, m, k = shape
    random = np.random.default_rng(0)
    left = random.standard_normal((n, m)).astype(np.float32)
    right = random.standard_normal((k, m)).astype(np.float32).T
    out = np.empty((n, k), np.float32)
    with training_threads(n_threads), one_blas_thread():
        write_product(left, right, out)
    expected = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_numpy_has_its_threads_again_when_the_last_has_ended():
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            with ThreadPoolExecutor(1) as other, one_blas_thread():
                assert other.submit(blas_threads).result() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}
