"""Streams of processes over WebSocket and NDJSON: refusals, the end of the server, readers that stall or vanish."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from commands import detach, eventually, memory, nothing_left, wait
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

if TYPE_CHECKING:
    from kit import Server


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    from kit import serving

    with serving("--capsule", "off") as server, nothing_left(server):
        yield server


@pytest.fixture
def ws(shared: Server) -> Server:
    shared.empty()
    return shared


def stream(server: Server, path: str, **more: Any) -> ClientConnection:
    headers = {"Authorization": f"Bearer {server.token}"}
    return connect(f"ws://127.0.0.1:{server.port}{path}", additional_headers=headers, max_size=None, **more)


def frames(connection: ClientConnection) -> list[dict[str, Any]]:
    return [json.loads(frame) for frame in connection]


@pytest.mark.parametrize(
    "query", ["since=x", "since=-1", "since=1.5", "since=", "since_err=0x1", "since=99999999999999999999"]
)
def test_a_malformed_offset_is_400(ws: Server, query: str) -> None:
    name = detach(ws, "true")
    answer = ws.http.get(f"/stream/process/{name}/lines?{query}")
    assert answer.status_code == 400
    assert query.split("=")[0] in answer.json()["error"]
    with pytest.raises(InvalidStatus) as refused:
        stream(ws, f"/stream/process/{name}?{query}")
    assert refused.value.response.status_code == 400


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/stream/process/p1/lines", "/stream/process/p1", "/stream/watch/w1"])
def test_streams_take_get_alone(ws: Server, path: str, method: str) -> None:
    """HEAD too is another method: there is no stream without its body."""
    answer = ws.http.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    ("path", "lines"), [("/stream/process/p1", True), ("/stream/process/p1?since=1", True), ("/stream/watch/w1", False)]
)
@pytest.mark.parametrize("upgrade", [{}, {"Connection": "Upgrade", "Upgrade": "h2c"}], ids=["plain", "h2c"])
def test_a_stream_without_the_upgrade_is_426(ws: Server, path: str, lines: bool, upgrade: dict[str, str]) -> None:
    """It says what is missing, and names the way that needs no WebSocket where there is one."""
    answer = ws.http.get(path, headers=upgrade)
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
    assert "upgrade" in answer.headers["connection"].lower()
    assert "WebSocket" in answer.json()["error"]
    assert ("/lines" in answer.json()["error"]) is lines


def test_a_tree_that_is_none(ws: Server) -> None:
    name = detach(ws, "true")
    assert ws.http.get(f"/stream/process/{name}/lines?tree=None").status_code == 400
    assert ws.http.get(f"/stream/process/{name}/lines?tree=other").status_code == 400


def test_a_process_of_another_tree_is_none(ws: Server) -> None:
    (ws.root / ".agents" / "alpha").mkdir(parents=True)
    name = detach(ws, "true", tree="alpha")
    answer = ws.http.get(f"/stream/process/{name}/lines")
    assert (answer.status_code, answer.text) == (404, f"no process {name}")


def test_frames_are_not_compressed(ws: Server) -> None:
    """A packed frame would hold up the event loop."""
    name = detach(ws, "true")
    with stream(ws, f"/stream/process/{name}") as connection:
        assert "permessage-deflate" not in connection.response.headers.get("Sec-WebSocket-Extensions", "")
        assert frames(connection) == [{"exit": 0}]


def test_what_a_reader_says_means_nothing(ws: Server) -> None:
    name = detach(ws, "read x; echo $x")
    with stream(ws, f"/stream/process/{name}") as connection:
        for _ in range(50):
            connection.send("noise")
        ws.ok("process_write", id=name, data="hello\n")
        assert frames(connection) == [{"stream": "stdout", "data": "hello\n"}, {"exit": 0}]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_stopping_server_says_that_it_goes_away(serve: Callable[..., Server], how: int) -> None:
    """§12: a stopping server closes with 1001; no exit is told, for the process may come back."""
    server = serve("--capsule", "off")
    name = detach(server, "echo one; sleep 500")
    with stream(server, f"/stream/process/{name}") as connection:
        assert json.loads(connection.recv(timeout=20))["data"] == "one\n"
        server.process.send_signal(how)
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code in (1001, 1012)
    assert server.process.wait(20) == 0


def test_attaching_again_after_the_exit(ws: Server) -> None:
    """Issue case: output from any offset still held, then the exit."""
    name = detach(ws, "printf 0123456789; printf abc >&2; exit 4")
    wait(ws, name)
    for since in (0, 3, 9, 10, 11):
        with stream(ws, f"/stream/process/{name}?since={since}&since_err=2") as connection:
            got = frames(connection)
        assert "".join(frame["data"] for frame in got if frame.get("stream") == "stdout") == "0123456789"[since:]
        assert got[-2:] == [{"stream": "stderr", "data": "c"}, {"exit": 4}]


def test_the_parts_of_a_character_come_in_one_frame(ws: Server) -> None:
    """Issue case: between the bytes of a character something comes on the other stream."""
    name = detach(ws, r"printf '\342'; echo err >&2; read x; printf '\211\244'; read x")
    with stream(ws, f"/stream/process/{name}") as connection:
        assert json.loads(connection.recv(timeout=20)) == {"stream": "stderr", "data": "err\n"}
        ws.ok("process_write", id=name, data="1\n")
        assert json.loads(connection.recv(timeout=20)) == {"stream": "stdout", "data": "≤"}
        ws.ok("process_write", id=name, data="2\n")
        assert frames(connection) == [{"exit": 0}]


def test_readers_that_stall_hold_up_nobody(ws: Server) -> None:
    """Many stalled readers of a flood: it runs on, others read on, and the server's memory is bounded."""
    name = detach(ws, "while [ ! -e go ]; do sleep 0.05; done; head -c 200000000 /dev/zero | tr '\\0' a")
    before = memory(ws)
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", ws.port)))
            one.sendall(
                f"GET /stream/process/{name}/lines HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {ws.token}\r\n\r\n".encode()
            )
            one.recv(10)
        ws.put("go")
        assert wait(ws, name, since=200_000_000)["next"] == 200_000_000
        assert ws.ok("exec", cmd="echo here")["stdout"] == "here\n"
        assert memory(ws) - before < 500 * 1024 * 1024
    eventually(lambda: memory(ws) - before < 150 * 1024 * 1024)


def test_a_reader_that_vanishes_is_forgotten(ws: Server) -> None:
    name = detach(ws, "while [ ! -e go ]; do echo x; sleep 0.01; done")
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", ws.port)) as one:
            one.sendall(
                f"GET /stream/process/{name}/lines HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {ws.token}\r\n\r\n".encode()
            )
            one.recv(200)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    time.sleep(0.2)
    ws.put("go")
    assert wait(ws, name)["exit_code"] == 0


def test_a_stream_holds_a_hundred_readers(ws: Server) -> None:
    name = detach(ws, "read x; seq 1 20000")
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(stream(ws, f"/stream/process/{name}")) for _ in range(100)]
        ws.ok("process_write", id=name, data="\n")
        want = "".join(f"{number}\n" for number in range(1, 20_001))
        for reader in readers:
            got = frames(reader)
            assert "".join(frame["data"] for frame in got[:-1]) == want
            assert got[-1] == {"exit": 0}
