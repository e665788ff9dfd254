"""Files that a server keeps locked, and those that dead servers have left."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import pytest

from toolserver.state import locked


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def found(directory: int, prefix: str = "") -> list[str]:
    names = []
    for fd, name in locked.left_behind(directory, prefix):
        names.append(name)
        os.close(fd)
    return sorted(names)


def test_a_file_is_left_behind_when_its_server_is_dead(directory: int) -> None:
    fd, name = locked.create(directory, "kept-")
    assert found(directory, "kept-") == []
    os.close(fd)
    assert found(directory, "kept-") == [name]
    assert found(directory) == []


def test_one_server_alone_takes_what_is_left(directory: int) -> None:
    fd, name = locked.create(directory)
    os.close(fd)
    for taken, mine in locked.left_behind(directory):
        assert mine == name
        assert found(directory) == []
        os.unlink(mine, dir_fd=directory)
        os.close(taken)
    assert os.listdir(directory) == []


def test_a_file_that_was_removed_before_it_was_locked_is_not_taken(tmp_path: pathlib.Path) -> None:
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    os.unlink(tmp_path / "f")
    assert not locked.lock(fd)
    os.close(fd)


def test_create_goes_on_with_a_new_name(directory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that looks for dead ones takes the first file before it is locked."""
    own, tries = locked.lock, []

    def late(fd: int) -> bool:
        tries.append(fd)
        if len(tries) == 1:
            os.unlink(os.listdir(directory)[0], dir_fd=directory)
        return own(fd)

    monkeypatch.setattr(locked, "lock", late)
    fd, name = locked.create(directory)
    assert len(tries) == 2
    assert os.listdir(directory) == [name]
    os.close(fd)


def test_what_anybody_may_have_put_there_is_passed_over(directory: int, tmp_path: pathlib.Path) -> None:
    (tmp_path / "victim").write_text("x")
    (tmp_path / ("0" * 24)).symlink_to("victim")
    (tmp_path / ("1" * 24)).mkdir()
    os.mkfifo(tmp_path / ("2" * 24))
    (tmp_path / ("3" * 23)).write_text("")
    (tmp_path / ("4" * 24 + "x")).write_text("")
    before = len(os.listdir("/proc/self/fd"))
    assert found(directory) == []
    assert len(os.listdir("/proc/self/fd")) == before
