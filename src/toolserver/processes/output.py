"""One output stream of a running command: from its pipe, through the event loop, into its ring."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable, Collection
from dataclasses import dataclass

from toolserver._fast.ring import Ring
from toolserver.processes.pacing import Crowd

KEPT = 4 * 1024 * 1024
"""Bytes of each stream that are kept, the newest ones."""
CHUNK = 64 * 1024
"""Bytes of one read while many pipes are busy; a pipe's usual size."""
AT_ONCE = 256 * 1024
"""Bytes of one read where nobody else waits."""
FULL = CHUNK // 2
"""Bytes in one turn that show a busy pipe: a full one holds less than its size when its pages are not filled."""
FEW = 3
"""Busy pipes that the event loop is left to look at by itself; when there are more, they take turns."""
FOLLOW_NS = 200_000
"""How long a busy pipe is followed in a turn, while few are: its writer need not wait, and its pages stay cached."""
FOLLOWED = 2 * 1024 * 1024
"""Bytes of one such turn, at most."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a stream: bytes, the offset after them, and how many were gone before them."""

    data: bytes
    next: int
    dropped: int


class Output:
    """What a stream has printed: the ring, and its first lines, which a ring alone would lose."""

    __slots__ = ("_head_lines", "framed", "head", "ring")

    def __init__(self, head_lines: int | None) -> None:
        self.ring = Ring(KEPT)
        self._head_lines = head_lines
        self.head: bytes | None = None
        """The first lines, once the ring has begun to drop."""
        self.framed = 0
        """The offset up to which frames for streams have been cut."""

    def reading(self) -> Callable[[int, int, int], int]:
        """Return what reads from a descriptor as `Ring.read_from` does."""
        return self.ring.read_from if self._head_lines is None else self._read_from

    def _read_from(self, fd: int, most: int, follow_ns: int = 0) -> int:
        if self._head_lines is not None:
            if self.ring.total < KEPT:  # up to there nothing has been dropped
                most = min(most, KEPT - self.ring.total)
            else:
                self.head = self.ring.slice(0, self.ring.after_lines(self._head_lines))
                self._head_lines = None
        return self.ring.read_from(fd, most, follow_ns)

    def piece(self, since: int, *, whole: bool) -> Piece:
        """Return what is held from an offset on; unless `whole`, never the beginning of an unfinished character."""
        ring = self.ring
        since = min(since, ring.total)
        until = ring.total if whole else max(ring.boundary(ring.total), since)
        return Piece(ring.slice(since, until), until, max(ring.start - since, 0))


class Pump:
    """Reads a descriptor that does not block, its own, to the end.

    `watched` is asked whether anybody wants to know of each arrival, which `changed` tells; `ended` is called once.
    """

    __slots__ = ("_busy", "_changed", "_crowd", "_ended", "_fd", "_listening", "_loop", "_output", "_read", "_watched")

    def __init__(
        self,
        fd: int,
        output: Output,
        crowd: Crowd,
        *,
        watched: Collection[object],
        changed: Callable[[Output], object],
        ended: Callable[[], object],
    ) -> None:
        self._fd = fd
        self._output = output
        self._crowd = crowd
        self._read = output.reading()
        self._watched = watched
        self._changed = changed
        self._ended = ended
        self._busy = self._listening = False
        self._loop = asyncio.get_running_loop()

    @property
    def open(self) -> bool:
        return self._fd >= 0

    def listen(self) -> None:
        """Begin to read whatever comes, if that has not begun; until then only `drain` reads."""
        if self._fd >= 0 and not self._listening:
            self._listening = True
            self._loop.add_reader(self._fd, self._ready)

    def _ready(self) -> None:
        if self._crowd.busy > FEW:
            got = self._step(CHUNK)
        elif self._busy:
            got = self._step(FOLLOWED, FOLLOW_NS)
        else:
            got = self._step(AT_ONCE)
        if got >= FULL and self._crowd.busy > FEW:
            self._loop.remove_reader(self._fd)
            self._crowd.join(self._serve)

    def _serve(self) -> bool:
        """Take a turn in the circle; False leaves it."""
        if self._fd < 0:
            return False
        got = self._step(CHUNK)
        if got >= FULL:
            return True
        if got != 0:
            self._loop.add_reader(self._fd, self._ready)
        return False

    def _step(self, most: int, follow_ns: int = 0) -> int:
        """Take what is there, at most so much; answer its size, 0 at the end, -1 when there is nothing now."""
        got = self._read(self._fd, most, follow_ns)
        if got > 0:
            if self._watched:
                self._changed(self._output)
            if (got >= FULL) is not self._busy:
                self._set_busy(not self._busy)
        elif got == 0:
            ended = self._ended
            self.close()
            ended()
        return got

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        self._crowd.busy += 1 if busy else -1

    def drain(self) -> None:
        """Take all that is in the pipe at this moment; its end too, if that is there."""
        left: int | None = None
        while self._fd >= 0 and (left is None or left >= 0):
            got = self._read(self._fd, AT_ONCE, 0)
            if got < 0:
                return
            if got == 0:
                self.close()
                return
            if self._watched:
                self._changed(self._output)
            if left is None:
                left = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0\0\0\0"))[0]
            else:
                left -= got

    def discard(self) -> None:
        """From now on read and forget, so that whoever still holds the pipe is not held up."""
        self._forget()

    def _forget(self) -> None:
        """Let go of the process, whose rings so need not wait for a collector of cycles."""
        self._watched = ()
        self._changed = self._ended = _nothing
        self._output = _NOWHERE
        self._read = _discard

    def close(self) -> None:
        if self._fd >= 0:
            if self._busy:
                self._set_busy(False)
            if self._listening:
                self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._forget()


def _nothing(_: object = None) -> None:
    """Stand in for whoever is told no more."""


_NOWHERE = Output(None)


_scratch = bytearray(AT_ONCE)


def _discard(fd: int, most: int, follow_ns: int) -> int:
    try:
        return os.readv(fd, [memoryview(_scratch)[:most]])
    except BlockingIOError:
        return -1
    except OSError:  # EIO: a terminal whose last user has gone
        return 0
