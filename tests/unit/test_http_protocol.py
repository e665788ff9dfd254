"""What the protocol looks at before it refuses a request, counted; and the uvicorn that it is written for."""

from __future__ import annotations

import asyncio
import logging
import pathlib
import tomllib
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from toolserver.http import server
from toolserver.http.protocol import Protocol
from toolserver.http.unauthenticated import Unauthenticated


class Sink(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += data

    def write_eof(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...
    def is_closing(self) -> bool:
        return False


class Counting(Protocol):
    """Counts the header fields that the parser hands over."""

    seen = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self.seen += 1
        super().on_header(name, value)


@pytest.mark.parametrize("fields", [200, 250_000])
def test_header_fields_looked_at(fields: int) -> None:
    """One more than may be, however many come in one read."""

    async def app(scope: object, receive: object, send: object) -> None:
        raise AssertionError("the request must not get this far")

    async def run() -> tuple[int, bytes]:
        config = uvicorn.Config(app, log_config=None)
        loop, sink = asyncio.get_running_loop(), Sink()
        protocol = Counting(config, ServerState(), {}, loop, unauthenticated=Unauthenticated())
        protocol.connection_made(sink)
        protocol.data_received(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * fields + b"\r\n")
        protocol.connection_lost(None)
        return protocol.seen, sink.written

    seen, written = asyncio.run(run())
    assert seen == 101
    assert written.startswith(b"HTTP/1.1 431 ")


def test_the_pin_of_uvicorn_is_the_tested_version() -> None:
    project = tomllib.loads((pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    major, minor = map(int, server.TESTED_UVICORN.split("."))
    assert f"uvicorn>={major}.{minor},<{major}.{minor + 1}" in project["dependencies"]


@pytest.mark.parametrize(
    ("installed", "warned"),
    [("0.55.0", False), ("0.55", False), ("0.55.9", False), ("0.550.0", True), ("0.56.0", True), ("1.0.0", True)],
)
def test_another_uvicorn_is_told_at_the_start(
    installed: str, warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(uvicorn, "__version__", installed)
    monkeypatch.setattr(logging.getLogger("toolserver"), "propagate", True)
    server.warn_of_untested_uvicorn()
    facts = [record.__dict__["facts"] for record in caplog.records]
    assert facts == ([{"installed": installed, "tested": "0.55"}] if warned else [])
