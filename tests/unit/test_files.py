"""`_fast.files`: what can be read at once, and whole files that change meanwhile."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Iterator

import pytest

from toolserver._fast import files


@pytest.fixture(params=["disk", "tmpfs"])
def path(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    if request.param == "disk":
        yield tmp_path / "f"
    else:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
            yield pathlib.Path(made, "f")


@pytest.fixture
def opened(path: pathlib.Path) -> Iterator[int]:
    path.write_bytes(b"0123456789")
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_cached(opened: int) -> None:
    assert files.read_cached(opened, 10) == b"0123456789"


@pytest.mark.parametrize("size", [0, 9, 11, 100_000])
def test_cached_of_another_size(opened: int, size: int) -> None:
    """A file that grew or shrank since it was asked for its size is not answered."""
    assert files.read_cached(opened, size) is None


def test_cached_empty(path: pathlib.Path) -> None:
    path.write_bytes(b"")
    fd = os.open(path, os.O_RDONLY)
    try:
        assert files.read_cached(fd, 0) == b""
    finally:
        os.close(fd)


def test_cached_where_it_cannot_tell(tmp_path: pathlib.Path) -> None:
    for path in (tmp_path, pathlib.Path("/proc/self/status")):
        fd = os.open(path, os.O_RDONLY)
        try:
            assert files.read_cached(fd, os.fstat(fd).st_size) is None
        finally:
            os.close(fd)


@pytest.mark.parametrize("expected", [0, 3, 10, 11, 5000])
@pytest.mark.parametrize("most", [1, 9, 10, 11, 5000])
def test_whole(opened: int, most: int, expected: int) -> None:
    """Whatever size was expected, the file is what is answered, up to the most."""
    assert files.read_whole(opened, most, expected) == b"0123456789"[:most]


def test_whole_that_grew(path: pathlib.Path) -> None:
    path.write_bytes(os.urandom(700_000))
    fd = os.open(path, os.O_RDONLY)
    try:
        assert files.read_whole(fd, 1_000_000, 10) == path.read_bytes()
        assert files.read_whole(fd, 600_000, 10) == path.read_bytes()[:600_000]
    finally:
        os.close(fd)


def test_whole_of_a_file_without_a_size() -> None:
    fd = os.open("/proc/self/status", os.O_RDONLY)
    try:
        assert b"\nVmRSS:" in files.read_whole(fd, 1_000_000, 0)
    finally:
        os.close(fd)


def test_whole_fails(tmp_path: pathlib.Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(IsADirectoryError):
            files.read_whole(fd, 100, 100)
    finally:
        os.close(fd)
