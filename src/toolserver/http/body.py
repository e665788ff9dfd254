"""Reads request bodies up to a limit."""

from __future__ import annotations

from starlette.types import Receive

MAX_BODY = 14 * 1024 * 1024
"""Bytes of a body, 14 680 064 (specification, section 13)."""


class BodyTooLarge(Exception):
    """The body is over the limit."""


class Left(Exception):
    """The client left before its body was complete."""


async def read_body(receive: Receive, length: bytes | None, most: int = MAX_BODY) -> bytes:
    """Return the whole body. `length` is the value of Content-Length, judged before anything is read.

    Raises BodyTooLarge as soon as the limit is passed, after which the protocol drops what the client still sends.
    Raises Left.
    """
    if length is not None and int(length) > most:
        raise BodyTooLarge
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Left
    first: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(first) > most:
            raise BodyTooLarge
        return first
    parts = [first]
    size = len(first)
    while message.get("more_body", False):
        if size > most:
            raise BodyTooLarge
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Left
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if size > most:
        raise BodyTooLarge
    return b"".join(parts)


async def disconnected(receive: Receive) -> None:
    """Return when the client has left. Its body must have been read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
