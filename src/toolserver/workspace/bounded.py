"""The one reader of files that the server reads for itself: regular files, up to a limit, without ever waiting."""

from __future__ import annotations

import errno
import os
import stat

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PIECE = 1 << 16


def open_regular(path: bytes | str, directory: int | None = None, flags: int = 0) -> int:
    """Open a regular file for reading, `path` counted from the open `directory`; links are followed.

    Raises OSError: EINVAL where it is no regular file. A FIFO is not waited for. `flags` are further ones of open(2).
    """
    fd = os.open(path, _FLAGS | flags, dir_fd=directory)
    try:
        check_regular(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_inside(root: int, path: bytes) -> int:
    """Open a regular file for reading that lies below the open directory `root`, wherever links on the way lead.

    `path` is relative to `root` or absolute. Raises OSError: EXDEV where the file lies elsewhere. It is not opened for
    reading before that is known.
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC, dir_fd=root)
    try:
        top = os.readlink(b"/proc/self/fd/%d" % root)
        found = os.readlink(b"/proc/self/fd/%d" % place)
        if not found.startswith(top if top.endswith(b"/") else top + b"/"):
            raise OSError(errno.EXDEV, "lies outside", path)
        check_regular(place, path)
        return os.open(b"/proc/self/fd/%d" % place, _FLAGS)
    finally:
        os.close(place)


def read_open(fd: int, limit: int) -> bytes:
    """Return what an open file holds from its offset on. Raises OSError: EFBIG where it is over `limit` bytes."""
    pieces = []
    left = limit + 1
    while left > 0 and (piece := os.read(fd, min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    if left <= 0:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return b"".join(pieces)


def read_regular(path: bytes | str, limit: int, directory: int | None = None, flags: int = 0) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. Raises OSError as the functions above."""
    fd = open_regular(path, directory, flags)
    try:
        return read_open(fd, limit)
    finally:
        os.close(fd)


def check_regular(fd: int, path: bytes | str) -> None:
    """Raise OSError EINVAL where an open file is no regular one; `path` names it in the message."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", path)
