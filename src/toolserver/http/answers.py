"""Answers as ASGI messages: JSON with its length, errors as `{"error": text}` (specification, section 2)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

Header = tuple[bytes, bytes]
JSON: Header = (b"content-type", b"application/json")
ONE_WRITE = 64 * 1024
"""Bytes of a body that is copied behind its head for one write; of a larger one the copy costs more than a write."""

ONE_PART = 256 * 1024
"""Bytes of a large answer that are handed to the connection at a time."""
STALL_S = 30.0
"""Seconds without progress after which a large answer is given up."""


def answer(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    """Make the response of a Starlette route."""
    return Response(orjson.dumps(body), status, headers, media_type="application/json")


def error_body(text: str) -> bytes:
    return orjson.dumps({"error": text})


def json_head(status: int, headers: Iterable[Header], size: int, *, close: bool) -> bytes:
    """Make the head of an answer whose body is `size` bytes of JSON."""
    parts = [STATUS_LINE[status]]
    for name, value in (*headers, JSON):
        parts += (name, b": ", value, b"\r\n")
    if close:
        parts.append(b"connection: close\r\n")
    parts.append(b"content-length: %d\r\n\r\n" % size)
    return b"".join(parts)


async def send_pieces(scope: Scope, send: Send, pieces: list[bytes | memoryview]) -> None:
    """Send a 200 whose JSON is in pieces, each as the client takes it and dropped then; empties `pieces`.

    A client that takes nothing for STALL_S is cut off: its answer would keep memory that other calls wait for.
    """
    size = sum(map(len, pieces))
    said = [JSON, (b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": 200, "headers": said})
    pieces.reverse()
    while pieces:
        view = memoryview(pieces.pop())
        while view:
            part, view = view[:ONE_PART], view[ONE_PART:]
            size -= len(part)
            message = {"type": "http.response.body", "body": part, "more_body": size > 0}
            try:
                async with asyncio.timeout(STALL_S):
                    await send(message)
            except TimeoutError:
                if (cycle := getattr(send, "__self__", None)) is not None:
                    cycle.transport.abort()
                    await asyncio.sleep(0)  # for the protocol to be told
                return
            await asyncio.sleep(0)  # a client on this machine takes parts as fast as they come


async def send_json(scope: Scope, send: Send, status: int, body: bytes, headers: Sequence[Header] = ()) -> None:
    """Send a whole answer; on a WebSocket that is not accepted yet, as the answer to its handshake."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is RequestResponseCycle and len(body) <= ONE_WRITE and not cycle.flow.write_paused:
        _send_at_once(cycle, status, body, headers)
        return
    prefix = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    said = [JSON, (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": f"{prefix}.start", "status": status, "headers": said})
    await send({"type": f"{prefix}.body", "body": body})


def _send_at_once(cycle: RequestResponseCycle, status: int, body: bytes, headers: Sequence[Header]) -> None:
    """Do what uvicorn's `send` does for the two messages of an answer, with one write(2) instead of two.

    Head and body in one segment make a small call a fifth cheaper. Depends on the insides of uvicorn, hence on the
    version that `server.py` names; the HTTP tests compare both ways.
    """
    if cycle.disconnected:
        return
    data = json_head(status, (*cycle.default_headers, *headers), len(body), close=not cycle.keep_alive)
    cycle.response_started = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(data if cycle.scope["method"] == "HEAD" else data + body)
    cycle.response_complete = True
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
