"""How many threads torch computes on, and what is learnt beside something else."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import torch

from longtail.kernels.jit import in_background

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["meanwhile", "one_torch_thread"]

R = TypeVar("R")


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch compute on one thread in this thread and in those that begin in the meantime."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def meanwhile(work: Callable[[], R], n_threads: int) -> Iterator[Future[R]]:
    """Do `work` beside what happens inside, with one thread of torch's for each.

    Not more: a sum may depend on how many threads form it, and so what is trained inside would
    depend on when the work happens to be done.

    Parameters
    ----------
    work : callable
    n_threads : int
        With one, the work is done before what is inside.

    Examples
    --------
    >>> from longtail.training.threads import meanwhile
    >>> with meanwhile(lambda: 2 + 3, n_threads=2) as later:
    ...     here = 1 + 1
    >>> here + later.result()
    7
    """
    with one_torch_thread():
        if n_threads == 1:
            yield in_background(work, n_threads)
        else:
            with ThreadPoolExecutor(1, thread_name_prefix="longtail-aside") as aside:
                yield aside.submit(work)
