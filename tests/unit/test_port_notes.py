"""The note on a port that is taken: the messages of many servers, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from toolserver.processes.command import Command, Terminal
from toolserver.processes.output import Output
from toolserver.processes.port_notes import port_note


class Exited:
    """What the note looks at."""

    def __init__(self, command: Command, printed: bytes) -> None:
        self.command = command
        self.stdout, self.stderr = Output(None), Output(None)
        (self.stderr if command.terminal is None else self.stdout).ring.append(printed)


def note(cmd: str | tuple[str, ...], printed: str, env: dict[str, str] | None = None, **more: Any) -> str | None:
    return port_note(Exited(Command(cmd, env or {}, **more), printed.encode()))


@pytest.mark.parametrize(
    "message",
    [
        "Error: listen EADDRINUSE: address already in use :::3000",
        "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000",
        "  code: 'EADDRINUSE',\n  port: 3000",
        "listen tcp :3000: bind: address already in use",
        "2026/01/01 12:34:56 listen tcp 0.0.0.0:3000: bind: address already in use",
        "[Errno 98] error while attempting to bind on address ('127.0.0.1', 3000): address already in use",
        "nginx: [emerg] bind() to 0.0.0.0:3000 failed (98: Address already in use)",
        "Error: Port 3000 is already in use",
        "Port 3000 is in use by another program.",
        "Something is already running on port 3000.",
        "bind [::]:3000: Address already in use",
        "failed to listen on localhost:3000: Address already in use (os error 98)",
    ],
)
def test_the_port_of_the_message(message: str) -> None:
    assert note("serve --port 4000", f"starting\n{message}\n") in ("port 3000 in use", _without(message))


def _without(message: str) -> str:
    """The port stands on another line than the word there, so the command's is the best that is known."""
    return "port 4000 in use" if "\n" in message else "port 3000 in use"


@pytest.mark.parametrize(
    "cmd",
    [
        "serve --port 4000", "serve --port=4000", "serve -p 4000", "PORT=4000 npm run dev", "serve --http-port 4000",
        "uvicorn app:app --host 0.0.0.0 --port '4000'", "python3 -m http.server 4000", "serve localhost:4000",
        "serve :4000", "php -S 0.0.0.0:4000", ("serve", "--port", "4000"),
    ],
)  # fmt: skip
def test_the_port_of_the_command(cmd: str | tuple[str, ...]) -> None:
    assert note(cmd, "OSError: [Errno 98] Address already in use\n") == "port 4000 in use"


def test_the_port_of_the_environment() -> None:
    assert note("npm run dev", "Address already in use\n", {"PORT": "4000"}) == "port 4000 in use"


def test_a_terminal_has_one_stream() -> None:
    assert note("serve", "listen EADDRINUSE :::5000\r\n", terminal=Terminal()) == "port 5000 in use"


@pytest.mark.parametrize(
    ("cmd", "message"),
    [
        ("serve --port 4000", "boom\n"), ("serve", "Address already in use\n"), ("serve --port 4000", ""),
        ("serve", "[Errno 98] Address already in use\n"), ("serve --port 99999", "Address already in use\n"),
    ],
)  # fmt: skip
def test_nothing_is_made_up(cmd: str, message: str) -> None:
    assert note(cmd, message) is None
