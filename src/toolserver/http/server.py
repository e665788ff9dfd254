"""uvicorn without its clock: a server that sleeps until something happens and stops without waiting for clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from toolserver.http.gate import Gate
from toolserver.http.protocol import KEEP_ALIVE_S, Protocol
from toolserver.http.unauthenticated import Unauthenticated

TESTED_UVICORN = "0.55"
"""The uvicorn whose insides this package relies on: `protocol.py` and the class below extend its classes, `answers.py`
writes answers for it. pyproject.toml pins the same version."""
STOPS = (signal.SIGTERM, signal.SIGINT)
GRACE_S = 2.0
"""Seconds that running calls have to end at a stop, and again as many for their clients to take the answers."""

_logger = logging.getLogger(__name__)


def warn_of_untested_uvicorn() -> None:
    """Log that another uvicorn is installed than the tested one.

    That is no reason to refuse the start: whoever replaced it, against the pin, may have needed a fix of its security.
    """
    if not f"{uvicorn.__version__}.".startswith(f"{TESTED_UVICORN}."):
        facts = {"installed": uvicorn.__version__, "tested": TESTED_UVICORN}
        _logger.warning("this uvicorn is not the version that the server was tested with", extra={"facts": facts})


class Connections(set[Any]):
    """The open connections. The event `none` is set while there are none."""

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

    `ready` is called once connections are accepted. `ending` is called at the stop, when no new connection is accepted:
    it ends streams and commands, so that the calls under way can be answered.
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
            ws_per_message_deflate=False,  # compressing 64 KiB holds up the event loop for a millisecond
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
        """Begin the stop. Called again, it ends the waiting for calls and clients."""
        if self._ended.is_set():
            self._hurry.set()
        self._ended.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and SIGINT; restore their handlers afterwards."""
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
        unauthenticated = Unauthenticated()

        def protocol() -> asyncio.Protocol:
            return Protocol(self.config, state, {}, loop, unauthenticated=unauthenticated)

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
    """Close a connection that is idle or has sent half a request; any other is closed after its answer."""
    cycle = getattr(connection, "cycle", None)
    if cycle is not None and cycle.more_body and not cycle.response_started:
        connection.transport.close()
    else:
        connection.shutdown()
