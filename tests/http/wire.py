"""Speaks HTTP byte by byte to a server of the conformance kit, and waits for its log."""

from __future__ import annotations

import json
import os
import pathlib
import select
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kit import TOKEN, program

if TYPE_CHECKING:
    from kit import Server

WAIT_S = 20.0


def head(method: str, target: str, *headers: str | bytes, token: bool = True) -> bytes:
    """Write the head of a request."""
    lines = [f"{method} {target} HTTP/1.1".encode(), b"Host: localhost"]
    lines += [line.encode() if isinstance(line, str) else line for line in headers]
    if token:
        lines.append(f"Authorization: Bearer {TOKEN}".encode())
    return b"\r\n".join([*lines, b"", b""])


def post(target: str, body: bytes, *headers: str | bytes) -> bytes:
    """Write a whole POST with the token."""
    return head("POST", target, f"Content-Length: {len(body)}", *headers) + body


@dataclass
class Answered:
    """An answer taken apart; names of headers in lower case, all their values."""

    status: int
    headers: dict[str, list[str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        assert set(self.json) == {"error"}
        return str(self.json["error"])


class Wire:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answered(self) -> bool:
        """Whether something has come already."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def answer(self, *, bodyless: bool = False) -> Answered:
        """Read one answer with a Content-Length (or none, for 204)."""
        status = int(self.file.readline().split()[1])
        headers: dict[str, list[str]] = {}
        while line := self.file.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers.setdefault(name.lower(), []).append(value.strip())
        size = 0 if bodyless else int(headers.get("content-length", ["0"])[0])
        return Answered(status, headers, self.file.read(size))

    def ends(self) -> bool:
        """Whether the server closes the connection without another byte."""
        return self.file.read(1) == b""


def ask(server: Server, *pieces: bytes) -> Answered:
    """Send pieces on a connection of their own; answer what comes back."""
    with Wire(server.port) as wire:
        for piece in pieces:
            wire.send(piece)
        return wire.answer()


def log_lines(server: Server, word: str) -> list[dict[str, Any]]:
    """Wait for lines of the log that hold a word; answer them parsed."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        lines = [line for line in server.log_text().splitlines() if word in line]
        if lines:
            return [json.loads(line) for line in lines]
        time.sleep(0.01)
    raise AssertionError(f"no line with {word!r} in:\n{server.log_text()}")


def run(
    *words: str | bytes, env: dict[str, str] | None = None, cwd: pathlib.Path | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of the program to its end."""
    return subprocess.run(
        [*program(), *words],
        input=stdin,
        capture_output=True,
        timeout=WAIT_S,
        cwd=cwd,
        env={**os.environ, **(env or {})},
    )
