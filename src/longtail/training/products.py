"""Products of matrices in training: of float32s, or of bfloat16s where torch pays for itself."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from llvmlite import binding  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

from longtail.kernels.jit import over_row_chunks
from longtail.training.threads import n_training_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["Bfloat16Products", "Float32Products", "Products", "one_blas_thread", "products_for"]

# Multiplications: fewer take two cores less than ten seconds, and to load torch takes one or two.
WORTH_TORCH = 1e12


class Products(Protocol):
    """How matrices are multiplied."""

    @property
    def dtype(self) -> type[np.float32 | np.uint16]:
        """Of the matrices: the uint16 are the bits of bfloat16s."""
        ...

    def write(self, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> None:
        """Write ``left @ right``, (n, m) by (m, k), all of `dtype`."""
        ...


class Float32Products:
    """By numpy, rows of the result shared out among the threads of training.

    Its own threads would be one set for all callers of a process, who would wait for each other.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.products import Float32Products
    >>> out = np.empty((2, 1), np.float32)
    >>> Float32Products().write(np.eye(2, dtype=np.float32), np.ones((2, 1), np.float32), out)
    >>> out.tolist()
    [[1.0], [1.0]]
    """

    dtype = np.float32

    def write(self, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> None:
        """See `Products.write`."""
        n_threads = n_training_threads()

        def work(start: int, stop: int) -> None:
            np.matmul(left[start:stop], right, out=out[start:stop])

        chunk = max(1, -(-len(left) // n_threads))
        over_row_chunks(work, len(left), n_threads=n_threads, chunk=chunk)


class Bfloat16Products:
    """By torch, which has what processors have for numbers of 16 bits."""

    dtype = np.uint16

    def __init__(self) -> None:
        import torch  # noqa: PLC0415 - a second of time and 200 MB, for those who gain by it

        self._torch = torch

    def write(self, left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> None:
        """See `Products.write`."""
        factors, product = [self._tensor(left), self._tensor(right)], self._tensor(out)
        self._torch.mm(*factors, out=product)

    def _tensor(self, bits: NDArray[np.uint16]) -> Tensor:
        """Return bits of bfloat16s as torch sees them, without a copy."""
        return self._torch.from_numpy(bits).view(self._torch.bfloat16)


def products_for(n_multiplications: float) -> Products:
    """Return what is fastest for a training of so many multiplications.

    Examples
    --------
    >>> from longtail.training.products import products_for
    >>> products_for(1e6).dtype.__name__
    'float32'
    """
    if n_multiplications < WORTH_TORCH or not has_bfloat16() or find_spec("torch") is None:
        return Float32Products()
    return Bfloat16Products()


def has_bfloat16() -> bool:
    """Return whether this processor multiplies bfloat16s."""
    features = binding.get_host_cpu_features()
    return bool(features.get("avx512bf16") or features.get("amx-bf16"))


class _Limit:
    """How many want numpy to compute on one thread, and what ends that."""

    lock = Lock()
    n_users = 0
    ends: threadpool_limits | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy multiply on the thread that asks, whoever shares it out: see `Float32Products`.

    Of the whole process, from the first who wants it to the last.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> from longtail.training.products import one_blas_thread
    >>> with one_blas_thread():
    ...     {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    {1}
    """
    with _Limit.lock:
        if not _Limit.n_users:
            _Limit.ends = threadpool_limits(1, user_api="blas")
        _Limit.n_users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.n_users -= 1
            if not _Limit.n_users and _Limit.ends is not None:
                _Limit.ends.restore_original_limits()
