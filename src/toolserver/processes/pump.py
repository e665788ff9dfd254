"""One output stream of a running command: from its pipe, through the event loop, into its ring."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from dataclasses import dataclass

from toolserver._fast.ring import Ring

KEPT = 4 * 1024 * 1024
"""Bytes of each stream that are kept, the newest ones."""
CHUNK = 64 * 1024
"""Bytes taken from one pipe in one turn of the event loop, so that nobody who prints much holds up anybody else."""
_scratch = bytearray(CHUNK)


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

    def read_from(self, fd: int) -> int:
        """Read once, as `Ring.read_from` does."""
        if self._head_lines is not None and self.ring.total + CHUNK > KEPT:
            self.head = self.ring.slice(0, self.ring.after_lines(self._head_lines))
            self._head_lines = None
        return self.ring.read_from(fd, CHUNK)

    def piece(self, since: int, *, whole: bool) -> Piece:
        """Answer what is held from an offset on; unless `whole`, never the beginning of an unfinished character."""
        ring = self.ring
        since = min(since, ring.total)
        until = ring.total if whole else max(ring.boundary(ring.total), since)
        return Piece(ring.slice(since, until), until, max(ring.start - since, 0))


class Pump:
    """Reads a descriptor that does not block, its own, to the end."""

    __slots__ = ("_changed", "_discarding", "_ended", "_fd", "_loop", "output")

    def __init__(self, fd: int, output: Output, changed: Callable[[Output], None], ended: Callable[[], None]) -> None:
        self._fd = fd
        self.output = output
        self._changed = changed
        self._ended = ended
        self._discarding = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._ready)

    @property
    def open(self) -> bool:
        return self._fd >= 0

    def _ready(self) -> None:
        if self._step() == 0:
            self._ended()

    def _step(self) -> int:
        """Take what is there, at most one chunk; answer its size, 0 at the end, -1 when there is nothing now."""
        if self._discarding:
            got = _discard(self._fd)
        else:
            got = self.output.read_from(self._fd)
            if got > 0:
                self._changed(self.output)
        if got == 0:
            self.close()
        return got

    def drain(self) -> None:
        """Take all that is in the pipe at this moment; its end too, if that is there."""
        if self._fd < 0:
            return
        waiting = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0\0\0\0"))[0]
        while (got := self._step()) > 0 and waiting >= 0:
            waiting -= got

    def discard(self) -> None:
        """From now on read and forget, so that whoever still holds the pipe is not held up."""
        self._discarding = True

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


def _discard(fd: int) -> int:
    try:
        return os.readv(fd, [_scratch])
    except BlockingIOError:
        return -1
    except OSError:  # EIO: a terminal whose last user has gone
        return 0
