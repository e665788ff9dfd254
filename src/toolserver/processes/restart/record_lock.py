"""The lock on a root's record of processes: one living server of a root keeps it and starts them again."""

from __future__ import annotations

import contextlib
import logging
import os
import select

from toolserver.state.directory import directory as state_directory
from toolserver.state.directory import make_directory
from toolserver.state.locked import lock

log = logging.getLogger("toolserver.processes")

LOCK_FILE = "relaunch.lock"
STOPPING = b"stopping"
STOP_WAIT_S = 10.0
"""Seconds that a server which is stopping is waited for."""


class RecordLock:
    """The lock, held for as long as this server lives; the kernel releases that of a dead one."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)

    @classmethod
    def take(cls, directory: str) -> RecordLock | None:
        """Return the lock, None where another server has it. Raises OSError.

        It blocks, and waits for a server that is about to stop: one that is started right after a signal to the old
        one goes on from the old one's record.
        """
        path = os.path.join(directory, LOCK_FILE)
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                if lock(fd):
                    held, fd = cls(fd, path), -1
                    return held
                if os.fstat(fd).st_nlink and not _outlived(os.pread(fd, 64, 0)):
                    return None
            finally:
                if fd >= 0:
                    os.close(fd)

    def stopping(self) -> None:
        """Tell those that wait for the lock that this server is about to end."""
        os.pwrite(self._fd, b"%d %s\n" % (os.getpid(), STOPPING), 0)

    def release(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        os.close(self._fd)


class Ownership:
    """Whether this server keeps the record of its root; decided when it is first asked."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._lock: RecordLock | None = None
        self._owned: bool | None = None

    def owned(self) -> bool:
        """Take the lock unless another server has it. Call it in a thread, and in one at a time."""
        if self._owned is None:
            self._owned = True
            try:
                self._lock = RecordLock.take(make_directory(self._root))
            except OSError as error:
                log.warning("no state directory, so two servers of this root would not know: %s", error.strerror)
            else:
                self._owned = self._lock is not None
            if not self._owned:
                log.warning("another server of this root is running: processes of this one are not recorded")
        return self._owned

    def stopping(self) -> None:
        """Tell those that wait for the lock that this server is about to end."""
        if self._lock is not None:
            with contextlib.suppress(OSError):  # a full disk: a server that starts right now does not wait
                self._lock.stopping()

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            with contextlib.suppress(OSError):  # it holds the root's token
                os.rmdir(state_directory(self._root))


def _outlived(note: bytes) -> bool:
    """Wait for the exit of a server whose lock file says that it is stopping; return False if it goes on."""
    words = note.split()
    if len(words) != 2 or words[1] != STOPPING or not words[0].isdigit():
        return False
    try:
        fd = os.pidfd_open(int(words[0]))
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], STOP_WAIT_S)[0])
    finally:
        os.close(fd)
