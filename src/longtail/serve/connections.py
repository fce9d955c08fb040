"""Connections of uvicorn that are not held open by who sends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["HttpProtocol"]


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 with a limit for the head of a request, which uvicorn has not.

    The time runs from when a connection is made, or from the first byte that comes after an
    answer, until a head is complete; a connection whose time is over is closed. How long one may
    stay silent after an answer is uvicorn's ``timeout_keep_alive``.

    Parameters
    ----------
    head_seconds : float
    **settings
        Those of uvicorn.
    """

    def __init__(self, *, head_seconds: float, **settings: Any) -> None:
        super().__init__(**settings)
        self._head_seconds = head_seconds
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Read on, and wait for the head if it is not complete."""
        super().data_received(data)
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if self._head_timer is None and not is_answering and not self.transport.is_closing():
            self._wait_for_head()

    def on_headers_complete(self) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        """Close the connection after a while."""
        self._head_timer = self.loop.call_later(self._head_seconds, self.timeout_keep_alive_handler)

    def _stop_waiting(self) -> None:
        """Leave the connection open."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: clients may offer HTTP/2 and web sockets, and get HTTP/1.1."""
