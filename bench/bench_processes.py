"""exec, its output and its streams over HTTP, beside what a shell or a bare Python does with the same command."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import inputs
import pytest
from serving import TOKEN, Connection, Served, serving
from sidebyside import Action, clocked, record, side_by_side

from toolserver._fast.ring import Ring
from toolserver.processes.capsule.bubblewrap import Capsule, blank_descriptors
from toolserver.processes.capsule.view import Settings
from toolserver.processes.working_directory import WorkingDirectory

MIB = 1024 * 1024
PIECE = 64 * 1024
BATCH = 20
"""Commands that one timing runs, one after another."""
IDLE_S = 60
MORE_MEMORY = "x = bytearray(b'x') * (1 << 30); from toolserver.cli import main; main()"
BARE = f"""
import subprocess, time
start = time.perf_counter()
for _ in range({BATCH}): subprocess.run(["sh", "-c", "true"])
print(time.perf_counter() - start)
"""


@pytest.fixture
def root() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-") as made:
        yield pathlib.Path(made).resolve()


def batch(server: Served) -> None:
    for _ in range(BATCH):
        server.connection.post("exec", cmd="true")


def test_exec_true(benchmark: Any, root: pathlib.Path) -> None:
    """`true` as a shell command, unwrapped; the anchor is timed inside a bare Python."""
    own, theirs = [], []
    with serving(root, "--capsule", "off") as server:
        batch(server)
        for _ in range(15):
            done = subprocess.run([sys.executable, "-I", "-c", BARE], check=True, capture_output=True, text=True)
            theirs.append(float(done.stdout) / BATCH)
            own.append(clocked(lambda: batch(server)) / BATCH)
        benchmark.group = "exec of true"
        benchmark.pedantic(lambda: server.connection.post("exec", cmd="true"), rounds=20)
    record(benchmark, own, {"subprocess.run in a bare Python": theirs}, bound=1.6)


def test_exec_true_in_the_capsule(benchmark: Any, root: pathlib.Path) -> None:
    """The same in the capsule; the anchor is its bubblewrap command line in a loop of a shell."""
    fd = os.open(root, os.O_PATH)
    directory = WorkingDirectory("main", os.fsencode(root), b"", fd)
    capsule = Capsule(Settings())
    layout = capsule.view.layout(directory)
    argv = capsule.argv(layout, directory, terminal=False, status=False)
    os.close(fd)
    blank = " ".join(f"{number}</dev/null" for number in blank_descriptors(layout))
    loop = f'i=0; while [ $i -lt {BATCH} ]; do "$@" {blank}; i=$((i+1)); done'
    command = ["sh", "-c", loop, "sh", *map(os.fsdecode, argv), "sh", "-c", "true"]
    benchmark.group = "exec of true"
    with serving(root, "--capsule", "require") as server:
        side_by_side(
            benchmark,
            lambda: batch(server),
            {"the same bwrap from a shell": lambda: subprocess.run(command, check=True)},
            rounds=15,
            bound=1.3,
            facts={"commands a timing": BATCH},
        )


def test_exec_true_in_a_large_server(benchmark: Any, root: pathlib.Path) -> None:
    """The same unwrapped in a server with 1 GiB of resident memory, against one without."""
    with serving(root, "--capsule", "off") as small, serving(root, "--capsule", "off", code=MORE_MEMORY) as large:
        assert large.memory() > 1 << 30
        benchmark.group = "exec of true"
        side_by_side(
            benchmark,
            lambda: batch(large),
            {"a server at its start": lambda: batch(small)},
            rounds=15,
            bound=1.2,
            facts={"commands a timing": BATCH, "resident": large.memory()},
        )


def test_1_gib_of_output(benchmark: Any, root: pathlib.Path) -> None:
    """1 GiB through one exec, against the same command into cat; all on one core, see `on_one_core`."""
    with on_one_core():
        output(benchmark, root, rounds=5, bound=1.5)


def test_1_gib_of_output_on_all_cores(benchmark: Any, root: pathlib.Path) -> None:
    """The same where the kernel puts it: either takes 0.15 s or 0.5 s, by whether writer and reader share a core."""
    output(benchmark, root, rounds=15, bound=None)


def output(benchmark: Any, root: pathlib.Path, *, rounds: int, bound: float | None) -> None:
    command = "head -c 1073741824 /dev/zero"
    benchmark.group = "output"
    with serving(root, "--capsule", "off") as server:
        server.connection.post("exec", cmd="true")
        before = server.memory()
        side_by_side(
            benchmark,
            lambda: server.connection.post("exec", cmd=command, quiet=True, soft_ms=600_000),
            {"into cat": lambda: subprocess.run(["sh", "-c", f"{command} | cat >/dev/null"], check=True)},
            rounds=rounds,
            bound=bound,
        )
        grown = server.memory() - before
    benchmark.extra_info["facts"] = {"the server grew by": grown, "32 MiB holds": grown <= 32 * MIB}


def test_ring_append(benchmark: Any) -> None:
    """The ring alone, 64 KiB at a time, against a copy of the same bytes into a buffer of the ring's size."""
    data = os.urandom(PIECE)
    ring = Ring(4 * MIB)
    buffer = memoryview(bytearray(4 * MIB))

    def append() -> None:
        for _ in range(2048):
            ring.append(data)

    def copy() -> None:
        for number in range(2048):
            at = number % 64 * PIECE
            buffer[at : at + PIECE] = data

    benchmark.group = "output"
    side_by_side(benchmark, append, {"memcpy": copy}, rounds=25, bound=2.0)


def test_line_to_frame(benchmark: Any, root: pathlib.Path) -> None:
    """From a line that a process is given to its frame on an open stream, on one core, against a pipe in asyncio."""
    with on_one_core():
        line_to_frame(benchmark, root, bound=3.0)


def test_line_to_frame_on_all_cores(benchmark: Any, root: pathlib.Path) -> None:
    """The same where the kernel puts it: both vary by what it takes to wake a core."""
    line_to_frame(benchmark, root, bound=None)


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process and all that it starts on one core.

    Else the kernel uses a second one for the one chain of processes and not for the other, as it happens to place them,
    and to wake a core, or to share a pipe's pages between two, takes longer than all that is compared.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def line_to_frame(benchmark: Any, root: pathlib.Path, *, bound: float | None) -> None:
    os.mkfifo(root / "ours")
    os.mkfifo(root / "theirs")
    with serving(root, "--capsule", "off") as server:
        name = server.ask("exec", cmd="exec cat ours", detach=True)["id"]
        into = os.open(root / "ours", os.O_WRONLY)
        with upgraded(server.port, f"/stream/process/{name}") as stream:

            def ours() -> None:
                os.write(into, b"a line\n")
                assert b'"data":"a line' in stream.recv(4096)

            own, theirs = asyncio.run(beside_a_pipe(root, ours))
            benchmark.group = "output"
            benchmark.pedantic(ours, rounds=50)
        os.close(into)
    record(benchmark, own, {"a pipe in asyncio": theirs}, bound=bound)


@contextlib.contextmanager
def upgraded(port: int, path: str) -> Iterator[socket.socket]:
    """Open a WebSocket as a bare socket, so that no client library is timed: a frame is one `recv`."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        answer = connection.recv(4096)
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        yield connection


async def beside_a_pipe(root: pathlib.Path, ours: Action) -> tuple[list[float], list[float]]:
    """Return the seconds of ours and of a pipe that asyncio reads, in turn."""
    process = await asyncio.create_subprocess_exec("cat", str(root / "theirs"), stdout=subprocess.PIPE)
    into = await asyncio.to_thread(os.open, root / "theirs", os.O_WRONLY)
    assert process.stdout
    own, theirs = [], []
    for _ in range(600):
        own.append(clocked(ours))
        start = time.perf_counter()
        os.write(into, b"a line\n")
        await process.stdout.readline()
        theirs.append(time.perf_counter() - start)
    os.close(into)
    await process.wait()
    return own[100:], theirs[100:]


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def reads(connection: Connection, seconds: float) -> list[float]:
    end = time.perf_counter() + seconds
    out = []
    while time.perf_counter() < end:
        out.append(clocked(lambda: connection.post("read", path="f.c")))
    return out


def test_reads_beside_printers(benchmark: Any, root: pathlib.Path) -> None:
    """The p99 of a 2 kB read while 32 processes print at full speed and 100 streams read, against when idle."""
    (root / "f.c").write_bytes(inputs.source_text(2000, seed=2))
    with serving(root, "--capsule", "off") as server:
        reads(server.connection, 1.0)
        idle = reads(server.connection, 8.0)
        names = [server.ask("exec", cmd="exec yes", detach=True)["id"] for _ in range(32)]
        stop = threading.Event()
        readers = [threading.Thread(target=follow, args=(server.port, names[n % 32], stop)) for n in range(100)]
        for reader in readers:
            reader.start()
        time.sleep(2)
        busy = reads(server.connection, 15.0)
        stop.set()
        for name in names:
            server.connection.post("process_kill", id=name, signal="KILL")
        for reader in readers:
            reader.join()
    benchmark.group = "output"
    benchmark.pedantic(lambda: None, rounds=1)
    record(benchmark, [p99(busy)], {"p99 when idle": [p99(idle)]}, bound=10.0, facts={"reads": len(busy)})


def follow(port: int, name: str, stop: threading.Event) -> None:
    """Read the stream of a process until told to stop, in C as far as can be: a raw socket, its bytes thrown away."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(
            f"GET /stream/process/{name}/lines HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        buffer = bytearray(1 << 20)
        while not stop.is_set() and connection.recv_into(buffer):
            pass


def test_idle(benchmark: Any, root: pathlib.Path) -> None:
    """System calls in a minute of an idle server with 32 sleeping processes and 32 path watches."""
    benchmark.group = "idle"
    with serving(root, "--capsule", "off") as server:
        for _ in range(32):
            server.ask("exec", cmd="exec sleep 1000", detach=True)
            server.ask("watch", paths=["."])
        time.sleep(1)
        with tempfile.NamedTemporaryFile("r") as log:
            watch = subprocess.Popen(
                ["strace", "-f", "-o", log.name, "-p", str(server.process.pid)], stderr=subprocess.DEVNULL
            )
            benchmark.pedantic(lambda: time.sleep(IDLE_S), rounds=1)
            watch.send_signal(signal.SIGINT)
            watch.wait()
            calls = [line for line in log.read().splitlines() if "(" in line and "strace" not in line]
        calls = [
            line for line in calls if "<unfinished" not in line and "resumed" not in line and "<detached" not in line
        ]
    benchmark.extra_info["facts"] = {"system calls": len(calls), "none holds": len(calls) == 0}
