"""A command gets descriptors 0, 1 and 2 and no other, whatever the server was started with."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from commands import detach, eventually, wait
from kit import program, serving

if TYPE_CHECKING:
    from kit import Server

INHERITED = (3, 4, 5, 7, 8, 9, 10, 11, 63, 200)
STARTER = f"""
import os, sys
fd = os.open("/", os.O_RDONLY)
for number in {INHERITED}:
    os.dup2(fd, number, inheritable=True)
os.execvp(sys.argv[1], sys.argv[1:])
"""
LIST = "ls -l /proc/self/fd"
LONG = f"# {'x' * 6000}\n{LIST}"


@pytest.fixture(scope="module", params=["auto", "off"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that has inherited descriptors of the root directory from its starter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLSERVER_BIN", shlex.join([sys.executable, "-I", "-c", STARTER, *program()]))
        with serving("--capsule", request.param) as started:
            yield started


def numbers(listing: str) -> list[int]:
    """Return the descriptors of a listing, without the one that `ls` reads the directory through."""
    found = re.findall(r" (\d+) -> (.*)", listing)
    assert len(found) > 3, listing
    return [int(number) for number, target in found if not re.fullmatch(r"/proc/\d+/fd\r?", target)]


def test_the_server_was_lent_some(server: Server) -> None:
    """Without this the tests below could not fail."""
    assert {os.readlink(f"/proc/{server.process.pid}/fd/{number}") for number in INHERITED[-2:]} == {"/"}


@pytest.mark.parametrize("cmd", [LIST, LONG, LIST.split()], ids=["shell", "long script", "argv"])
@pytest.mark.parametrize("pty", [False, True], ids=["pipes", "pty"])
def test_of_a_job(server: Server, cmd: str | list[str], pty: bool) -> None:
    assert numbers(server.ok("exec", cmd=cmd, pty=pty)["stdout"]) == [0, 1, 2]


@pytest.mark.parametrize("cmd", [LIST, LONG, LIST.split()], ids=["shell", "long script", "argv"])
@pytest.mark.parametrize("pty", [False, True], ids=["pipes", "pty"])
def test_of_a_detached_process(server: Server, cmd: str | list[str], pty: bool) -> None:
    name = detach(server, cmd, pty=pty)
    assert numbers(wait(server, name, timeout_ms=20000)["stdout"]) == [0, 1, 2]


@pytest.mark.parametrize("cmd", [LIST, LONG], ids=["shell", "long script"])
def test_of_a_watch(server: Server, cmd: str) -> None:
    name = server.ok("watch", cmd=cmd)["id"]
    eventually(lambda: server.ok("watch_poll", id=name)["state"] == "stopped")
    lines = [event["line"] for event in server.ok("watch_poll", id=name)["events"] if "line" in event]
    assert numbers("\n".join(lines)) == [0, 1, 2]
