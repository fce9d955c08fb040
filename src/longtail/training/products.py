"""Products of large matrices in training, by numpy."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from longtail.kernels.jit import over_row_chunks
from longtail.training.threads import n_training_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["one_blas_thread", "write_product"]


def write_product(left: Floats, right: Floats, out: Floats) -> None:
    """Write ``left @ right``, its rows shared out among the threads of training.

    Numpy's own threads are one set for all callers of a process, who wait for each other, and who
    wait busily for what is next: see `one_blas_thread`.

    Parameters
    ----------
    left, right : float32 (n, m), (m, k)
    out : float32 (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.products import write_product
    >>> out = np.empty((2, 1), np.float32)
    >>> write_product(np.eye(2, dtype=np.float32), np.ones((2, 1), np.float32), out)
    >>> out.tolist()
    [[1.0], [1.0]]
    """
    n_threads = n_training_threads()
    chunk = max(1, -(-len(left) // n_threads))

    def work(start: int, stop: int) -> None:
        np.matmul(left[start:stop], right, out=out[start:stop])

    over_row_chunks(work, len(left), n_threads=n_threads, chunk=chunk)


class _Limit:
    """How many users of `one_blas_thread` there are now, and what ends the limit after the last."""

    lock = Lock()
    n_users = 0
    ends: threadpool_limits | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy multiply on the thread that asks, whoever shares it out: see `write_product`.

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
