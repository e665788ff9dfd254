"""Starts servers and asks them over HTTP with as little work in the client as can be."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

TOKEN = "bench-token-0123456789"
BIN = pathlib.Path(sys.executable).parent
START_LIMIT_S = 30.0


def free_port() -> int:
    """Return a TCP port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Connection:
    """One keep-alive connection. `post` answers the body's bytes once its last byte is here."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()

    def post(self, tool: str, **arguments: Any) -> bytes:
        return self.post_body(tool, json.dumps(arguments).encode())

    def post_body(self, tool: str, body: bytes, status: int = 200) -> bytes:
        """Post a body that is JSON already, for one so large that making it would count. `status` is what must come."""
        self._socket.sendall(
            b"POST /tools/%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
            % (tool.encode(), TOKEN.encode(), len(body), body)
        )
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        head = bytes(received[:end]).lower()
        found = int(head.split(b" ", 2)[1])
        length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        answer = memoryview(bytearray(length))
        have = len(received) - end - 4
        answer[:have] = received[end + 4 :]
        while have < length:
            have += self._socket.recv_into(answer[have:])
        if found != status:
            raise RuntimeError(f"{tool} answered {found}: {bytes(answer[:500])!r}")
        return bytes(answer)

    def wait_ready(self) -> None:
        """Wait for one answer: connections are taken a moment before the server is ready."""
        self._socket.sendall(
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % TOKEN.encode()
        )
        while not self._more().endswith(b"}"):
            pass

    def _more(self) -> bytes:
        got = self._socket.recv(65536)
        if not got:
            raise RuntimeError("the server closed the connection")
        return got


class Served:
    """A running server on `root`."""

    def __init__(self, root: pathlib.Path, *args: str, code: str = "") -> None:
        """Start `toolserver serve` with these flags, or Python `code` that does so."""
        self.port = free_port()
        self._state = tempfile.TemporaryDirectory(prefix="toolserver-bench-")
        token = pathlib.Path(self._state.name) / "token"
        token.write_text(TOKEN)
        self.process = subprocess.Popen(
            [
                *([sys.executable, "-c", code] if code else [BIN / "toolserver"]),
                "serve",
                str(root),
                "--port",
                str(self.port),
                "--token-file",
                str(token),
                *args,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.connection = self._connect()

    def _connect(self) -> Connection:
        end = time.monotonic() + START_LIMIT_S
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                made = Connection(self.port)
                made.wait_ready()
                return made
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the server did not start")
            time.sleep(0.02)

    def ask(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and decode its answer."""
        return json.loads(self.connection.post(tool, **arguments))

    def memory(self) -> int:
        """Return the server's peak resident memory in bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def stop(self) -> None:
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._state.cleanup()


@contextlib.contextmanager
def serving(root: pathlib.Path, *args: str, code: str = "") -> Iterator[Served]:
    """Serve a root for the time of a `with`."""
    server = Served(root, *args, code=code)
    try:
        yield server
    finally:
        server.stop()


def drained(*command: str, cwd: str | os.PathLike[str] | None = None) -> int:
    """Run a command with its output into a pipe that is read to its end; answer the number of bytes."""
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        buffer = memoryview(bytearray(1 << 20))
        total = 0
        while got := process.stdout.readinto(buffer):  # type: ignore[attr-defined]  # a BufferedReader has it
            total += got
    return total
