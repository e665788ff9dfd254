"""The right to keep a root's record of processes and to start them again: one living server of a root has it."""

from __future__ import annotations

import contextlib
import os
import select

from toolserver.processes.restart.children import lock

NAME = "relaunch.lock"
STOPPING = b"stopping"
PATIENCE = 10.0
"""Seconds that a server which is stopping is waited for."""


class Claim:
    """The lock, held for as long as this server lives; the kernel lets go of a dead one's."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)

    @classmethod
    def take(cls, directory: str) -> Claim | None:
        """Return the claim, None where another server has it. Raises OSError.

        One that is about to stop is waited for: who starts a server anew right after a signal to the old one goes on
        from its record. It blocks.
        """
        path = os.path.join(directory, NAME)
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                if lock(fd):
                    claim, fd = cls(fd, path), -1
                    return claim
                if os.fstat(fd).st_nlink and not _outlived(os.pread(fd, 64, 0)):
                    return None
            finally:
                if fd >= 0:
                    os.close(fd)

    def stopping(self) -> None:
        """Tell who waits that this server is about to end."""
        os.pwrite(self._fd, b"%d %s\n" % (os.getpid(), STOPPING), 0)

    def release(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        os.close(self._fd)


def _outlived(note: bytes) -> bool:
    """Wait for the end of a server whose note says that it is stopping; False where it goes on."""
    words = note.split()
    if len(words) != 2 or words[1] != STOPPING or not words[0].isdigit():
        return False
    try:
        fd = os.pidfd_open(int(words[0]))
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], PATIENCE)[0])
    finally:
        os.close(fd)
