"""How long heavy calls hold up others: pings /healthz beside each and prints the longest wait for an answer.

python bench/pauses.py [--check] [NAME ...]

Each call runs several times; its pause is the longest wait of its best run, since another program on the machine can
only make a wait longer. `--check` fails where a pause is over the bound.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pathlib
import random
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

from serving import TOKEN, Connection, Served, serving

BOUND_MS = 50.0
RUNS = 3
PING_EVERY_S = 0.0005
MIB = 1024 * 1024


# ------------------------------------------------------------------------------------------------------- pinging


def ping(port: int, pipe: Pipe) -> None:
    """In a process of its own: ping until told to stop; answer the longest wait in seconds and the number of pings."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    while pipe.recv():
        worst, pings = 0.0, 0
        pipe.send(None)
        while True:
            start = time.perf_counter()
            connection.sendall(request)
            while not connection.recv(65536).endswith(b"}"):
                pass
            worst = max(worst, time.perf_counter() - start)
            pings += 1
            if pipe.poll():
                break
            time.sleep(PING_EVERY_S)
        pipe.recv()
        pipe.send((worst, pings))


class Pinger:
    """Pings a server while something else runs."""

    def __init__(self, port: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=ping, args=(port, other))
        self._process.start()

    def beside(self, action: Callable[[], object]) -> tuple[float, float]:
        """Return the longest wait for a ping while `action` ran, and the time that it took, in seconds."""
        self._pipe.send(True)
        self._pipe.recv()
        start = time.perf_counter()
        try:
            action()
        finally:
            took = time.perf_counter() - start
            self._pipe.send(True)
            worst, _ = self._pipe.recv()
        return worst, took

    def stop(self) -> None:
        self._pipe.send(False)
        self._process.join()


# --------------------------------------------------------------------------------------------------------- calls


@dataclass
class Heavy:
    """A call: `prepare` makes its files in the root, untimed, before every run; `body` is what is posted."""

    tool: str
    body: Callable[[], bytes]
    prepare: Callable[[pathlib.Path], None] = lambda root: None
    status: int = 200


def arguments(**members: object) -> Callable[[], bytes]:
    return lambda: json.dumps(members).encode()


def text(size: int) -> str:
    """Lines of words, the same at every run."""
    words = random.Random(7).choices(["alpha", "beta", "gamma", "delta", "int", "return"], k=size // 5)
    return "\n".join(" ".join(words[at : at + 9]) for at in range(0, len(words), 9))[:size]


def big_files(root: pathlib.Path) -> None:
    content = text(10 * MIB - 100)
    for number in range(50):
        (root / f"big{number}").write_text(content)


def big_links(root: pathlib.Path) -> None:
    (root / "big0").write_text(text(10 * MIB))
    for number in range(1, 50):
        (root / f"big{number}").hardlink_to(root / "big0")


def numbered(root: pathlib.Path) -> None:
    (root / "numbered").write_text("".join(f"line {number:07d} of it all\n" for number in range(400_000)))


def one_line(root: pathlib.Path) -> None:
    (root / "line").write_text("".join(random.Random(7).choices("ab", k=9 * MIB)))


def many_files(root: pathlib.Path) -> None:
    for number in range(20_000):
        folder = root / f"d{number % 200}"
        folder.mkdir(exist_ok=True)
        (folder / f"file{number}.txt").write_text(f"int a{number} = {number};\n" * 20)


def deep_folders(root: pathlib.Path) -> None:
    at = root
    for _ in range(500):
        at /= "deep"
    at.mkdir(parents=True)


def patched_files(root: pathlib.Path) -> None:
    for number in range(1000):
        (root / f"p{number}").write_text("one\ntwo\nthree\n")


def patch() -> bytes:
    part = "--- a/p{0}\n+++ b/p{0}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    return json.dumps({"diff": "".join(part.format(number) for number in range(1000))}).encode()


def picture(root: pathlib.Path) -> None:
    from PIL import Image

    Image.effect_noise((6000, 6000), 50).convert("RGB").save(root / "picture.jpg", quality=30)


BIG = [f"big{number}" for number in range(50)]
CALLS: dict[str, Heavy] = {
    "read 50 files of 10 MiB": Heavy("read", arguments(paths=BIG), big_links),
    "read an image of 36 Mpixel": Heavy("read", arguments(path="picture.jpg"), picture),
    "write 10 MiB": Heavy("write", arguments(path="w", content=text(10 * MIB))),
    "edit 50 files of 10 MiB": Heavy(
        "edit",
        arguments(files=[{"path": path, "edits": [{"old": "alpha", "new": "A", "replace_all": True}]} for path in BIG]),
        big_files,
    ),
    "10 000 edits of 10 MiB": Heavy(
        "edit",
        arguments(
            path="numbered",
            edits=[{"old": f"line {number * 40:07d} of", "new": f"LINE {number}"} for number in range(10_000)],
        ),
        numbered,
    ),
    "an edit that fails in 10 MiB": Heavy(
        "edit", arguments(path="big0", edits=[{"old": "alpha beta omega", "new": "x"}]), big_links, 500
    ),
    "patch 1000 files": Heavy("patch", patch, patched_files),
    "a diff's name with 60 000 blanks": Heavy(
        "patch",
        arguments(diff="--- a/p0" + " " * 60_000 + "x\n+++ b/p0\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"),
        patched_files,
        400,
    ),
    "glob **/* of 20 000 files": Heavy("glob", arguments(pattern="**/*"), many_files),
    "glob of 30 kB a{**}/": Heavy("glob", arguments(pattern="a{**}/" * 5000), status=400),
    "glob in 500 levels": Heavy("glob", arguments(pattern="**/*"), deep_folders),
    "grep of 20 000 files": Heavy("grep", arguments(pattern="int a", max=2000), many_files),
    "grep of one line of 9 MiB": Heavy("grep", arguments(pattern="a[ab]{300}c"), one_line),
    "exec that prints 100 MB": Heavy("exec", arguments(cmd="head -c 100000000 /dev/zero | tr '\\0' '\\n'")),
    "exec of 16 000 dashes": Heavy("exec", arguments(cmd="false " + "-" * 16_000)),
    "body of small values": Heavy("read", lambda: b'{"x": [' + b"1," * (7 * MIB - 8) + b"1]}", status=400),
    "body of 200 000 members": Heavy(
        "read",
        lambda: b'{"path": "none", "x": {' + b",".join(b'"%060d": 1' % at for at in range(199_000)) + b"}}",
        status=500,
    ),
    "body of objects in arrays": Heavy(
        "read", lambda: b'{"paths": [' + b'{"path": "a"},' * 99_000 + b"1]}", status=400
    ),
    "JSON in a string": Heavy("read", lambda: json.dumps({"paths": "[" + "1," * 5 * MIB + "1]"}).encode(), status=400),
}


def call(port: int, heavy: Heavy, body: bytes) -> None:
    connection = Connection(port)
    try:
        connection.post_body(heavy.tool, body, status=heavy.status)
    finally:
        connection.close()


def flood(port: int) -> None:
    """Send 250 000 header fields without the token; the server may close at any time."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        try:
            connection.sendall(b"GET /tools HTTP/1.1\r\n" + b"a:\r\n" * 250_000)
            connection.recv(1)
        except OSError:
            pass


def crowd(port: int) -> None:
    """Open 1000 connections that say nothing."""
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(1000)]
    for one in opened:
        one.close()


RAW: dict[str, Callable[[int], None]] = {"250 000 header fields": flood, "1000 silent connections": crowd}


# ------------------------------------------------------------------------------------------------------- the table


def measure(server: Served, root: pathlib.Path, pinger: Pinger, name: str) -> tuple[float, float]:
    """Return the pause and the time of a call, in seconds, from its best run."""
    heavy = CALLS.get(name)
    body = heavy.body() if heavy else b""
    runs = []
    for _ in range(RUNS):
        if heavy:
            heavy.prepare(root)
        runs.append(pinger.beside(lambda: call(server.port, heavy, body) if heavy else RAW[name](server.port)))
        for left in root.iterdir():
            if left.name != ".kd":
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    return min(runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"fail where a pause is over {BOUND_MS:.0f} ms")
    parser.add_argument("names", nargs="*", help="calls whose names hold one of these; default: all")
    given = parser.parse_args()
    over = []
    with tempfile.TemporaryDirectory(prefix="toolserver-pauses-") as where:
        root = pathlib.Path(where)
        with serving(root) as server:
            pinger = Pinger(server.port)
            idle = min(pinger.beside(lambda: time.sleep(1))[0] for _ in range(RUNS))
            print(f"{'call':36} {'pause':>10} {'call takes':>12}\n{'nothing':36} {idle * 1e3:7.1f} ms", flush=True)
            try:
                for name in [*CALLS, *RAW]:
                    if given.names and not any(part in name for part in given.names):
                        continue
                    pause, took = measure(server, root, pinger, name)
                    holds = pause * 1e3 <= BOUND_MS
                    over += [] if holds else [name]
                    row = f"{name:36} {pause * 1e3:7.1f} ms {took * 1e3:9.0f} ms"
                    print(row if holds else f"{row}  over", flush=True)
            finally:
                pinger.stop()
    print(f"bound: {BOUND_MS:.0f} ms" + (f"; over it: {', '.join(over)}" if over else ""))
    return 1 if given.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
