"""The front of the server: every request passes here before it is routed (specification, section 2).

Origin, then token, then the route. `POST /tools/{name}` goes to the tools directly, since most requests are such calls;
everything else goes to the Starlette routes. What every answer carries is added here: the date in `default_headers`,
and with `_adding` the headers of one request's answer. The line of a call in the log is written by `ToolRoutes.call`.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from email.utils import formatdate
from typing import Protocol
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolserver import log
from toolserver.http.answers import Header, error_body, send_json
from toolserver.http.hosts import Hosts
from toolserver.http.token import TokenFile
from toolserver.state.activity import Activity

UNAUTHORIZED = error_body("the tool server needs the workspace's token")
FOREIGN = error_body("requests from pages of this origin are refused; --allow-origin allows one")
CHALLENGE: Header = (b"www-authenticate", b"Bearer")
ALIVE = b'{"ok":true}'
"""What GET /healthz tells a page that may belong to anybody."""
HEALTH = b"/healthz"
TOOLS = b"/tools/"
STREAMS = b"/stream/"
"""The only routes that speak WebSocket are below it."""
AUTHENTICATED = "authenticated"
"""Key of a request's `state`: the function to call once its connection has shown the token."""

_LOOKED_AT = frozenset(
    (
        b"authorization",
        b"content-length",
        b"host",
        b"origin",
        b"access-control-request-method",
        b"x-kd-watch",
        b"x-kl-watch",
    )
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
    """Serves `/tools/{name}`."""

    async def call(self, name: str, length: bytes | None, scope: Scope, receive: Receive, send: Send) -> None: ...


class Gate:
    """The ASGI application that uvicorn is given."""

    def __init__(
        self,
        *,
        token: TokenFile,
        host: str,
        origins: Collection[str],
        tools: ToolCalls,
        routes: ASGIApp,
        activity: Activity,
    ) -> None:
        self._token = token
        self._hosts = Hosts(host)
        self._origins = frozenset(origin.encode() for origin in origins if origin)
        self._tools = tools
        self._routes = routes
        self._activity = activity
        self._second = 0
        self.default_headers: list[Header] = [(b"date", b"")]
        """Headers of every answer. The date is set at each request, which needs no timer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._set_date()
        found = _looked_at(scope["headers"])
        origin = found.get(b"origin")
        if origin is not None:
            if origin not in self._origins:
                await send_json(scope, send, 403, FOREIGN)
                return
            send = _adding(send, _allowed(origin))
            if scope.get("method") == "OPTIONS" and b"access-control-request-method" in found:
                await send({"type": "http.response.start", "status": 204, "headers": list(_PREFLIGHT)})
                await send({"type": "http.response.body"})
                return
        path = scope["raw_path"]
        open_to_all = path == HEALTH and scope.get("method") == "GET"
        shown = self._token.admits(found.get(b"authorization"))
        if shown:
            scope["state"][AUTHENTICATED]()
        elif not open_to_all:
            await send_json(scope, send, 401, UNAUTHORIZED, [CHALLENGE])
            return
        elif not self._hosts.include(found.get(b"host")):
            await send_json(scope, send, 200, ALIVE)
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
        """Whether a WebSocket handshake may go on. Any other is answered as the plain request that it also is."""
        found = _looked_at(headers)
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


def _looked_at(headers: Iterable[Header]) -> dict[bytes, bytes]:
    """Return the headers that the gate judges; one that is given twice counts as empty, which nothing accepts."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _LOOKED_AT:
            found[name] = b"" if name in found else value
    return found


def _allowed(origin: bytes) -> Sequence[Header]:
    """Return the headers that let a page of an allowed origin read the answer."""
    return (
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"Origin"),
    )


def _adding(send: Send, headers: Sequence[Header]) -> Send:
    """Return a `send` that adds headers to whatever answer is sent."""

    async def adding(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return adding
