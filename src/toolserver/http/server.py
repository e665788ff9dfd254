"""uvicorn without its clock: a server that sleeps until something happens and stops without waiting for clients."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from toolserver.http.answers import error_body
from toolserver.http.gate import Gate

MAX_HEAD = 1024 * 1024
"""Bytes of a request's head."""
KEEP_ALIVE_S = 75
"""Seconds that a connection may be silent: before a request, between two, and in the middle of one."""
STOPS = (signal.SIGTERM, signal.SIGINT)
GRACE_S = 2.0
"""Seconds that running calls have to end at a stop, and once more as much for their answers to be taken."""


class Protocol(HttpToolsProtocol):
    """HTTP on one connection: refusals as JSON, bounded heads, no handshake without the token."""

    _head = 0
    _decided: tuple[list[tuple[bytes, bytes]], bool] | None = None
    _declined = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._expect_more()

    def _expect_more(self) -> None:
        """Close the connection unless something comes in time."""
        self.timeout_keep_alive_task = self.loop.call_later(KEEP_ALIVE_S, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            else:
                self._go_on(data[upgrade.args[0] :])
            return
        if self.scope is not None and "path" not in self.scope and self.parser is not None:
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._refuse(431, "the head of the request is too large")
            else:
                self._expect_more()
            return
        self._head = 0
        if self.cycle is not None and self.cycle.more_body and not self.flow.read_paused:
            self._expect_more()

    def on_header(self, name: bytes, value: bytes) -> None:
        if "path" in self.scope:  # a trailer: nothing here has a use for one
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._declined = self.parser.should_upgrade() and not self._should_upgrade()
        if not self._declined:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._declined:
            super().on_message_complete()

    def _should_upgrade(self) -> bool:
        if self._decided is None or self._decided[0] is not self.headers:
            gate = self.app
            assert isinstance(gate, Gate)
            self._decided = (self.headers, super()._should_upgrade() and gate.upgrades(self.url, self.headers))
        return self._decided[1]

    def _go_on(self, rest: bytes) -> None:
        """Return a request whose upgrade is declined as what it is without one.

        The parser takes what follows such a head for the other protocol, so the body would be lost: it is given the
        head once more without the wish.
        """
        headers = [(name, value) for name, value in self.headers if name != b"upgrade"]
        if len(headers) == len(self.headers):  # CONNECT
            self.send_400_response("")
            return
        lines = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%s: %s" % header for header in headers]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn sets its own
        self.data_received(b"\r\n".join([*lines, b"", rest]))

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is not a request of HTTP/1.1")

    def _refuse(self, status: int, text: str) -> None:
        if self.transport.is_closing():
            return
        body = error_body(text)
        self.transport.write(
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
            % (status, HTTPStatus(status).phrase.encode(), len(body), body)
        )
        self.transport.close()


class Connections(set[Any]):
    """The open connections; `none` is set while there are none."""

    def __init__(self) -> None:
        super().__init__()
        self.none = asyncio.Event()
        self.none.set()

    def add(self, one: Any) -> None:
        super().add(one)
        self.none.clear()

    def discard(self, one: Any) -> None:
        super().discard(one)
        if not self:
            self.none.set()

    def remove(self, one: Any) -> None:
        super().remove(one)
        if not self:
            self.none.set()


class Server(uvicorn.Server):
    """Serves an application on sockets that already listen, until SIGTERM, SIGINT or `stop`.

    `ready` is called once connections are taken, `ending` at the stop, when no new ones are: it ends what streams and
    runs, so that the calls under way can answer.
    """

    def __init__(
        self,
        gate: Gate,
        sockets: list[socket.socket],
        *,
        ready: Callable[[], None],
        ending: Callable[[], Awaitable[None]],
    ) -> None:
        config = uvicorn.Config(
            gate,
            http=Protocol,
            ws=WebSocketsSansIOProtocol,
            ws_max_size=1024 * 1024,
            ws_per_message_deflate=False,  # packing a frame of 64 KiB would hold up everybody else for a millisecond
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
        )
        super().__init__(config)
        self._gate = gate
        self._sockets = sockets
        self._ready = ready
        self._ending = ending
        self._ended = asyncio.Event()
        self._hurry = asyncio.Event()

    def stop(self) -> None:
        """Begin the stop; a second time: wait for nothing any more."""
        if self._ended.is_set():
            self._hurry.set()
        self._ended.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and SIGINT; afterwards whatever took them before takes them again."""
        loop = asyncio.get_running_loop()

        def caught(*_: object) -> None:
            loop.call_soon_threadsafe(self.stop)

        before = {number: signal.signal(number, caught) for number in STOPS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        state = self.server_state
        state.connections = Connections()
        state.default_headers = self._gate.default_headers
        loop = asyncio.get_running_loop()

        def protocol() -> asyncio.Protocol:
            return Protocol(config=self.config, server_state=state, app_state={}, _loop=loop)

        self.servers = []
        for one in self._sockets:
            make: Any = loop.create_unix_server if one.family == socket.AF_UNIX else loop.create_server
            self.servers.append(await make(protocol, sock=one, backlog=self.config.backlog))
        self.started = True
        self._ready()

    async def main_loop(self) -> None:
        await self._ended.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await self._ending()
        for connection in list(self.server_state.connections):
            _let_go(connection)
        await self._wait_for_calls()
        for connection in list(self.server_state.connections):
            connection.transport.close()
        connections = self.server_state.connections
        assert isinstance(connections, Connections)
        await self._unless_hurried(connections.none.wait(), GRACE_S)

    async def _wait_for_calls(self) -> None:
        if tasks := set(self.server_state.tasks):
            await self._unless_hurried(asyncio.wait(tasks), GRACE_S)
        if left := {task for task in self.server_state.tasks if not task.done()}:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=GRACE_S)

    async def _unless_hurried(self, what: Awaitable[Any], seconds: float) -> None:
        waits = [asyncio.ensure_future(what), asyncio.ensure_future(self._hurry.wait())]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _let_go(connection: Any) -> None:
    """Close a connection that is idle or whose request is only half there; another ends with its answer."""
    cycle = getattr(connection, "cycle", None)
    if cycle is not None and cycle.more_body and not cycle.response_started:
        connection.transport.close()
    else:
        connection.shutdown()
