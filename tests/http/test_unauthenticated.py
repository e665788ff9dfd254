"""Connections that have not shown the token: how many, how long, and how much of a head."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import select
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from inside import TOKEN as INSIDE
from inside import serving
from kit import TOKEN
from wire import WAIT_S, Wire, ask, head, post

from toolserver.http import unauthenticated

if TYPE_CHECKING:
    from kit import Server

CONNECTIONS = 256
FIELDS = 100


# ------------------------------------------------------------------------------------------------ header fields


def fields(count: int, token: bool) -> bytes:
    """A request of that many header fields; the token, if any, is the last."""
    return head("GET", "/tools", *["X: y"] * (count - 1 - token), token=token)


@pytest.mark.parametrize(("token", "status"), [(True, 200), (False, 401)])
def test_a_hundred_header_fields(server: Server, token: bool, status: int) -> None:
    assert ask(server, fields(FIELDS, token)).status == status


@pytest.mark.parametrize("token", [True, False])
@pytest.mark.parametrize("count", [FIELDS + 1, 250_000])
def test_more_header_fields(server: Server, count: int, token: bool) -> None:
    """The refusal reaches a client that sends everything before it reads."""
    with Wire(server.port) as wire:
        wire.send(fields(count, token))
        answer = wire.answer()
        assert (answer.status, answer.headers["connection"]) == (431, ["close"])
        assert str(FIELDS) in answer.error
        assert "date" in answer.headers
        assert wire.ends()
    assert ask(server, fields(2, True)).status == 200


def test_trailers_count_as_header_fields(server: Server) -> None:
    server.put("f", "here\n")
    request = head("POST", "/tools/read", "Transfer-Encoding: chunked") + b'd\r\n{"path": "f"}\r\n0\r\n'
    assert ask(server, request + b"X: y\r\n" * (FIELDS - 3) + b"\r\n").status == 200
    assert ask(server, request + b"X: y\r\n" * (FIELDS - 2) + b"\r\n").status == 431


def test_heads_that_follow_one_another_are_not_added_up(server: Server) -> None:
    """Requests of 8 KiB each, cut in the middle of every head, 4 MiB in all."""
    one = head("GET", "/healthz", "X: " + "y" * 8000)
    with Wire(server.port) as wire:
        wire.send(one[:4000])
        for _ in range(500):
            wire.send(one[4000:] + one[:4000])
            assert wire.answer().status == 200


# ------------------------------------------------------------------------------------------------ refusals in order


@pytest.mark.parametrize(
    ("broken", "status"),
    [
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 102, 431),
        (head("POST", "/tools/read", "Transfer-Encoding: chunked") + b"no size\r\n", 400),
    ],
    ids=["not HTTP", "too many fields", "a broken chunk"],
)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_requests_before_a_refused_one_are_answered(server: Server, before: int, broken: bytes, status: int) -> None:
    server.put("f", "here\n")
    with Wire(server.port) as wire:
        wire.send(post("/tools/exec", b'{"cmd": ["sleep", "0.1"]}') * before + broken)
        assert [wire.answer().status for _ in range(before)] == [200] * before
        assert wire.answer().status == status
        assert wire.ends()


# ------------------------------------------------------------------------------------------------ how many


def closed(one: socket.socket) -> bool:
    """Whether the server has closed a connection on which it has nothing to say."""
    if not select.select([one], [], [], 0)[0]:
        return False
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


@contextlib.contextmanager
def connections(server: Server, count: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S))
            one.sendall(sent)
            opened.append(one)
        yield opened


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: "], ids=["silent", "half a head"])
def test_too_many_connections_without_the_token(serve: Callable[..., Server], sent: bytes) -> None:
    """The oldest are closed; never one that has shown the token, whatever its age, nor a new one that does."""
    server = serve()
    server.put("f", "here\n")
    call = post("/tools/read", b'{"path": "f"}')
    with Wire(server.port) as old:
        old.send(call)
        assert old.answer().status == 200
        with connections(server, 2 * CONNECTIONS, sent) as opened:
            for one in opened[:CONNECTIONS]:
                with contextlib.suppress(ConnectionResetError):
                    assert one.recv(1) == b""
            assert not any(map(closed, opened[CONNECTIONS:]))
            for _ in range(3):
                assert ask(server, call).status == 200
            old.send(call)
            assert old.answer().status == 200


def test_a_crowd_with_the_token_is_answered(serve: Callable[..., Server]) -> None:
    """Three times as many as there may be without it, all at once."""
    server = serve()
    server.put("f", "here\n")
    call = post("/tools/read", b'{"path": "f"}')
    with contextlib.ExitStack() as stack:
        wires = []
        for _ in range(3 * CONNECTIONS):
            wires.append(stack.enter_context(Wire(server.port)))
            wires[-1].send(call)
        for _ in range(2):
            assert {wire.answer().status for wire in wires} == {200}
            for wire in wires:
                wire.send(call)


# ------------------------------------------------------------------------------------------------ how long


def test_the_time_without_the_token(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent, in the middle of a head, or asking what needs no token: each is closed. With the token none is."""
    monkeypatch.setattr(unauthenticated, "DEADLINE_S", 0.3)

    async def run() -> None:
        async with serving(tmp_path) as (port, _):

            async def connected(data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(data)
                return reader, writer

            async def answered(reader: asyncio.StreamReader) -> bool:
                return b'"root"' in await asyncio.wait_for(reader.readuntil(b"}"), WAIT_S)

            async def ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, more: bytes) -> bool:
                """Send more as long as it is open; whether it ends."""
                with contextlib.suppress(ConnectionError):
                    while await asyncio.wait_for(reader.read(4096), WAIT_S):
                        writer.write(more)
                writer.close()
                return True

            with_token = b"GET /healthz HTTP/1.1\r\nAuthorization: Bearer %s\r\n\r\n" % INSIDE.encode()
            shown = await connected(with_token)
            assert await answered(shown[0])
            healthz = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            tools = b"GET /tools HTTP/1.1\r\nHost: localhost\r\n\r\n"
            for first, more in [(b"", b""), (b"GET /tools HTTP/1.1\r\nX: ", b""), (healthz, healthz), (tools, tools)]:
                assert await ends(*await connected(first), more)
            shown[1].write(with_token)
            assert await answered(shown[0])
            shown[1].close()

    asyncio.run(run())


def test_half_a_head_with_the_token_does_not_count(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head must be whole."""
    monkeypatch.setattr(unauthenticated, "DEADLINE_S", 0.3)

    async def run() -> None:
        async with serving(tmp_path) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /tools HTTP/1.1\r\nAuthorization: Bearer %s\r\n" % INSIDE.encode())
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
            writer.close()

    asyncio.run(run())


def test_a_stream_outlives_the_time(serve: Callable[..., Server]) -> None:
    """A WebSocket has shown the token with its handshake: it is not counted, and not closed for a crowd of others."""
    from websockets.sync.client import connect

    server = serve()
    name = server.ok("exec", cmd="read x; echo $x", detach=True)["id"]
    url = f"ws://127.0.0.1:{server.port}/stream/process/{name}"
    with connect(url, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as stream:
        with connections(server, 2 * CONNECTIONS) as opened, contextlib.suppress(ConnectionResetError):
            assert opened[0].recv(1) == b""
        server.ok("process_write", id=name, data="on\n")
        assert '"on\\n"' in "".join(str(frame) for frame in stream)
