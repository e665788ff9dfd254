"""The reader of files that the server reads for itself."""

from __future__ import annotations

import errno
import os
import pathlib
from collections.abc import Callable

import pytest

from toolserver.workspace import bounded


@pytest.mark.parametrize(("size", "fits"), [(0, True), (99, True), (100, True), (101, False), (1 << 30, False)])
def test_no_more_than_the_limit_is_read(tmp_path: pathlib.Path, size: int, fits: bool) -> None:
    file = tmp_path / "f"
    file.touch()
    os.truncate(file, size)
    if fits:
        assert bounded.read_regular(bytes(file), 100) == bytes(size)
        return
    with pytest.raises(OSError) as raised:
        bounded.read_regular(bytes(file), 100)
    assert raised.value.errno == errno.EFBIG


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/null", path)])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: pathlib.Path, make: Callable[[bytes], None]) -> None:
    make(bytes(tmp_path / "f"))
    root = os.open(tmp_path, os.O_PATH)
    try:
        for read in (bounded.open_regular, lambda path: bounded.open_inside(root, path)):
            with pytest.raises(OSError) as raised:
                read(bytes(tmp_path / "f"))
            assert raised.value.errno in (errno.EINVAL, errno.EXDEV)
    finally:
        os.close(root)


def test_open_inside_judges_where_a_path_ends(tmp_path: pathlib.Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "rootless"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "f").write_text(folder.name)
    (root / "out").symlink_to("../rootless/f")
    (root / "back").symlink_to(tmp_path / "root/f")
    (outside / "in").symlink_to(root / "f")
    fd = os.open(root, os.O_PATH)
    try:
        for path in (b"f", b"back", bytes(root / "f"), b"../root/f", bytes(outside / "in")):
            found = bounded.open_inside(fd, path)
            assert bounded.read_open(found, 10) == b"root"
            os.close(found)
        before = len(os.listdir("/proc/self/fd"))
        for path in (b"out", b"../rootless/f", bytes(outside / "f")):
            with pytest.raises(OSError) as raised:
                bounded.open_inside(fd, path)
            assert raised.value.errno == errno.EXDEV
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        os.close(fd)
