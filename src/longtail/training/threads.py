"""What trainings share with all of their process: torch's threads and its random numbers."""

from __future__ import annotations

import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import torch

from longtail.kernels.jit import Begun, in_background, is_fork_of_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["meanwhile", "one_ahead", "one_torch_thread", "torch_for_training", "torch_threads"]

R = TypeVar("R")
T = TypeVar("T")


class _End:
    """What comes after the last item."""


_END = _End()


class _Turn:
    """Who of this process's threads trains now; a training within a training goes on at once."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Let nobody train: whoever did so is not in a forked process."""
        self.lock = threading.RLock()


_turn = _Turn()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_turn.begin)


@contextmanager
def torch_for_training(n_threads: int) -> Iterator[None]:
    """Have torch's random numbers and threads for one training, and then leave them as they were.

    Torch has one state of random numbers and one number of threads for the whole process, and
    layers of its own and of others draw from that. So trainings in several threads take turns: each
    draws what it would have drawn alone.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.threads import torch_for_training
    >>> before = torch.get_num_threads(), torch.random.get_rng_state()
    >>> with torch_for_training(n_threads=1):
    ...     _ = torch.manual_seed(3)
    >>> torch.get_num_threads() == before[0]
    True
    >>> torch.equal(torch.random.get_rng_state(), before[1])
    True
    """
    if n_threads > 1 and is_fork_of_torch():
        warnings.warn(
            "This process was forked from one that had loaded torch, and torch's threads do not "
            f"outlive a fork: its products are computed on one thread, all else on {n_threads}. "
            "Start processes by 'spawn' or 'forkserver' to use them all, or pass n_threads=1.",
            RuntimeWarning,
            stacklevel=4,  # who asks for the training
        )
    # Seeds are of all devices that are in use.
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # torch has no type for it
    devices = range(torch.cuda.device_count()) if in_use else ()
    with _turn.lock, torch.random.fork_rng(devices), torch_threads(n_threads):
        yield


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch compute on so many threads, in this thread and in those that begin in the meantime.

    On one only in a process that was forked from one with torch: more would wait for ever.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.threads import torch_threads
    >>> before = torch.get_num_threads()
    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1 if is_fork_of_torch() else n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_torch_thread() -> AbstractContextManager[None]:
    """See `torch_threads`.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.threads import one_torch_thread
    >>> with one_torch_thread():
    ...     torch.get_num_threads()
    1
    """
    return torch_threads(1)


@contextmanager
def meanwhile(work: Callable[[], R], n_threads: int) -> Iterator[Begun[R]]:
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
                yield Begun(work, aside.submit(work))


def one_ahead(items: Iterator[T], n_threads: int) -> Iterator[T]:
    """Yield items, each of which is made while the one before it is used.

    Parameters
    ----------
    items : iterator
        Nothing that it reads may be changed by who uses the items. The first is made at once.
    n_threads : int
        With one, nothing happens at the same time.

    Examples
    --------
    >>> from longtail.training.threads import one_ahead
    >>> list(one_ahead(iter("abc"), n_threads=2))
    ['a', 'b', 'c']
    """
    if n_threads == 1:
        yield from items
        return
    coming: T | _End = next(items, _END)
    while not isinstance(coming, _End):
        item, later = coming, in_background(lambda: next(items, _END), n_threads)
        yield item
        coming = later.result()
