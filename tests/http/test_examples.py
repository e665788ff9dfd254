"""The clients in `examples/`, as they stand there, against a real server."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kit import Server

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
CLIENTS = {"client.py": [sys.executable, "-I", str(EXAMPLES / "client.py")], "client.sh": [str(EXAMPLES / "client.sh")]}


def call(client: str, server: Server, tool: str, **arguments: Any) -> subprocess.CompletedProcess[str]:
    given = [server.url, str(server.token_file), tool, json.dumps(arguments)]
    return subprocess.run([*CLIENTS[client], *given], capture_output=True, text=True)


def test_all_are_run() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == CLIENTS.keys()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_call(client: str, server: Server) -> None:
    """A text with quotes, a line end and other letters arrives as it is, and the answer is printed."""
    content = 'say "hällo"\n@$(true)'
    done = call(client, server, "write", path="a b.txt", content=content)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"path": "a b.txt", "bytes": len(content.encode()), "created": True}
    assert (server.root / "a b.txt").read_text() == content


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_call(client: str, server: Server) -> None:
    """A call that is refused ends the client with another status."""
    done = call(client, server, "read", path="missing")
    assert done.returncode not in (0, 2)
    assert "500" in done.stderr
