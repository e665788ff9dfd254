"""A file that one server keeps, locked for as long as it lives, and that another one finds when its server is dead.

The lock is flock(2)'s, which the kernel gives up with the process. A new file is not locked for a moment, in which a
server that looks for dead ones may take it and remove it: so a file that was locked is asked whether it has a name.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator

from toolserver.workspace.bounded import open_regular

_RANDOM = "[0-9a-f]{24}"


def lock(fd: int) -> bool:
    """Lock an open file. Return whether that succeeded: False where it is locked, or removed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(fd).st_nlink > 0


def create(directory: int, prefix: str = "") -> tuple[int, str]:
    """Make and lock a file of a new name in an open directory; return its descriptor and its name. Raises OSError."""
    while True:
        name = prefix + secrets.token_hex(12)
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory)
        try:
            if lock(fd):
                fd, made = -1, fd
                return made, name
        finally:
            if fd >= 0:
                os.close(fd)


def left_behind(directory: int, prefix: str = "") -> Iterator[tuple[int, str]]:
    """Yield the files of dead servers in an open directory, locked by this one now. The caller removes and closes them.

    A link, or what is no regular file, is passed over: anybody may have made it.
    """
    wanted = re.compile(re.escape(prefix) + _RANDOM)
    for name in os.listdir(directory):
        if not wanted.fullmatch(name):
            continue
        try:
            fd = open_regular(name, directory, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue  # another server has removed it meanwhile, or it is not ours to open
        if lock(fd):
            yield fd, name
        else:
            os.close(fd)  # its server lives
