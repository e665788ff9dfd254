"""Answers as ASGI messages: JSON with its length, errors as `{"error": text}` (specification, section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Scope, Send

Header = tuple[bytes, bytes]
JSON: Header = (b"content-type", b"application/json")


def answer(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    """Make the response of a Starlette route."""
    return Response(orjson.dumps(body), status, headers, media_type="application/json")


def error_body(text: str) -> bytes:
    return orjson.dumps({"error": text})


async def send_json(scope: Scope, send: Send, status: int, body: bytes, headers: Sequence[Header] = ()) -> None:
    """Send a whole answer; to a WebSocket that is not accepted yet as the answer to its handshake."""
    prefix = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    said = [JSON, (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": f"{prefix}.start", "status": status, "headers": said})
    await send({"type": f"{prefix}.body", "body": body})
