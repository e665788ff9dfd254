"""`toolserver call`: one call of a tool on a running server (specification, section 1)."""

from __future__ import annotations

import http.client
import json
import os
import socket
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from toolserver.state.directory import own_token_file, platform_token_file

CONNECT_S = 10.0
"""Seconds to wait for a connection; an answer may take as long as its tool does."""


class CallError(Exception):
    """The call was not answered with 200. The text says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server is, and the file of its token."""

    host: str
    port: int
    uds: str
    token_file: str

    @property
    def name(self) -> str:
        return self.uds or f"{self.host}:{self.port}"


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=CONNECT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def find_token_file() -> str:
    """Return the token file that `serve` of the current directory, or of one above it, uses. Raises CallError."""
    if (found := platform_token_file()) is not None:
        return found
    directory = os.path.realpath(os.getcwdb())
    while True:
        path = own_token_file(directory)
        if os.path.exists(path):
            return path
        above = os.path.dirname(directory)
        if above == directory:
            raise CallError("no server has made a token for this directory or one above it; --token-file names one")
        directory = above


def read_token(path: str) -> bytes:
    """Return the token in a file. Raises CallError, whose text never holds any of it."""
    try:
        with open(path, "rb") as file:
            token = file.read().strip()
    except OSError as error:
        raise CallError(f"cannot read the token file {path}: {error.strerror}") from error
    if not token:
        raise CallError(f"the token file {path} is empty")
    if any(byte < 0x20 or byte == 0x7F for byte in token):
        raise CallError(f"the token file {path} holds line breaks or control characters inside its token")
    return token


def call(target: Target, tool: str, body: bytes, tree: str) -> bytes:
    """Call a tool; return the body of the 200. Raises CallError."""
    token = read_token(target.token_file or find_token_file())
    connection: http.client.HTTPConnection
    if target.uds:
        connection = UnixConnection(target.uds)
    else:
        connection = http.client.HTTPConnection(target.host, target.port, timeout=CONNECT_S)
    url = f"/tools/{quote(tool, safe='')}" + (f"?{urlencode({'tree': tree})}" if tree else "")
    try:
        connection.connect()
        connection.sock.settimeout(None)
        headers: dict[str, str | bytes] = {"Authorization": b"Bearer " + token, "Content-Type": "application/json"}
        connection.request("POST", url, body, headers)
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CallError(f"no answer from {target.name}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        connection.close()
    if status != 200:
        raise CallError(_error_in(text) or f"{target.name} answered {status}")
    return text


def _error_in(body: bytes) -> str:
    try:
        found = json.loads(body)
    except ValueError:
        return ""
    text = found.get("error", "") if isinstance(found, dict) else ""
    return text if isinstance(text, str) else ""
