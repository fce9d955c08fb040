"""Signals that wait until compiled code is in its place."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["signals_held_back"]


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Let the handlers of signals that come meanwhile run afterwards, one after the other.

    While LLVM takes code from disk, it asks a function of Python for it. What a handler raises in
    there, as Ctrl-C does, ctypes drops, and LLVM goes on without the code: numba would write where
    it is not, and the process end by a segmentation fault. To hold back the signals themselves
    would not be enough, since another thread may get them, and this one runs the handler all the
    same. Handlers run in the main thread alone, so that others have nothing to fear.

    Examples
    --------
    >>> import signal
    >>> from longtail.kernels.held_signals import signals_held_back
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> try:
    ...     with signals_held_back():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("done")
    ... except KeyboardInterrupt:
    ...     print("stopped")
    done
    stopped
    >>> _ = signal.signal(signal.SIGINT, before)
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    found = ((number, signal.getsignal(number)) for number in range(1, signal.NSIG))
    handlers: dict[int, Any] = {number: own for number, own in found if callable(own)}
    came: list[tuple[int, Any]] = []
    is_over = False

    def later(number: int, frame: Any) -> None:
        if is_over:  # another handler has ended us before this one was set back
            handlers[number](number, frame)
        else:
            came.append((number, frame))

    try:
        for number in handlers:
            signal.signal(number, later)
        yield
    finally:
        is_over = True
        for number, own in handlers.items():
            signal.signal(number, own)
        for number, frame in came:
            handlers[number](number, frame)
