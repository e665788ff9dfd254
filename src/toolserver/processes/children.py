"""The running children of a server, noted outside the workspace for whoever starts after it was killed.

One file a server in its state directory, mode 0600, locked (flock) for as long as the server lives: the kernel lets go
of a dead one's. Each child is one line of fixed length, appended right after its start, so a note costs one write.
A line names the child by its pid and by the two moments between which it began: to ask /proc for the exact one takes as
long as all else here, and what /proc has once told of a process makes its end slower.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from toolserver.processes.procfs import this_boot, ticks

NAME = re.compile(r"children-[0-9a-f]{24}")
_HEAD = 128
_LINE = 48
_ENDED = 1024
"""Lines of ended children after which the file is written anew."""

log = logging.getLogger("toolserver.processes")


@dataclass(frozen=True, slots=True)
class Note:
    """A child: it began between two moments, both in clock ticks since the boot and included."""

    pid: int
    first: int
    last: int

    def is_of(self, pid: int, start: int) -> bool:
        """Whether this is the process that has this pid and began at that tick."""
        return pid == self.pid and self.first <= start <= self.last


class Children:
    """Notes the children of this server. All methods are for the event loop's thread."""

    def __init__(self, directory: str) -> None:
        """`directory` is the state directory; it and the file come into being with the first child."""
        self._directory = directory
        self._fd = -1
        self._path = ""
        self._lines = 0
        self._running: dict[int, Note] = {}
        self._failing = False

    def add(self, pid: int, since: int) -> None:
        """Note a child that began between the tick `since` and now. An error fails no call; it is logged once."""
        note = Note(pid, since, ticks())
        self._running[pid] = note
        try:
            if self._fd < 0:
                self._begin()
            os.pwrite(self._fd, _line(note), _HEAD + _LINE * self._lines)
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
        data = b"".join(map(_line, self._running.values()))
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


def _line(note: Note) -> bytes:
    return (b"%d %d %d" % (note.pid, note.first, note.last)).ljust(_LINE - 1) + b"\n"


def lock(fd: int) -> bool:
    """Lock a file, if nobody has it locked and it still has a name."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(fd).st_nlink > 0


@contextlib.contextmanager
def left_behind(directory: str) -> Iterator[set[Note]]:
    """Answer the children that killed servers had; the files go when the work on them is done."""
    found: set[Note] = set()
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


def _read(data: bytes) -> set[Note]:
    if data[:_HEAD].strip() != this_boot():
        return set()  # the machine or the container was started again: nothing is left
    lines = [data[at : at + _LINE].split() for at in range(_HEAD, len(data) - _LINE + 1, _LINE)]
    return {Note(*map(int, line)) for line in lines if len(line) == 3 and all(map(bytes.isdigit, line))}
