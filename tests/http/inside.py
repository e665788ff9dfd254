"""A server in this process, with tools of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable

from toolserver.app import make_app
from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Tool
from toolserver.http.gate import Gate
from toolserver.http.routes import Routes, health
from toolserver.http.server import Server
from toolserver.http.tools import ToolRoutes
from toolserver.log import CallLog
from toolserver.serving import listening
from toolserver.settings import Settings

TOKEN = "inside"


class Nothing(Arguments, kw_only=True, frozen=True):
    """No arguments."""


@contextlib.asynccontextmanager
async def serving(
    where: pathlib.Path, **tools: Callable[[Call, Nothing], Awaitable[Answer]]
) -> AsyncIterator[tuple[int, Server]]:
    """Serve functions as tools, on a free port; answer the port and the server."""
    token = where / "token"
    token.write_text(TOKEN)
    root = where / "ws"
    root.mkdir()
    app = make_app(Settings(str(root), str(token), port=0))
    table = tuple(Tool(name, name, Nothing, function) for name, function in tools.items())
    routes = ToolRoutes(table, app.services, CallLog("error"))
    others = Routes([health(app.services.workspace)])
    gate = Gate(token=app.token, host="", origins=(), tools=routes, routes=others, activity=app.activity)

    async def ending() -> None:
        """Nothing runs beside the calls."""

    started = asyncio.Event()
    with listening(Settings(str(root), "", port=0)) as sockets:
        server = Server(gate, sockets, ready=started.set, ending=ending)
        task = asyncio.create_task(server.serve())
        await started.wait()
        try:
            yield sockets[0].getsockname()[1], server
        finally:
            server.stop()
            await task
            app.close()


async def connect(port: int, tool: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a call; leave the answer to the caller."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"POST /tools/{tool} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
    await writer.drain()
    return reader, writer
