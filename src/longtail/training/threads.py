"""What trainings share with all of their process: threads, and torch's random numbers."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from longtail.data.input_notes import warn
from longtail.kernels.jit import (
    Begun,
    HelpingThreads,
    in_background,
    is_fork_of_torch,
    over_row_chunks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = [
    "in_threads",
    "meanwhile",
    "n_training_threads",
    "one_ahead",
    "torch_threads",
    "training_threads",
    "turn_to_train",
]

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


class _Threads:
    """On how many threads this process's training works."""

    count = 1


@contextmanager
def turn_to_train(n_threads: int) -> Iterator[None]:
    """Have this process's random numbers and threads for one training, then leave them as before.

    Torch, where it is loaded, has one state of random numbers and one number of threads for the
    whole process, and layers of its own and of others draw from that. So trainings in several
    threads take turns: each draws what it would have drawn alone.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.threads import turn_to_train
    >>> before = torch.get_num_threads(), torch.random.get_rng_state()
    >>> with turn_to_train(n_threads=1):
    ...     _ = torch.manual_seed(3)
    >>> torch.get_num_threads() == before[0]
    True
    >>> torch.equal(torch.random.get_rng_state(), before[1])
    True
    """
    if n_threads > 1 and is_fork_of_torch():
        warn(
            "This process was forked from one that had loaded torch, and torch's threads do not "
            f"outlive a fork: its products are computed on one thread, all else on {n_threads}. "
            "Start processes by 'spawn' or 'forkserver' to use them all, or pass n_threads=1.",
            RuntimeWarning,
        )
    with _turn.lock, _torch_random_numbers(), training_threads(n_threads):
        yield


def _torch_random_numbers() -> AbstractContextManager[None]:
    """Leave torch's random numbers as they were, if it is loaded, on all devices in use."""
    if "torch" not in sys.modules:
        return nullcontext()
    import torch  # noqa: PLC0415 - loaded already

    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # torch has no type for it
    devices = range(torch.cuda.device_count()) if in_use else ()
    return torch.random.fork_rng(devices)


@contextmanager
def training_threads(n_threads: int) -> Iterator[None]:
    """Let loops and products of training run on so many threads, for as long as this lasts.

    Torch's too, if it is loaded, in this thread and in those that begin in the meantime; but on one
    only in a process that was forked from one with torch: more would wait for ever.

    Examples
    --------
    >>> from longtail.training.threads import n_training_threads, training_threads
    >>> with training_threads(3):
    ...     n_training_threads()
    3
    """
    before, _Threads.count = _Threads.count, n_threads
    try:
        with torch_threads(n_threads) if "torch" in sys.modules else nullcontext():
            yield
    finally:
        _Threads.count = before


def n_training_threads() -> int:
    """Return on how many threads training works now: see `training_threads`.

    Examples
    --------
    >>> from longtail.training.threads import n_training_threads, training_threads
    >>> with training_threads(1):
    ...     n_training_threads()
    1
    """
    return _Threads.count


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch compute on so many threads, as `training_threads` does.

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
    import torch  # noqa: PLC0415 - whoever calls this has loaded it

    before = torch.get_num_threads()
    torch.set_num_threads(1 if is_fork_of_torch() else n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_threads(work: Callable[[int, int], None], n_rows: int) -> None:
    """Call ``work(start, stop)`` on chunks of rows, on as many threads as training works on.

    The first rows may be of frequent tokens, each of which takes longer, so that there are more
    chunks than threads; few rows are not worth a thread.

    Examples
    --------
    >>> from longtail.training.threads import in_threads
    >>> chunks = []
    >>> in_threads(lambda start, stop: chunks.append((start, stop)), 600)
    >>> sorted(chunks)
    [(0, 256), (256, 512), (512, 600)]
    """
    n_threads = n_training_threads()
    chunk = max(256, -(-n_rows // (8 * n_threads)))
    over_row_chunks(work, n_rows, n_threads=n_threads, chunk=chunk)


@contextmanager
def meanwhile(work: Callable[[], R], n_threads: int) -> Iterator[Begun[R]]:
    """Do `work` beside what happens inside, with one thread for each.

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
    with training_threads(1):
        if n_threads == 1:
            yield in_background(work, n_threads)
        else:
            with HelpingThreads(1, thread_name_prefix="longtail-aside") as aside:
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
