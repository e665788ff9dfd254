"""Folders that are more than a path can name."""

from __future__ import annotations

import os
import pathlib


def deep(root: pathlib.Path) -> str:
    """Make folders below `root` with a `file` in the last; answer its path, which fits alone, not behind the root's.

    A `link` in the root stands for the first of them.
    """
    name = "n" * 254
    fd = os.open(root, os.O_PATH)
    for _ in range(16):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_PATH, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd))
    os.close(fd)
    (root / "link").symlink_to(name)
    path = "/".join([name] * 16)
    assert len(path) <= 4096 < len(str(root)) + len(path)
    return path
