"""Ctrl-C, and the signals of programs that ask a command to stop and of terminals that close."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "STOPPED",
    "HungUp",
    "Terminated",
    "code_of",
    "hang_ups_held_back",
    "nothing_to_lose",
    "stoppable",
]

STOPPED = "Stopped."
_SIGNALS_AS_CODES = 128  # shells add the number of the signal
_SECONDS_UNTIL_AGAIN = 0.05


class Terminated(KeyboardInterrupt):
    """SIGTERM: what Ctrl-C would have cleaned up is cleaned up, too."""


class HungUp(KeyboardInterrupt):
    """SIGHUP: the terminal was closed."""


_STOPS = MappingProxyType(
    {
        KeyboardInterrupt: signal.SIGINT,
        Terminated: signal.SIGTERM,
        HungUp: getattr(signal, "SIGHUP", signal.SIGTERM),  # Windows has none
    }
)


def code_of(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that was stopped.

    Examples
    --------
    >>> from longtail.cli.interrupts import HungUp, Terminated, code_of
    >>> code_of(KeyboardInterrupt()), code_of(Terminated()), code_of(HungUp())
    (130, 143, 129)
    """
    return _SIGNALS_AS_CODES + _STOPS.get(type(stop), signal.SIGINT)


@contextmanager
def stoppable() -> Iterator[list[KeyboardInterrupt]]:
    """Let Ctrl-C, SIGTERM and SIGHUP raise an exception, and yield a list of those that came.

    Compilers and clean-ups lose it, and fail in some other way. What is raised within a
    ``__del__``, where Python drops it, is raised once more. Without a handler SIGTERM ends the
    process where it is; or not at all, as the first process of a container.
    """
    came: list[KeyboardInterrupt] = []

    def raising(kind: type[KeyboardInterrupt]) -> Callable[..., NoReturn]:
        def stop(*_: object) -> NoReturn:
            came.append(kind())
            raise came[-1]

        return stop

    with ExitStack() as stack:
        for kind, number in _STOPS.items():
            stack.enter_context(_handled(number, raising(kind)))
        stack.enter_context(_raised_again(came))
        yield came


@contextmanager
def _raised_again(came: Sequence[KeyboardInterrupt]) -> Iterator[None]:
    """Send the signal again where Python has dropped what it raised, instead of a traceback."""
    before = sys.unraisablehook
    timers: list[threading.Timer] = []

    def send_again(dropped: sys.UnraisableHookArgs) -> None:
        ours = next((stop for stop in came if stop is dropped.exc_value), None)
        if ours is None:
            before(dropped)
            return
        number = _STOPS[type(ours)]
        # Later: sent now, it would be raised within this hook, and dropped again.
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
        os.write(2, f"{STOPPED}\n".encode())  # sys.stderr may be locked by what was interrupted
        os._exit(code_of(KeyboardInterrupt()))

    with _handled(signal.SIGINT, leave):
        yield


@contextmanager
def hang_ups_held_back() -> Iterator[None]:
    """Hold SIGHUP back until whoever runs in here asks for it, as do processes started in here.

    What is ignored or handled in one process ends another that is just starting; what is held back
    stays so. Threads that libraries have started before hold nothing back: what they get is passed
    on to this one.
    """

    def pass_on(*_: object) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGHUP)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        with _handled(signal.SIGHUP, pass_on):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handled(number: signal.Signals, handler: Callable[..., None]) -> Iterator[None]:
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
