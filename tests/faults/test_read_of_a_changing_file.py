"""A file that grows, shrinks, vanishes, becomes a FIFO or a folder while it is read."""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kit import Server

READS = 150


def replaced(path: pathlib.Path, rng: random.Random) -> None:
    """Make something else of `path`, in one of the ways there are."""
    way = rng.randrange(8)
    if way < 4 and path.is_file() and not path.is_symlink():
        size = rng.choice([0, 10, 8192, 300_000, 2_000_000])
        with contextlib.suppress(FileNotFoundError):
            os.truncate(path, size)
        if way < 2:
            with path.open("ab") as file:
                file.write(b"line\n" * rng.randrange(1, 100_000))
        return
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    match way:
        case 4:
            os.mkfifo(path)
        case 5:
            path.mkdir()
        case 6:
            path.symlink_to("/etc/hostname")
        case 7:
            pass
        case _:
            path.write_bytes(b"line\n" * rng.randrange(400_000))


@pytest.mark.parametrize("seed", range(2))
def test_every_answer_is_clear(server: Server, seed: int) -> None:
    """The lines that are shown are numbered in order, or one sentence says what stands there instead."""
    path = server.root / "f"
    stop = threading.Event()
    rng = random.Random(seed)

    def change() -> None:
        while not stop.is_set():
            replaced(path, rng)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        seen = set()
        for _ in range(READS):
            status, got = server.tool("read", path="f", limit=10**9)
            seen.add(status)
            if status != 200:
                assert status in (403, 500), got
                assert "f" in got["error"]
                assert "internal error" not in got["error"]
            elif "content" in got:
                lines = got["content"].split("\n") if got["content"] else []
                assert len(lines) == got["total_lines"]
                assert all(line.startswith(f"{number}\t") for number, line in enumerate(lines, 1))
            else:
                assert set(got) == {"path", "binary", "size", "mime"}
    finally:
        stop.set()
        changing.join()
    assert seen >= {200, 500}
    assert server.http.get("/healthz").json()["ok"] is True


def test_descriptors_are_closed(server: Server) -> None:
    """Whatever became of a read, nothing stays open."""
    server.put("text", "x\n")
    server.put("large", b"x" * 1_000_000)
    server.put("binary", b"\0" * 1_000_000)
    server.put("over", b"x" * 11_000_000)
    (server.root / "folder").mkdir()
    os.mkfifo(server.root / "fifo")
    paths = ["text", "large", "binary", "over", "folder", "fifo", "missing", "../out", ""]

    def open_now() -> list[str]:
        found = []
        for fd in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(fd))
        return [target for target in found if target.startswith(str(server.root)) and target != str(server.root)]

    for _ in range(3):
        server.ok("read", paths=paths)
    assert open_now() == []
