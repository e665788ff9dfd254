"""Searches of a running server: slow ones hold up nobody, stop when nobody waits, and leave nothing behind."""

from __future__ import annotations

import json
import pathlib
import random
import signal
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kit import Server

SLOW = r"(\pL.{0,20}){12}(\d\pL){5}"
"""Leaves RE2's fast path on words in no order: well below a megabyte a second."""
LIMIT_S = 60.0


def words(count: int) -> str:
    rand = random.Random(3)
    known = ["some", "words", "of", "text,", "and", "others;", "hello", "world", "again", "äöü"]
    return "".join(rand.choice(known) + rand.choice("      \n") for _ in range(count))


def ask(server: Server, **args: object) -> socket.socket:
    """Send a grep and leave its answer where it is."""
    body = json.dumps(args).encode()
    head = (
        f"POST /tools/grep HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\nContent-Length: {len(body)}"
    )
    client = socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S)
    client.sendall(head.encode() + b"\r\n\r\n" + body)
    return client


def ticks(server: Server) -> int:
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def until(what: Callable[[], bool]) -> None:
    """Ask again and again, until it holds."""
    end = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def busy(server: Server) -> None:
    """Wait until a search is at work."""
    before = ticks(server)
    until(lambda: ticks(server) > before + 10)


@pytest.fixture
def library(server: Server) -> Server:
    """A server on 30 MB of text."""
    text = words(100_000)
    for number in range(50):
        server.put(f"many/{number:02}.txt", text)
    server.put("few.txt", "a needle\n")
    return server


def test_a_slow_search_holds_up_nobody(library: Server) -> None:
    """It is far from its end when others have long been answered; and it ends when its client leaves."""
    said = len(library.log_text())
    with ask(library, pattern=SLOW, mode="count") as slow, ask(library, pattern=SLOW, mode="count"):
        busy(library)
        for _ in range(5):
            assert library.ok("grep", pattern="needle", cwd="few.txt", mode="files")["files"] == ["few.txt"]
            assert library.ok("grep", pattern="n[e]+dle", mode="files", glob="few*")["files"] == ["few.txt"]
            assert library.ok("glob", pattern="few*")["paths"] == ["few.txt"]
        slow.settimeout(0.001)
        with pytest.raises(TimeoutError):
            slow.recv(1)

    def at_rest() -> bool:
        before = ticks(library)
        time.sleep(0.3)
        return ticks(library) - before <= 1

    until(at_rest)
    for line in library.log_text()[said:].splitlines():
        assert json.loads(line)["level"] != "error", line


def test_a_stop_waits_for_no_search(serve: Callable[..., Server]) -> None:
    server = serve()
    for number in range(40):
        server.put(f"{number}.txt", words(20_000))
    with ask(server, pattern=SLOW):
        busy(server)
        began = time.monotonic()
        assert server.stop(signal.SIGTERM) == 0
        assert time.monotonic() - began < 4, "as long as a call under way is waited for"


def test_backtracking_has_no_chance(server: Server) -> None:
    server.put("f", "a" * 40 + "b\n" + "a" * 40 + "\n")
    assert [match["line"] for match in server.ok("grep", pattern="(a+)+$")["matches"]] == [2]


def test_many_searches_at_once(library: Server) -> None:
    """More than may be under way: all are answered, in their turn."""
    clients = [ask(library, pattern="w[o]rld", mode="count", glob=f"{number % 5}*.txt") for number in range(40)]
    for client in clients:
        with client:
            answer = client.makefile("rb")
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
            size = next(int(line[15:]) for line in answer if line.lower().startswith(b"content-length:"))
            while answer.readline() != b"\r\n":
                pass
            counts = json.loads(answer.read(size))["counts"]
            answer.close()
            assert len(counts) == 10
