"""The running children of a server, noted outside the workspace for whoever starts after it was killed.

One file a server in its state directory, mode 0600, locked (flock) for as long as the server lives: the kernel lets go
of a dead one's. Each child is one line of fixed length, appended right after its start, so a note costs one write.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import secrets
from collections.abc import Iterator

from toolserver.processes.procfs import status, this_boot

NAME = re.compile(r"children-[0-9a-f]{24}")
_HEAD = 128
_LINE = 32
_ENDED = 1024
"""Lines of ended children after which the file is written anew."""

log = logging.getLogger("toolserver.processes")


class Children:
    """Notes the children of this server. All methods are for the event loop's thread."""

    def __init__(self, directory: str) -> None:
        """`directory` is the state directory; it and the file come into being with the first child."""
        self._directory = directory
        self._fd = -1
        self._path = ""
        self._lines = 0
        self._running: dict[int, int] = {}
        self._failing = False

    def add(self, pid: int) -> None:
        """Note a child. An error fails no call; it is logged once."""
        try:
            found = status(pid)
            if found is None:
                return
            self._running[pid] = found.start
            if self._fd < 0:
                self._begin()
            os.pwrite(self._fd, _line(pid, found.start), _HEAD + _LINE * self._lines)
            self._lines += 1
        except OSError as error:
            if not self._failing:
                log.warning("the list of children cannot be written: %s", error.strerror)
            self._failing = True

    def drop(self, pid: int) -> None:
        """Forget a child that has ended."""
        if self._running.pop(pid, None) is None or self._fd < 0:
            return
        # what is left over names processes that have gone, and does no harm; cutting the file at each exit costs 30 µs
        if self._lines - len(self._running) > _ENDED:
            with contextlib.suppress(OSError):
                self._rewrite()

    def _rewrite(self) -> None:
        """Write the lines of the running ones over the first lines; a kill in between leaves some twice."""
        data = b"".join(_line(pid, start) for pid, start in self._running.items())
        if data:
            os.pwrite(self._fd, data, _HEAD)
        os.ftruncate(self._fd, _HEAD + len(data))
        self._lines = len(self._running)

    def _begin(self) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        while self._fd < 0:
            self._path = os.path.join(self._directory, f"children-{secrets.token_hex(12)}")
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if lock(fd):
                self._fd = fd
            else:
                os.close(fd)
        os.pwrite(self._fd, this_boot().ljust(_HEAD - 1) + b"\n", 0)

    def close(self) -> None:
        """Give the file up at a clean stop; nothing runs any more."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            os.close(self._fd)
            self._fd = -1
            with contextlib.suppress(OSError):  # the root's token may be in it
                os.rmdir(self._directory)


def _line(pid: int, start: int) -> bytes:
    return (b"%d %d" % (pid, start)).ljust(_LINE - 1) + b"\n"


def lock(fd: int) -> bool:
    """Lock a file, if nobody has it locked and it still has a name."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(fd).st_nlink > 0


@contextlib.contextmanager
def left_behind(directory: str) -> Iterator[set[tuple[int, int]]]:
    """Answer pid and start time of the children that killed servers had; the notes go when the work on them is done."""
    found: set[tuple[int, int]] = set()
    taken: list[tuple[int, str]] = []
    try:
        for name in os.listdir(directory) if os.path.isdir(directory) else ():
            if not NAME.fullmatch(name):
                continue
            path = os.path.join(directory, name)
            try:
                fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # another server has swept it
            taken.append((fd, path))
            if lock(fd):
                with open(fd, "rb", closefd=False) as file:
                    found |= _read(file.read())
            else:
                taken.pop()
                os.close(fd)  # its server lives
        yield found
        for _, path in taken:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
    finally:
        for fd, _ in taken:
            os.close(fd)


def _read(data: bytes) -> set[tuple[int, int]]:
    if data[:_HEAD].strip() != this_boot():
        return set()  # the machine or the container was started again: nothing is left
    lines = [data[at : at + _LINE].split() for at in range(_HEAD, len(data) - _LINE + 1, _LINE)]
    return {
        (int(line[0]), int(line[1])) for line in lines if len(line) == 2 and line[0].isdigit() and line[1].isdigit()
    }
