"""Streams: the output of a process and the events of a watch, as they come (specification, section 12)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import orjson
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from toolserver.calls.call import Answer, Services
from toolserver.calls.process_answers import lost_output
from toolserver.errors import BadArgument, ToolError
from toolserver.http.answers import answer, error_body, send_json
from toolserver.processes.pacing import Throttle
from toolserver.processes.process import Process
from toolserver.processes.restart.lost import CANNOT_START, LostProcess
from toolserver.watches.subscriber import WatchSubscriber
from toolserver.workspace.names import MAIN

GOING_AWAY = 1001
NORMAL = 1000
LARGEST = 2**63 - 1
_OFFSET = re.compile(r"[0-9]{1,19}", re.ASCII)


class Source(Protocol):
    """Where the frames of a stream come from, one JSON object each."""

    @property
    def stopped(self) -> bool:
        """Whether it ended because the server stops."""

    async def next(self) -> bytes | None:
        """Wait for the next frame; return None at the end."""

    def stop(self) -> None:
        """End it: `next` returns None from now on."""


class Missing(Exception):
    """There is nothing to stream under this id. The text is the answer's body."""


Open = Callable[[HTTPConnection], tuple[Source, Callable[[], None]]]
"""Opens the source that a request asks for. Returns it and how it is given back. Raises Missing or ToolError."""


def process_streams(services: Services) -> list[BaseRoute]:
    """Make the routes of process streams."""
    lines = "/stream/process/{id}/lines"

    def begin(request: HTTPConnection) -> tuple[Source, Callable[[], None]]:
        process = _process(services, request)
        if isinstance(process, LostProcess):
            frame = OneFrame({"exit": CANNOT_START} if process.failed else lost_output(process))
            return frame, frame.stop
        subscriber = process.subscribe(offset(request, "since"), offset(request, "since_err"))
        return subscriber, lambda: process.broadcast.unsubscribe(subscriber)

    return [
        *_socket_routes("/stream/process/{id}", Socket(begin, services.processes.throttle), plain=lines),
        _get(lines, Lines(begin, services.processes.throttle)),
    ]


def watch_streams(services: Services) -> list[BaseRoute]:
    """Make the routes of watch streams."""

    def begin(request: HTTPConnection) -> tuple[Source, Callable[[], None]]:
        tree, name = request.query_params.get("tree", MAIN), request.path_params["id"]
        with services.workspace.tree(tree):
            watch = services.watches.find(tree, name)
        if watch is None:
            raise Missing(f"no watch {name}")
        subscriber = WatchSubscriber(watch, offset(request, "since"))
        return subscriber, subscriber.stop

    return _socket_routes("/stream/watch/{id}", Socket(begin, services.processes.throttle))


def _get(path: str, endpoint: Callable[..., Any]) -> Route:
    """Make a route that takes GET and nothing else, where Starlette adds HEAD: a stream without its body is none."""
    route = Route(path, endpoint, methods=["GET"])
    route.methods = {"GET"}
    return route


def _socket_routes(path: str, socket: Socket, plain: str = "") -> list[BaseRoute]:
    """Make the route of a WebSocket and the one of plain requests for it, which names the route of plain HTTP."""
    text = f"{path} speaks WebSocket: the request must ask for the upgrade"
    if plain:
        text += f"; GET {plain} sends the same as lines of JSON without one"

    async def needs_upgrade(request: Request) -> Response:
        return answer(426, {"error": text}, {"Connection": "Upgrade", "Upgrade": "websocket"})

    return [WebSocketRoute(path, socket), _get(path, needs_upgrade)]


class OneFrame:
    """The source of a stream that consists of one frame."""

    stopped = False

    def __init__(self, frame: Answer) -> None:
        self._frame: bytes | None = orjson.dumps(frame)

    async def next(self) -> bytes | None:
        frame, self._frame = self._frame, None
        return frame

    def stop(self) -> None:
        self._frame = None


def _process(services: Services, request: HTTPConnection) -> Process | LostProcess:
    tree, name = request.query_params.get("tree", MAIN), request.path_params["id"]
    with services.workspace.tree(tree):
        process = services.processes.find(tree, name) or services.processes.find_lost(tree, name)
    if process is None:
        raise Missing(f"no process {name}")
    return process


def offset(request: HTTPConnection, name: str) -> int:
    """Return an offset of the query, 0 where it is not given. Raises BadArgument for anything but a number."""
    text = request.query_params.get(name, "0")
    if not _OFFSET.fullmatch(text) or int(text) > LARGEST:
        raise BadArgument(f"{name}: expected an integer of at least 0, not {text[:40]!r}")
    return int(text)


async def _refuse(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request or a handshake with the reason why there is no stream."""
    if isinstance(error, ToolError):
        await send_json(scope, send, error.status, error_body(str(error)))
    else:
        await PlainTextResponse(str(error), 404)(scope, receive, send)


async def _relay(
    source: Source, throttle: Throttle, send: Callable[[bytes], Awaitable[None]], receive: Receive
) -> bool:
    """Send frame after frame to the end. Return False where the client left before it."""
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] not in ("websocket.disconnect", "http.disconnect"):
            pass  # what a client says on a stream means nothing
        left = True
        source.stop()

    watching = asyncio.create_task(watch())
    try:
        while (frame := await source.next()) is not None:
            await throttle.enter(len(frame))
            await send(frame)
    except OSError:  # uvicorn's error for a send after the disconnect
        return False
    finally:
        watching.cancel()
    return not left


class Socket:
    """One JSON object per text frame of a WebSocket."""

    def __init__(self, begin: Open, throttle: Throttle) -> None:
        self._begin = begin
        self._throttle = throttle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # the handshake
        try:
            source, give_back = self._begin(HTTPConnection(scope))
        except (Missing, ToolError) as error:
            await _refuse(error, scope, receive, send)
            return

        async def one(frame: bytes) -> None:
            await send({"type": "websocket.send", "text": frame.decode()})

        try:
            await send({"type": "websocket.accept"})
            if await _relay(source, self._throttle, one, receive):
                await send({"type": "websocket.close", "code": GOING_AWAY if source.stopped else NORMAL})
        finally:
            give_back()


class Lines:
    """One JSON object a line, `application/x-ndjson`."""

    def __init__(self, begin: Open, throttle: Throttle) -> None:
        self._begin = begin
        self._throttle = throttle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            source, give_back = self._begin(HTTPConnection(scope))
        except (Missing, ToolError) as error:
            await _refuse(error, scope, receive, send)
            return

        async def one(frame: bytes) -> None:
            await send({"type": "http.response.body", "body": frame + b"\n", "more_body": True})

        try:
            headers = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            if await _relay(source, self._throttle, one, receive):
                await send({"type": "http.response.body", "body": b""})
        finally:
            give_back()
