"""Ctrl-C, and SIGTERM, by which other programs ask a command to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["STOPPED", "Terminated", "code_of", "nothing_to_lose", "stoppable"]

STOPPED = "Stopped."
INTERRUPTED, TERMINATED = 130, 143  # 128 and the number of the signal, as shells have it
_SECONDS_UNTIL_AGAIN = 0.05


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

    Compilers and clean-ups lose it, and fail in some other way. What is raised within a
    ``__del__``, where Python drops it, is raised once more. Without a handler SIGTERM ends the
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

    with (
        _handled(signal.SIGINT, interrupt),
        _handled(signal.SIGTERM, terminate),
        _raised_again(came),
    ):
        yield came


@contextmanager
def _raised_again(came: Sequence[KeyboardInterrupt]) -> Iterator[None]:
    """Send the signal again where Python has dropped what it raised, instead of a traceback."""
    before = sys.unraisablehook
    timers: list[threading.Timer] = []

    def send_again(dropped: sys.UnraisableHookArgs) -> None:
        if not any(dropped.exc_value is stop for stop in came):
            before(dropped)
            return
        is_term = isinstance(dropped.exc_value, Terminated)
        number = signal.SIGTERM if is_term else signal.SIGINT
        # Later: now it would be raised in here, and dropped as well.
        timers.append(threading.Timer(_SECONDS_UNTIL_AGAIN, os.kill, (os.getpid(), number)))
        timers[-1].daemon = True
        timers[-1].start()

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:
            timer.cancel()


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
