"""Memory of a real server under large calls: bounded while they run, given back afterwards."""

from __future__ import annotations

import contextlib
import json
import pathlib
import time
from collections.abc import Callable

import pytest
from wire import WAIT_S, Wire, post

MIB = 1024 * 1024
LINE = "x" * 99 + "\n"
TEXT = LINE * 104_000
"""10 MB, under the limit of a file."""


def memory(server: object, field: str) -> int:
    """Return VmRSS or VmHWM of a server in MiB."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()  # type: ignore[attr-defined]
    return int(status.split(f"{field}:")[1].split()[0]) // 1024


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not met():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def large(serve: Callable[..., object]) -> object:
    server = serve()
    server.put("f", "mark 0\n" + TEXT)
    server.put("small", "s\n")
    server.ok("read", path="f", limit=1)
    return server


READ = post("/tools/read", json.dumps({"paths": ["f"] * 50, "limit": 10**9}).encode())


def test_clients_that_leave(large):
    """20 calls whose clients have left cost nothing more: their memory goes back, and it never adds up."""
    before = memory(large, "VmRSS")
    for _ in range(20):
        with Wire(large.port) as wire:
            wire.send(READ)
    until(lambda: large.log_text().count('"tool": "read"') + large.log_text().count('"tool":"read"') >= 21)
    until(lambda: memory(large, "VmRSS") - before < 64)
    assert memory(large, "VmHWM") - before < 400


def test_clients_that_do_not_read(large):
    """They share what there is; small calls go on; the memory goes back when they leave."""
    before = memory(large, "VmRSS")
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(large.port)) for _ in range(12)]
        for wire in wires:
            wire.send(READ)
        until(lambda: sum(wire.answered() for wire in wires) >= 3)
        for _ in range(20):
            assert large.ok("read", path="small")["content"] == "1\ts"
        assert memory(large, "VmHWM") - before < 400
        # those that wait come to their turn as the others are read
        for wire in wires:
            answer = wire.answer()
            assert answer.status == 200
            assert 64 * MIB - len(TEXT) < len(answer.body) < 66 * MIB
    until(lambda: memory(large, "VmRSS") - before < 64)
    assert memory(large, "VmHWM") - before < 400


def test_memory_goes_back(large):
    """200 large reads, edits, patches and greps leave no more than 64 MiB."""
    before = memory(large, "VmRSS")
    with Wire(large.port) as wire:

        def call(tool: str, **args: object) -> None:
            wire.send(post(f"/tools/{tool}", json.dumps(args).encode()))
            answer = wire.answer()
            assert answer.status == 200, answer.body[:300]

        for at in range(0, 100, 2):
            call("read", path="f", limit=10**9)
            call("edit", path="f", edits=[{"old": f"mark {at}\n", "new": f"mark {at + 1}\n"}])
            diff = f"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-mark {at + 1}\n+mark {at + 2}\n {LINE}"
            call("patch", diff=diff)
            call("grep", pattern="x{90}")
    until(lambda: memory(large, "VmRSS") - before < 64)


def test_calls_that_fail(large):
    """An error keeps neither the file it was about nor what was made of it."""
    before = memory(large, "VmRSS")
    for _ in range(12):
        large.fails(500, "edit", path="f", edits=[{"old": "mark 0", "new": "mark 1"}, {"old": "none", "new": "x"}])
        large.fails(500, "patch", diff=f"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-mark 1\n+mark 2\n {LINE}")
    until(lambda: memory(large, "VmRSS") - before < 32)
