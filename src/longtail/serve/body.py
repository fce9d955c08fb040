"""Reading a request's body, so much and so long and no more, and what comes after it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from longtail.serve.messages import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from longtail.serve.limits import Limits

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]  # of ASGI, as in all files of this room

__all__ = ["ClientLeft", "client_left", "read_body"]

# What is too long is read on for a while, and not kept: a client that is still sending when the
# connection closes would not see the answer.
MOST_DRAINED = 8


class ClientLeft(Exception):  # noqa: N818  # nothing is wrong
    """The client closed the connection before it was answered."""


async def read_body(receive: Receive, limits: Limits) -> bytes | bytearray:
    """Return the body of a request.

    Raises
    ------
    Refusal
        If it is too long, or does not arrive in time.
    ClientLeft
        If the client closes the connection.
    """
    try:
        async with asyncio.timeout(limits.seconds):
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                body: bytes = message.get("body", b"")
                if len(body) > limits.body_bytes:
                    raise _too_long(limits)
                return body
            return await _rest(message, receive, limits)
    except TimeoutError:
        raise Refusal(
            408,
            f"The body did not arrive within {limits.seconds:g} seconds. Send it at once.",
            ((b"connection", b"close"),),
        ) from None


async def client_left(receive: Receive) -> None:
    """Return once the client closes the connection, of a request whose body was read.

    A server that has anything else to say is not asked again: it might go on for ever.
    """
    message = await receive()
    if message["type"] != "http.disconnect":
        await asyncio.Event().wait()


async def _rest(message: Message, receive: Receive, limits: Limits) -> bytearray:
    """Return a body that comes in parts, the first of which is there."""
    body = bytearray()
    n_bytes = 0
    while True:
        if message["type"] != "http.request":
            raise ClientLeft
        part = message.get("body", b"")
        n_bytes += len(part)
        if n_bytes <= limits.body_bytes:
            body += part
        if not message.get("more_body") or n_bytes > MOST_DRAINED * limits.body_bytes:
            break
        message = await receive()
    if n_bytes > limits.body_bytes:
        raise _too_long(limits)
    return body


def _too_long(limits: Limits) -> Refusal:
    """Return the refusal of a body."""
    return Refusal(
        413,
        f"The body is longer than {limits.body_bytes:,} bytes. Send fewer or shorter texts.",
        ((b"connection", b"close"),),
    )
