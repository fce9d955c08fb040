"""Ctrl-C, and SIGTERM, by which other programs ask a command to stop."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["STOPPED", "Terminated", "code_of", "nothing_to_lose", "stoppable"]

STOPPED = "Stopped."
INTERRUPTED, TERMINATED = 130, 143  # 128 and the number of the signal, as shells have it


class Terminated(KeyboardInterrupt):
    """SIGTERM: what Ctrl-C would have cleaned up is cleaned up, too."""


def code_of(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that was stopped.

    Examples
    --------
    >>> from longtail.cli.interrupts import Terminated, code_of
    >>> code_of(KeyboardInterrupt()), code_of(Terminated())
    (130, 143)
    """
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


@contextmanager
def stoppable() -> Iterator[list[KeyboardInterrupt]]:
    """Let Ctrl-C and SIGTERM raise an exception, and keep it.

    Compilers and clean-ups lose it, and fail in some other way. Without a handler SIGTERM ends the
    process where it is; or not at all, as the first process of a container.

    Yields
    ------
    list of KeyboardInterrupt
        Those that came.
    """
    came: list[KeyboardInterrupt] = []

    def interrupt(*_: object) -> NoReturn:
        came.append(KeyboardInterrupt())
        raise came[-1]

    def terminate(*_: object) -> NoReturn:
        came.append(Terminated())
        raise came[-1]

    with _handled(signal.SIGINT, interrupt), _handled(signal.SIGTERM, terminate):
        yield came


@contextmanager
def nothing_to_lose() -> Iterator[None]:
    """Let Ctrl-C end the process at once, as long as it does nothing but import.

    What is interrupted in the midst of an import may swallow that, or turn it into another error.
    """

    def leave(*_: object) -> NoReturn:
        os.write(2, f"{STOPPED}\n".encode())  # to write to sys.stderr could wait for itself
        os._exit(INTERRUPTED)

    with _handled(signal.SIGINT, leave):
        yield


@contextmanager
def _handled(number: signal.Signals, handler: Callable[..., NoReturn]) -> Iterator[None]:
    """Handle a signal, unless the caller of `main` has other plans with it."""
    before = signal.getsignal(number)
    is_usual = before in {signal.SIG_DFL, signal.default_int_handler}
    is_own = getattr(before, "__module__", None) == __name__
    if not (is_usual or is_own) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
