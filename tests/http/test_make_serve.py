"""`make serve`: nothing of that make reaches the commands that the server runs."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from commands import eventually
from kit import free_port

PROJECT = pathlib.Path(__file__).parents[2]
TOKEN = "of-make-serve"
RULES = "ROOT = here\nARGS = these\nBIN = there\nall:\n\t@echo $(ROOT) $(ARGS) $(BIN) $(MAKELEVEL) [$(MAKEFLAGS)]\n"


def answers(http: httpx.Client) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return http.get("/healthz").status_code == 200
    return False


@pytest.fixture(scope="module", params=["command line", "environment"])
def http(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server that make has started, with its variables given in either way."""
    where = tmp_path_factory.mktemp("make")
    root, token = where / "ws", where / "token"
    root.mkdir()
    (root / "Makefile").write_text(RULES)
    token.write_text(TOKEN)
    port = free_port()
    given = {
        "ROOT": str(root),
        "ARGS": f"--port {port} --token-file {token}",
        "BIN": str(pathlib.Path(sys.executable).parent),
    }
    line = [f"{name}={value}" for name, value in given.items()] if request.param == "command line" else ["-e"]
    env = os.environ | {"OF_THE_USER": "kept", "MAKEFLAGS": "", **({} if line != ["-e"] else given)}
    server = subprocess.Popen(["make", "-s", "-o", "build", "serve", *line], cwd=PROJECT, env=env)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            eventually(lambda: answers(client))
            yield client
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def run(http: httpx.Client, cmd: str) -> Any:
    answer = http.post("/tools/exec", json={"cmd": cmd}).json()
    assert answer["stderr"] == ""
    return answer["stdout"]


def test_a_makefile_has_its_own_variables(http: httpx.Client) -> None:
    assert run(http, "make") == "here these there 0 []\n"


def test_the_environment_is_the_users(http: httpx.Client) -> None:
    names = {line.partition("=")[0] for line in run(http, "env").splitlines()}
    assert "OF_THE_USER" in names
    assert not {name for name in names if name.startswith(("MAKE", "MFLAGS", "GNUMAKE")) or name in ("ROOT", "ARGS")}
