"""Reading a request's body, so much and so long and no more, and what comes after it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from longtail.serve.messages import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    from longtail.serve.limits import Limits

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]  # of ASGI, as in all files of this room
    Headers = tuple[tuple[bytes, bytes], ...]

__all__ = ["ClientLeft", "client_left", "read_body"]

# What is too long is read on for a while, and not kept: a client that is still sending when the
# connection closes would not see the answer.
MOST_DRAINED = 8
MOST_DIGITS = 20  # of a length: what has more is as surely too long
CLOSED: Headers = ((b"connection", b"close"),)


class ClientLeft(Exception):  # noqa: N818  # nothing is wrong
    """The client closed the connection before it was answered."""


async def read_body(
    receive: Receive, limits: Limits, headers: Iterable[tuple[bytes, bytes]] = ()
) -> bytes | bytearray:
    """Return the body of a request.

    Parameters
    ----------
    receive : callable
        Of ASGI.
    limits : Limits
    headers : pairs of bytes
        Of the request. If they announce too long a body, nothing of it is asked for.

    Raises
    ------
    Refusal
        If it is too long, or does not arrive in time.
    ClientLeft
        If the client closes the connection.
    """
    _check_announced(headers, limits)
    try:
        async with asyncio.timeout(limits.seconds):
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                body: bytes = message.get("body", b"")
                if len(body) > limits.body_bytes:
                    raise _too_long(limits, CLOSED)
                return body
            return await _rest(message, receive, limits)
    except TimeoutError:
        raise Refusal(
            408,
            f"The body did not arrive within {limits.seconds:g} seconds. Send it at once.",
            CLOSED,
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
        raise _too_long(limits, CLOSED)
    return body


def _check_announced(headers: Iterable[tuple[bytes, bytes]], limits: Limits) -> None:
    """Refuse a body that is too long by what is said of it, before anything of it is read.

    The connection stays open for what is already on its way, as it does whenever a request is
    refused by its head, so that the client sees the answer. One that expects to be told to go on
    sends nothing, and could not say that it will not.
    """
    announced = 0
    after: Headers = ()
    for name, value in headers:
        if name == b"content-length" and value.isdigit():
            announced = int(value[:MOST_DIGITS])
        elif name == b"expect" and value.lower() == b"100-continue":
            after = CLOSED
    if announced > limits.body_bytes:
        raise _too_long(limits, after)


def _too_long(limits: Limits, headers: Headers) -> Refusal:
    """Return the refusal of a body."""
    return Refusal(
        413,
        f"The body is longer than {limits.body_bytes:,} bytes. Send fewer or shorter texts.",
        headers,
    )
