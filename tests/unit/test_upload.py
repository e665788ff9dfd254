"""Uploads: what is held, also of a server that was killed at any step, and what a commit replaces."""

from __future__ import annotations

import asyncio
import errno
import os
import pathlib
from typing import Any

import pytest

from toolserver.errors import Conflict, ToolError
from toolserver.workspace.root import Workspace
from toolserver.writing import upload
from toolserver.writing.upload import PART, Range, Uploads

ID = "upload-1"


def take(root: pathlib.Path, path: str = "f", offset: int = 0, data: bytes = b"", **more: Any) -> Any:
    with Workspace(str(root)).tree("main") as tree:
        return asyncio.run(Uploads(0o022).take(tree, tree.place(path), Range(ID, offset, data, **more)))


def held(root: pathlib.Path) -> list[pathlib.Path]:
    return [one for one in root.iterdir() if PART.fullmatch(one.name)]


class Killed(BaseException):
    """The server ends here."""


@pytest.mark.parametrize("step", ["ftruncate", "lseek", "write", "rename"])
def test_a_range_counts_whole_or_not_at_all(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    take(tmp_path, data=b"one ")
    real = getattr(os, step)

    def killed(*args: Any, **named: Any) -> Any:
        if step == "write":
            real(args[0], bytes(args[1])[:2])
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, step, killed)
        with pytest.raises(Killed):
            take(tmp_path, offset=4, data=b"two ")
    assert take(tmp_path, offset=4, data=b"TWO ") == {"bytes": 8}
    assert take(tmp_path, offset=8, commit=True) == {"path": "f", "bytes": 8, "created": True}
    assert (tmp_path / "f").read_bytes() == b"one TWO "
    assert held(tmp_path) == []


def test_a_full_disk_keeps_what_was_held(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take(tmp_path, data=b"one ")
    with monkeypatch.context() as patch:

        def full(fd: int, data: bytes) -> None:
            os.write(fd, data[:2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(upload, "write_all", full)
        with pytest.raises(ToolError, match="no space left"):
            take(tmp_path, offset=4, data=b"two ")
    (part,) = held(tmp_path)
    assert part.read_bytes() == b"one "
    assert take(tmp_path, offset=4, data=b"two", commit=True)["bytes"] == 7


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by another program between the last look and the rename."""
    real = upload.rename_new

    def late(*args: Any) -> None:
        (tmp_path / "f").write_text("theirs")
        real(*args)

    monkeypatch.setattr(upload, "rename_new", late)
    with pytest.raises(Conflict, match="exists"):
        take(tmp_path, data=b"ours", commit=True)
    assert (tmp_path / "f").read_text() == "theirs"
    (part,) = held(tmp_path)
    assert part.read_bytes() == b"ours"


def test_a_link_is_written_through(tmp_path: pathlib.Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "real").write_text("old")
    (tmp_path / "link").symlink_to("d/real")
    with pytest.raises(Conflict):
        take(tmp_path, "link", data=b"new", commit=True)
    assert take(tmp_path, "link", data=b"new", commit=True, overwrite=True)["created"] is False
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "d" / "real").read_text() == "new"


def test_mode_of_new_and_replaced_files(tmp_path: pathlib.Path) -> None:
    take(tmp_path, data=b"x", commit=True)
    assert (tmp_path / "f").stat().st_mode & 0o7777 == 0o644
    (tmp_path / "f").chmod(0o640)
    os.setxattr(tmp_path / "f", "user.kept", b"1") if _has_attributes(tmp_path) else None
    take(tmp_path, data=b"y", commit=True, overwrite=True)
    assert (tmp_path / "f").stat().st_mode & 0o7777 == 0o640
    assert not _has_attributes(tmp_path) or os.getxattr(tmp_path / "f", "user.kept") == b"1"


def _has_attributes(where: pathlib.Path) -> bool:
    try:
        os.setxattr(where, "user.tried", b"1")
    except OSError:
        return False
    return True


def test_special_targets_are_refused(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dir").mkdir()
    for path in ("fifo", "dir", "dir/"):
        with pytest.raises(ToolError):
            take(tmp_path, path, data=b"x", commit=True, overwrite=True)
    assert {one.name for one in tmp_path.iterdir()} == {"fifo", "dir"}


@pytest.mark.parametrize("name", [".toolserver-00.part", "x.part", ".toolserver-" + "a" * 32 + "-1.part.bak"])
def test_only_our_own_abandoned_files_are_removed(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    os.utime(tmp_path / name, (1, 1))
    abandoned = tmp_path / f".toolserver-{'a' * 32}-1.part"
    abandoned.write_text("x")
    os.utime(abandoned, (1, 1))
    take(tmp_path, data=b"x", commit=True)
    assert {one.name for one in tmp_path.iterdir()} == {name, "f"}


def test_a_part_that_lost_bytes_is_told(tmp_path: pathlib.Path) -> None:
    take(tmp_path, data=b"12345")
    (part,) = held(tmp_path)
    part.write_bytes(b"1")
    with pytest.raises(ToolError, match="abort=1"):
        take(tmp_path, offset=5, data=b"6")
    assert take(tmp_path, abort=True) == {"bytes": 0}
    assert held(tmp_path) == []
