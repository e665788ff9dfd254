"""When new contents are flushed: after all of them are written, before the first is renamed; many files together."""

from __future__ import annotations

import errno
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from toolserver.errors import ToolError
from toolserver.workspace.root import Workspace
from toolserver.writing import commit
from toolserver.writing.batch import Batch
from toolserver.writing.writer import Writer


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the writer's steps, in the order of their calls."""
    seen: list[str] = []

    def watched(owner: Any, name: str, shown: str) -> None:
        before = getattr(owner, name)

        def call(*args: Any, **more: Any) -> Any:
            seen.append(shown)
            return before(*args, **more)

        monkeypatch.setattr(owner, name, call)

    watched(commit, "write_all", "write")
    watched(commit.os, "fdatasync", "flush")
    watched(commit, "sync_file_system", "flush all")
    watched(commit, "link", "name")
    watched(commit, "replace", "name")
    watched(commit, "rename_new", "name")
    return seen


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture
def writer(root: pathlib.Path) -> Iterator[Writer]:
    made = Writer(bytes(root))
    yield made
    made.close()


def put(writer: Writer, root: pathlib.Path, count: int) -> None:
    """Make files, a few of them in folders that are missing."""

    def work(batch: Batch) -> None:
        for number in range(count):
            name = f"d{number % 3}/f{number}" if number % 2 else f"f{number}"
            batch.look(tree.place(name)).put(b"content %d\n" % number)

    with Workspace(str(root)).tree("main") as tree:
        writer.apply(tree, work)


def contents(root: pathlib.Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in root.rglob("f*") if path.is_file())


def runs(steps: list[str]) -> list[str]:
    """Return the steps with those of a run as one."""
    return [step for at, step in enumerate(steps) if at == 0 or steps[at - 1] != step]


@pytest.mark.parametrize("count", [1, 5, commit.FLUSHED_TOGETHER - 1])
def test_few_files(writer: Writer, root: pathlib.Path, steps: list[str], count: int) -> None:
    """Each is flushed alone, so that nothing of other programs is waited for; all writes come first."""
    put(writer, root, count)
    assert (steps.count("write"), steps.count("flush"), steps.count("flush all")) == (count, count, 0)
    assert runs(steps) == ["write", "flush", "name"]
    assert len(contents(root)) == count


@pytest.mark.parametrize("count", [commit.FLUSHED_TOGETHER, 300])
def test_many_files(writer: Writer, root: pathlib.Path, steps: list[str], count: int) -> None:
    """One flush of the file system, also for those whose descriptors are closed by then."""
    put(writer, root, count)
    assert (steps.count("write"), steps.count("flush"), steps.count("flush all")) == (count, 0, 1)
    assert runs(steps) == ["write", "flush all", "name"]
    assert contents(root) == sorted(b"content %d\n" % number for number in range(count))


def test_a_kernel_that_tells_no_errors(
    writer: Writer, root: pathlib.Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Linux 5.8 a flush of the file system hides errors: each file is flushed."""
    monkeypatch.setattr(commit, "KERNEL", (5, 7))
    put(writer, root, 200)
    assert (steps.count("flush"), steps.count("flush all")) == (200, 0)
    assert runs(steps) == ["write", "flush", "name"]
    assert len(contents(root)) == 200


@pytest.mark.parametrize(("count", "step"), [(3, "fdatasync"), (200, "sync_file_system")])
def test_a_flush_that_fails(
    writer: Writer, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, count: int, step: str
) -> None:
    """Nothing is changed and nothing is left."""
    (root / "f0").write_bytes(b"old\n")

    def failing(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(commit.os if step == "fdatasync" else commit, step, failing)
    with pytest.raises(ToolError, match="error"):
        put(writer, root, count)
    assert [path.name for path in root.iterdir() if path.name != ".kd"] == ["f0"]
    assert contents(root) == [b"old\n"]
