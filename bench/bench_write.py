"""write and edit over HTTP on tmpfs, beside what a shell would do: `cp` and `sync FILE`, `sed -i`; and many at once."""

from __future__ import annotations

import itertools
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import inputs
import pytest
from serving import Served, serving
from sidebyside import side_by_side

MIB = 1024 * 1024
MARK = "one of a kind"
TMPFS = "/dev/shm"  # where every Linux has its tmpfs


@pytest.fixture(scope="module")
def root() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-", dir=TMPFS) as made:
        yield pathlib.Path(made)


@pytest.fixture(scope="module")
def server(root: pathlib.Path) -> Iterator[Served]:
    with serving(root) as made:
        yield made


def marked(size: int) -> tuple[bytes, int]:
    """Return a source text with the mark in its middle line, and that line's number."""
    lines = inputs.source_text(size - 100, seed=1).split(b"\n")
    at = len(lines) // 2
    lines.insert(at, f"{MARK} 0".encode())
    return b"\n".join(lines), at + 1


def run(*command: str) -> None:
    subprocess.run(command, check=True)


@pytest.mark.parametrize("size", [10 * MIB, MIB, 10_000], ids=["10 MiB", "1 MiB", "10 kB"])
def test_write(benchmark: Any, server: Served, root: pathlib.Path, size: int) -> None:
    """A whole file, replaced again and again."""
    text = inputs.source_text(size, seed=1)
    body = json.dumps({"path": "written", "content": text.decode()}).encode()
    source, copy = root / "source", root / "copy"
    source.write_bytes(text)

    def copied() -> None:
        run("cp", str(source), str(copy))
        run("sync", str(copy))

    benchmark.group = "write"
    side_by_side(
        benchmark,
        lambda: server.connection.post_body("write", body),
        {"cp and sync": copied},
        rounds=20,
        bound=4.0 if size == 10 * MIB else None,
        facts={"bytes": size},
    )


def editing(server: Served, path: str) -> Callable[[], bytes]:
    """Return a call that changes the number at the mark, each time it is made."""
    numbers = itertools.count()

    def edit() -> bytes:
        number = next(numbers)
        edits = [{"old": f"{MARK} {number % 10}", "new": f"{MARK} {(number + 1) % 10}"}]
        return server.connection.post("edit", path=path, edits=edits)

    return edit


@pytest.mark.parametrize("size", [10 * MIB, MIB, 10_000], ids=["10 MiB", "1 MiB", "10 kB"])
def test_edit(benchmark: Any, server: Served, root: pathlib.Path, size: int) -> None:
    """One replacement in the middle of a file."""
    text, line = marked(size)
    path, other = f"edited-{size}", root / f"sed-{size}"
    (root / path).write_bytes(text)
    other.write_bytes(text)
    benchmark.group = "edit"
    side_by_side(
        benchmark,
        editing(server, path),
        {"sed -i": lambda: run("sed", "-i", f"{line}s/{MARK} [0-9]/{MARK} x/;{line}s/x$/1/", str(other))},
        rounds=20,
        bound=1.0 if size == 10 * MIB else None,
        facts={"bytes": size, "line": line},
    )
