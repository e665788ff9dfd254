"""A disk without room, below `.kd` and all around: commands run, nothing of their output is lost, nothing hangs."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time
from collections.abc import Iterator

import pytest
from mounts import mount


def fill(folder: pathlib.Path) -> None:
    """Leave not a byte and not an inode free."""
    at = 0
    with contextlib.suppress(OSError):
        while True:
            (folder / f"filler{at}").write_bytes(b"x" * 4096)
            at += 1
    with contextlib.suppress(OSError), open(folder / "filler0", "ab") as file:
        while True:
            file.write(b"x")
            file.flush()
    with pytest.raises(OSError, match="No space"):
        (folder / "one-more").write_bytes(b"x")
    (folder / "one-more").unlink(missing_ok=True)


@pytest.fixture(params=["the root is full", ".kd is full", ".kd fills up later"])
def server(request: pytest.FixtureRequest, serve, tmp_path: pathlib.Path) -> Iterator:
    """A server whose root, or whose own directory, lies on a file system of 256 KiB without room."""
    options = ("-t", "tmpfs", "-o", "size=256k,nr_inodes=200", "tmpfs")
    with contextlib.ExitStack() as stack:
        if request.param == "the root is full":
            stack.enter_context(mount(tmp_path / "full", *options))
            root = full = tmp_path / "full"
        else:
            root, full = tmp_path, tmp_path / ".kd"
            stack.enter_context(mount(full, *options))
        if request.param != ".kd fills up later":
            fill(full)
        with contextlib.ExitStack() as servers:
            made = serve(root=root)
            servers.callback(made.stop)  # before its root is unmounted
            if request.param == ".kd fills up later":
                made.ok("exec", cmd="true")
                fill(full)
            yield made


def test_commands_run(server):
    """§7 output of every size, both streams, the exit code; the command's own trouble with the disk is its own."""
    answer = server.ok("exec", cmd="echo out; echo err >&2; exit 3")
    assert (answer["stdout"], answer["stderr"], answer["exit_code"]) == ("out\n", "err\n", 3)
    answer = server.ok("exec", cmd="head -c 3000000 /dev/zero | tr '\\0' a | wc -c; seq 100000 | tail -n 1")
    assert answer["stdout"] == "3000000\n100000\n"
    long = f": {'x' * 3_000_000}; echo long"
    status, answer = server.tool("exec", cmd=long)
    assert status == 400 or (status == 200 and answer["stdout"] == "long\n"), answer
    answer = server.ok("exec", cmd="echo text > .kd/home/f || echo > .kd/f; echo $?")
    assert answer["exit_code"] == 0
    assert "No space" in answer["stderr"] or "Permission denied" in answer["stderr"] or "Read-only" in answer["stderr"]


def test_processes_run_detached(server):
    """§7, §9 a detached process runs, is read and is killed, though nobody can note that it is to be started again."""
    name = server.ok("exec", cmd="for i in 1 2 3 4 5; do echo $i; sleep 0.05; done; exec sleep 600", detach=True)["id"]
    text, since = "", 0
    end = time.monotonic() + 20
    while text != "1\n2\n3\n4\n5\n":
        assert time.monotonic() < end, text
        answer = server.ok("process_output", id=name, since=since)
        text, since = text + answer["stdout"], answer["next"]
    assert server.ok("process_kill", id=name)["state"] == "exited"
    busy = [server.ok("exec", cmd=f"echo {at}; exit {at}", detach=True)["id"] for at in range(20)]
    for at, one in enumerate(busy):
        ended = server.ok("process_wait", id=one)
        assert (ended["stdout"], ended["exit_code"]) == (f"{at}\n", at)


def test_the_server_stops_and_starts(server):
    """§9 a stop ends what runs; the next start, still without room, answers."""
    server.ok("exec", cmd="sleep 600", detach=True)
    time.sleep(0.6)  # so old that the stop ends it with TERM
    assert server.stop() == 0
    server.start()
    assert server.ok("exec", cmd="echo again")["stdout"] == "again\n"


def test_watches_and_changes(server, request):
    """§8 what other programs do is told; a write that needs room is refused in one sentence, one that frees works."""
    watch = server.ok("watch", paths=["."])["id"]
    status, answer = server.tool("write", path="new", content="x" * 500_000)
    if request.node.callspec.params["server"] == "the root is full":
        assert (status, answer["error"]) == (500, "new: no space left on device")
    else:
        assert status == 200, answer
    made = server.root / "made"
    with contextlib.suppress(OSError):
        made.touch()
    os.chmod(server.root / "made" if made.exists() else server.root / "filler0", 0o600)
    told: list[dict[str, str]] = []
    end = time.monotonic() + 10
    while not told:
        assert time.monotonic() < end
        told += server.ok("watch_poll", id=watch, timeout_ms=500)["events"]
    assert not [row for row in told if row["path"].startswith((".kd", ".toolserver-"))]
