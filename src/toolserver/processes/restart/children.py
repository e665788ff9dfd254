"""Notes the children of a server outside the workspace, for the server that starts after this one was killed.

Each server has one file in its state directory, mode 0600, locked (flock) as long as the server lives; the kernel
releases the lock of a dead one. Each child has a line of fixed length. It is written before the child is started, with
the inode of its output pipe, by which the child is found if the server is killed before it knows the pid; then again
with the pid; and blanked once nothing of the child is left. Reading the start time from /proc would cost as much as the
rest, and makes the exit of the child slower: so a line names two moments between which the child was started.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass

from toolserver.processes.procfs import this_boot, ticks
from toolserver.state import locked
from toolserver.workspace.bounded import read_open

PREFIX = "children-"
LARGEST = 64 * 1024 * 1024
"""Bytes of a file that is read."""
_FORMAT = b"2"
_HEAD = 128
_LINE = 80
_LOOK = 256
"""Exits after which the groups that outlived their leaders are looked at again."""

log = logging.getLogger("toolserver.processes")


@dataclass(frozen=True, slots=True)
class ChildNote:
    """A child; moments are in clock ticks since the boot."""

    pid: int
    """0: the server was killed while it started the child."""
    first: int
    last: int
    """It began between these two moments, both included."""
    ended: int
    """When the child was reaped while others of its group lived on; 0: it had not exited."""
    pipe: int
    """The inode of the pipe that it got as its output; 0: a terminal."""

    def is_of(self, pid: int, start: int) -> bool:
        """Whether the process of this pid that began at that tick is this child."""
        return pid == self.pid and self.first <= start <= self.last


class Entry:
    """The line of one child, from before its start to its end."""

    __slots__ = ("first", "last", "pid", "pipe", "slot")

    def __init__(self, slot: int, first: int, pipe: int) -> None:
        self.slot = slot
        self.first = self.last = first
        self.pipe = pipe
        self.pid = 0


class Children:
    """Notes the children of this server. Call all methods in the event loop's thread; none raises."""

    def __init__(self, directory: str) -> None:
        """`directory` is the state directory; it and the file are made with the first child."""
        self._directory = directory
        self._fd = -1
        self._path = ""
        self._slots = 0
        self._free: list[int] = []
        self._left: list[Entry] = []
        """Children that exited before their group."""
        self._ends = 0
        self._failing = False

    def starting(self, pipe: int) -> Entry:
        """ChildNote that a child is about to be started, whose output is the pipe of this inode."""
        entry = Entry(self._free.pop() if self._free else self._slots, ticks(), pipe)
        self._slots = max(self._slots, entry.slot + 1)
        self._write(entry)
        return entry

    def started(self, entry: Entry, pid: int) -> None:
        """ChildNote its pid."""
        entry.pid = pid
        entry.last = ticks()
        self._write(entry)

    def not_started(self, entry: Entry) -> None:
        """Forget one that could not be started."""
        self._clear(entry)

    def ended(self, entry: Entry) -> None:
        """Forget a child that was reaped, unless others of its group live on."""
        if self._is_left(entry):
            self._write(entry, ended=ticks())
            self._left.append(entry)
        else:
            self._clear(entry)
        self._ends += 1
        if self._ends >= _LOOK:
            self._ends = 0
            left, self._left = self._left, []
            for one in left:
                if self._is_left(one):
                    self._left.append(one)
                else:
                    self._clear(one)

    @staticmethod
    def _is_left(entry: Entry) -> bool:
        """Whether the group of a reaped child has members; as long as it has, its number is not reused."""
        try:
            os.killpg(entry.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def _write(self, entry: Entry, *, ended: int = 0) -> None:
        fields = (entry.pid, entry.first, entry.last, ended, entry.pipe)
        self._put(entry.slot, b"%d %d %d %d %d" % fields)

    def _clear(self, entry: Entry) -> None:
        self._put(entry.slot, b"")
        self._free.append(entry.slot)

    def _put(self, slot: int, text: bytes) -> None:
        """Write a line. An error fails no call; it is logged once."""
        try:
            if self._fd < 0:
                self._begin()
            os.pwrite(self._fd, text.ljust(_LINE - 1) + b"\n", _HEAD + _LINE * slot)
        except OSError as error:
            if not self._failing:
                log.warning("the list of children cannot be written: %s", error.strerror)
            self._failing = True

    def _begin(self) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        at = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._fd, name = locked.create(at, PREFIX)
        finally:
            os.close(at)
        self._path = os.path.join(self._directory, name)
        os.pwrite(self._fd, _head().ljust(_HEAD - 1) + b"\n", 0)

    def close(self) -> None:
        """Remove the file at a clean stop, once nothing runs any more."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            os.close(self._fd)
            self._fd = -1
            with contextlib.suppress(OSError):  # the root's token may be in it
                os.rmdir(self._directory)


def _head() -> bytes:
    return b"%s %s" % (_FORMAT, this_boot())


@contextlib.contextmanager
def left_behind(directory: str) -> Iterator[set[ChildNote]]:
    """Return the children of killed servers; their files are removed at the end of the block."""
    found: set[ChildNote] = set()
    taken: list[tuple[int, str]] = []
    try:
        at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield found
        return
    try:
        for fd, name in locked.left_behind(at, PREFIX):
            taken.append((fd, name))
            found |= _read(read_open(fd, LARGEST))
        yield found
        for _, name in taken:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=at)
    finally:
        for fd, _ in taken:
            os.close(fd)
        os.close(at)


def _read(data: bytes) -> set[ChildNote]:
    if data[:_HEAD].strip() != _head():
        return set()  # written before a restart of the machine or the container: nothing is left
    lines = [data[at : at + _LINE].split() for at in range(_HEAD, len(data) - _LINE + 1, _LINE)]
    return {ChildNote(*map(int, line)) for line in lines if len(line) == 5 and all(map(bytes.isdigit, line))}
