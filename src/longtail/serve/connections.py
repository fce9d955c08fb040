"""Connections of uvicorn that bear with who sends nothing, too much, or an offer to upgrade.

And with who asks, but takes nothing of the answer.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import TYPE_CHECKING, Any, cast

from httptools import HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

__all__ = ["HttpProtocol"]

MOST_BYTES_BESIDE = 65_536  # of a head, after the piece in which it begins, or behind a body


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 with limits for heads and for answers, which uvicorn has not, and no other protocol.

    The time runs from when a connection is made, or from when a head begins after an answer, until
    that is complete; a body that is still coming when it has been refused has as long. A connection
    whose time is over is closed, as is one that brings a head, or lines behind a body, without end.
    How long one may stay silent after an answer is uvicorn's ``timeout_keep_alive``.

    A client that takes nothing of what is written to it for so long, or up to twice as long, is cut
    off. Else it would keep its connection and the answers, since even one that is closed is kept
    until all is taken. Who takes little, but goes on, may take as long as that lasts.

    Of a request that offers another protocol, as Java's client offers HTTP/2 with each, uvicorn's
    parser takes the body for the beginning of that protocol, and loses it. Such a head is read
    again, without the offer.
    """

    def __init__(self, *, seconds: float, **settings: Any) -> None:
        super().__init__(**settings)
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._taking_timer: asyncio.TimerHandle | None = None
        self._untaken: tuple[int, int] | None = None
        self._n_answers = 0
        self._answered: RequestResponseCycle | None = None
        self._is_in_request = False
        self._n_bytes_beside = 0
        self._head_again = b""
        self._n_read = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait_for_client()

    def data_received(self, data: bytes) -> None:
        """Read on, and wait for what has not come."""
        self._n_bytes_beside += len(data)
        while data:
            self._head_again, self._n_read = b"", len(data)
            super().data_received(data)
            data = self._head_again + data[self._n_read :]
        is_endless = self._is_in_request and self._n_bytes_beside > MOST_BYTES_BESIDE
        if is_endless and not self.transport.is_closing():
            self.send_400_response("The header lines of the request are too long.")
        self._wait_for_client()

    def on_message_begin(self) -> None:
        """Begin to count."""
        self._is_in_request, self._n_bytes_beside = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Wait no more: the application gives the body its time."""
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Begin to count again: bodies have a limit of their own."""
        self._n_bytes_beside = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Count no more, and wait no more for the rest of what was refused."""
        self._is_in_request = False
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the client again, also for it to take the answer."""
        super().on_response_complete()
        self._n_answers += 1
        self._wait_for_client()
        if self._taking_timer is None and self in self.connections:
            self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        if self._taking_timer is not None:
            self._taking_timer.cancel()
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Keep which request is answered: of those that came at once, uvicorn's is the last."""
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _wait_for_client(self) -> None:
        """Close the connection after a while, unless it is the client that waits."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering or self.transport.is_closing():
            return
        if self._is_in_request or self.cycle is None:
            self._unset_keepalive_if_required()
            if self._timer is None:
                self._timer = self.loop.call_later(self._seconds, self.timeout_keep_alive_handler)
        elif self.timeout_keep_alive_task is None:  # the end of a body, or an empty line, unset it
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _stop_waiting(self) -> None:
        """Leave the connection open."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        """Look after a while how much the client has taken."""
        self._taking_timer = self.loop.call_later(self._seconds, self._look)

    def _look(self) -> None:
        """Cut the client off if, since the last look, it was sent no answer, and took nothing."""
        self._taking_timer = None
        n_bytes = self.transport.get_write_buffer_size()
        if n_bytes == 0:
            self._untaken = None
            return
        with suppress(OSError):  # the system may hold megabytes; only Linux says how many
            kept_by_system = ioctl(self.transport.get_extra_info("socket"), TIOCOUTQ, bytes(4))
            n_bytes += int.from_bytes(kept_by_system, sys.byteorder)
        before, self._untaken = self._untaken, (self._n_answers, n_bytes)
        if self._untaken == before:
            self.transport.abort()
        else:
            self._look_later()

    def _should_upgrade(self) -> bool:
        """Hold any request back that offers another protocol; it comes again."""
        return True

    def handle_websocket_upgrade(self) -> None:
        """Have the head read again, without the offer, and what follows it as HTTP/1.1."""
        method = self.scope["method"]
        if method == "CONNECT":  # asks for a tunnel, which is no offer that may be left out
            self.send_400_response("Invalid HTTP request received.")
            return
        version = self.scope["http_version"]
        lines = [f"{method} ".encode() + self.url + f" HTTP/{version}".encode()]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self._head_again = b"\r\n".join([*lines, b"", b""])
        # A new parser: the one before reads nothing more after "connection: close".
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
        # Uvicorn calls this where it handles httptools' HttpParserUpgrade, whose argument says how
        # far that parser has read, and does not pass it on.
        self._n_read = cast("BaseException", sys.exception()).args[0]
