"""Ctrl-C, and SIGTERM, by which other programs ask a command to stop."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["STOPPED", "Terminated", "code_of", "interrupt_behind", "nothing_to_lose", "terminable"]

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


def interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interrupt in whose wake an error arose, as in the midst of compiling.

    Examples
    --------
    >>> from longtail.cli.interrupts import interrupt_behind
    >>> interrupt_behind(ValueError()) is None
    True
    """
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, KeyboardInterrupt):
        seen = seen.__cause__ or seen.__context__
    return seen


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM raise `Terminated`: else the process ends where it is, or not at all.

    The latter as the first process of a container, where signals that nobody handles are ignored.
    """

    def terminate(*_: object) -> NoReturn:
        raise Terminated

    with _handled(signal.SIGTERM, terminate, instead_of=signal.SIG_DFL):
        yield


@contextmanager
def nothing_to_lose() -> Iterator[None]:
    """Let Ctrl-C end the process at once, as long as it does nothing but import.

    What is interrupted in the midst of an import may swallow that, or turn it into another error.
    """

    def leave(*_: object) -> NoReturn:
        os.write(2, f"{STOPPED}\n".encode())  # to write to sys.stderr could wait for itself
        os._exit(INTERRUPTED)

    with _handled(signal.SIGINT, leave, instead_of=signal.default_int_handler):
        yield


@contextmanager
def _handled(
    number: signal.Signals, handler: Callable[..., NoReturn], instead_of: object
) -> Iterator[None]:
    """Handle a signal, unless the caller of `main` has other plans with it."""
    before = signal.getsignal(number)
    if before is not instead_of or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
