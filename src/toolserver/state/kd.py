"""The server's own directory inside the workspace, `.kd`: made at need, kept out of git (specification, section 11)."""

from __future__ import annotations

import contextlib
import os

from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver.workspace.names import KD


def open_kd(root: int, below: bytes = KD) -> int:
    """Open the server's own directory `.kd` below a root descriptor, or one inside it; made where it is missing.

    `.kd/.gitignore` keeps it out of git. Raises OSError; ELOOP where a link is in its place.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY
    try:
        return open_beneath(root, below, flags, resolve=NO_SYMLINKS)
    except FileNotFoundError:
        pass
    at = os.dup(root)
    try:
        for name in below.split(b"/"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=at)
            inner = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
            if name == KD:
                _ignore_all(at)
        return os.dup(at)
    finally:
        os.close(at)


def _ignore_all(state: int) -> None:
    try:
        fd = os.open(b".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=state)
    except FileExistsError:
        return
    with os.fdopen(fd, "wb") as file:
        file.write(b"*\n")
