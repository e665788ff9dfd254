"""The front of the server: every request passes here before it is routed (specification, section 2).

Origin, then token, then the route. `POST /tools/{name}` is answered from here without further machinery, since most
requests are such calls; everything else goes to the routes.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from email.utils import formatdate
from typing import Protocol
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolserver import log
from toolserver.http.answers import Header, error_body, send_json
from toolserver.http.token import TokenFile
from toolserver.state.activity import Activity

UNAUTHORIZED = error_body("the tool server needs the workspace's token")
FOREIGN = error_body("requests from pages of this origin are refused; --allow-origin allows one")
CHALLENGE: Header = (b"www-authenticate", b"Bearer")
HEALTH = b"/healthz"
TOOLS = b"/tools/"
STREAMS = b"/stream/"
"""Below it lie the only routes that speak WebSocket."""

_LOOKED_AT = frozenset(
    (b"authorization", b"content-length", b"origin", b"access-control-request-method", b"x-kd-watch", b"x-kl-watch")
)
_PREFLIGHT: Sequence[Header] = (
    (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"authorization, content-type, if-none-match, x-kd-watch, x-kl-watch, x-caller-worker-id, x-channel-key",
    ),
    (b"access-control-max-age", b"600"),
)


class ToolCalls(Protocol):
    """What answers `/tools/{name}`."""

    async def call(self, name: str, length: bytes | None, scope: Scope, receive: Receive, send: Send) -> None: ...


class Gate:
    """The ASGI application that uvicorn is given."""

    def __init__(
        self, *, token: TokenFile, origins: Collection[str], tools: ToolCalls, routes: ASGIApp, activity: Activity
    ) -> None:
        self._token = token
        self._origins = frozenset(origin.encode() for origin in origins if origin)
        self._tools = tools
        self._routes = routes
        self._activity = activity
        self._second = 0
        self.default_headers: list[Header] = [(b"date", b"")]
        """Headers of every answer. The date in it is set with each request, so that no timer has to."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._set_date()
        watching = False
        found: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in _LOOKED_AT:
                # given twice it is neither the one nor the other
                found[name] = b"" if name in found else value
        origin = found.get(b"origin")
        if origin is not None:
            if origin not in self._origins:
                await send_json(scope, send, 403, FOREIGN)
                return
            send = _allowing(send, origin)
            if scope.get("method") == "OPTIONS" and b"access-control-request-method" in found:
                await send({"type": "http.response.start", "status": 204, "headers": list(_PREFLIGHT)})
                await send({"type": "http.response.body"})
                return
        path = scope["raw_path"]
        open_to_all = path == HEALTH and scope.get("method") == "GET"
        if not open_to_all and not self._token.admits(found.get(b"authorization")):
            await send_json(scope, send, 401, UNAUTHORIZED, [CHALLENGE])
            return
        watching = open_to_all or b"1" in (found.get(b"x-kd-watch"), found.get(b"x-kl-watch"))
        if not watching:
            self._activity.begin()
        try:
            await self._route(path, found.get(b"content-length"), scope, receive, send)
        finally:
            if not watching:
                self._activity.end()

    async def _route(self, path: bytes, length: bytes | None, scope: Scope, receive: Receive, send: Send) -> None:
        if path.startswith(TOOLS) and scope["type"] == "http":
            name = path[len(TOOLS) :]
            if name and b"/" not in name:
                await self._tools.call(unquote(name.decode("ascii")), length, scope, receive, send)
                return
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._routes(scope, receive, noting)
        except Exception as error:
            body = error_body(f"internal error {log.fault(error)}")
            if not started:
                await send_json(scope, send, 500, body)

    def upgrades(self, target: bytes, headers: Sequence[Header]) -> bool:
        """Whether a WebSocket handshake may go on; any other is answered as the plain request that it also is."""
        found: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in _LOOKED_AT:
                found[name] = b"" if name in found else value
        return (
            target.startswith(STREAMS)
            and (b"origin" not in found or found[b"origin"] in self._origins)
            and self._token.admits(found.get(b"authorization"))
        )

    def _set_date(self) -> None:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self.default_headers[0] = (b"date", formatdate(second, usegmt=True).encode())


def _allowing(send: Send, origin: bytes) -> Send:
    """Add the headers that let a page of an allowed origin read the answer."""

    async def allowed(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = [
                *message.get("headers", ()),
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", b"*"),
                (b"vary", b"Origin"),
            ]
            message = {**message, "headers": headers}
        await send(message)

    return allowed
