"""What answers beside the loop: threads, places for work that takes long, and giving it up."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from longtail.serve.body import ClientLeft, client_left
from longtail.serve.messages import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from longtail.serve.body import Receive
    from longtail.serve.limits import Limits

__all__ = ["LATER", "AnsweringThreads", "stopping"]

T = TypeVar("T")

N_THREADS = 2  # of each kind
LATER = ((b"retry-after", b"1"),)


class _Pools(NamedTuple):
    """Those for short texts, and those for all that takes long: neither waits for the other."""

    short: ThreadPoolExecutor
    long: ThreadPoolExecutor


class AnsweringThreads:
    """Threads that answer while the loop goes on."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads: _Pools | None = None
        self._places = threading.BoundedSemaphore(limits.waiting)

    def start(self) -> None:
        """Make the threads, if there are none."""
        if self._threads is None:
            pools = (ThreadPoolExecutor(N_THREADS, f"longtail-{kind}") for kind in _Pools._fields)
            self._threads = _Pools(*pools)

    def stop(self) -> None:
        """Take no more work; what is being answered is left alone."""
        threads, self._threads = self._threads, None
        for pool in threads or ():
            pool.shutdown(wait=False, cancel_futures=True)

    async def shortly(self, work: Callable[[], T], receive: Receive) -> T:
        """Run what a short text asks for, beside the loop."""
        return await self._awaited(self._running().short.submit(work), receive)

    async def at_length(
        self, work: Callable[[], T], receive: Receive, given_up: threading.Event | None = None
    ) -> T:
        """Run what takes long beside the loop, if there is a place."""
        pool = self._running().long
        if not self._places.acquire(blocking=False):
            raise Refusal(503, "The server is busy with other requests. Try again later.", LATER)
        job = pool.submit(work)
        # The place is free again when the work ends, which may be after nobody waits for it.
        job.add_done_callback(lambda _: self._places.release())
        return await self._awaited(job, receive, given_up)

    def _running(self) -> _Pools:
        """Return the threads, or refuse."""
        if self._threads is None:
            raise stopping()
        return self._threads

    async def _awaited(
        self, job: Future[T], receive: Receive, given_up: threading.Event | None = None
    ) -> T:
        """Return what a thread finds, if it does in time.

        Once nobody waits for it, which is also when the server has to stop, it is given up.
        """
        answer, left = asyncio.wrap_future(job), asyncio.ensure_future(client_left(receive))
        try:
            await asyncio.wait(
                (answer, left), timeout=self._limits.seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if answer.done():
                return answer.result()
            if left.done():
                raise ClientLeft from left.exception()
            raise Refusal(
                503,
                f"The answer took longer than {self._limits.seconds:g} seconds. Send fewer or "
                "shorter texts, or try again later.",
                LATER,
            )
        finally:
            left.cancel()
            answer.cancel()
            if given_up is not None:
                given_up.set()


def stopping() -> Refusal:
    """Return the refusal of what comes, or is not answered, before the server stops."""
    return Refusal(503, "The server is stopping. Try again later.", LATER)
