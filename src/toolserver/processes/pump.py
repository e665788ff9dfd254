"""One output stream of a running command: from its pipe, through the event loop, into its ring."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Callable, Collection
from dataclasses import dataclass

from toolserver._fast.ring import Ring

KEPT = 4 * 1024 * 1024
"""Bytes of each stream that are kept, the newest ones."""
CHUNK = 64 * 1024
"""Bytes that each pipe may hand over in a turn of the event loop, however many are busy; a pipe's usual size."""
TURN = 512 * 1024
"""Bytes taken in one turn of the event loop from all busy pipes together, as far as `CHUNK` for each allows it."""
PIPE = 256 * 1024
"""Bytes that the pipe of a command that prints much is made to hold, so that neither side waits at every turn."""
_scratch = bytearray(PIPE)


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

    def reading(self) -> Callable[[int, int], int]:
        """Answer what reads once from a descriptor, at most so many bytes, as `Ring.read_from` does."""
        return self.ring.read_from if self._head_lines is None else self._read_from

    def _read_from(self, fd: int, most: int) -> int:
        if self._head_lines is not None and self.ring.total + most > KEPT:
            self.head = self.ring.slice(0, self.ring.after_lines(self._head_lines))
            self._head_lines = None
        return self.ring.read_from(fd, most)

    def piece(self, since: int, *, whole: bool) -> Piece:
        """Answer what is held from an offset on; unless `whole`, never the beginning of an unfinished character."""
        ring = self.ring
        since = min(since, ring.total)
        until = ring.total if whole else max(ring.boundary(ring.total), since)
        return Piece(ring.slice(since, until), until, max(ring.start - since, 0))


class Pump:
    """Reads a descriptor that does not block, its own, to the end.

    `watched` is asked whether anybody wants to know of each arrival, which `changed` tells; `ended` is called once.
    """

    __slots__ = ("_busy", "_changed", "_ended", "_fd", "_loop", "_output", "_read", "_watched", "_widened")

    most = PIPE
    """Bytes of one read at present, the same for all pipes."""

    def __init__(
        self,
        fd: int,
        output: Output,
        *,
        watched: Collection[object],
        changed: Callable[[Output], object],
        ended: Callable[[], object],
    ) -> None:
        self._fd = fd
        self._output = output
        self._read = output.reading()
        self._watched = watched
        self._changed = changed
        self._ended = ended
        self._busy = self._widened = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._ready)

    @property
    def open(self) -> bool:
        return self._fd >= 0

    def _ready(self) -> None:
        # one read a turn: a second one would mostly find what little was written meanwhile, and wake the writer for it
        got = self._read(self._fd, Pump.most)
        if got > 0:
            if self._watched:
                self._changed(self._output)
            if (got >= CHUNK) is not self._busy:
                self._set_busy(not self._busy)
        elif got == 0:
            ended = self._ended
            self.close()
            ended()

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        (_busy.add if busy else _busy.discard)(self)
        Pump.most = min(PIPE, max(CHUNK, TURN // (len(_busy) or 1)))
        if busy and not self._widened:
            self._widened = True
            # EPERM: too much is in this user's pipes already; EBADF: a terminal, which cannot be widened
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, PIPE)

    def drain(self) -> None:
        """Take all that is in the pipe at this moment; its end too, if that is there."""
        if self._fd < 0:
            return
        waiting = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0\0\0\0"))[0]
        while waiting >= 0:
            got = self._read(self._fd, PIPE)
            if got < 0:
                return
            if got == 0:
                self.close()
                return
            waiting -= got
            if self._watched:
                self._changed(self._output)

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
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._forget()


def _nothing(_: object = None) -> None:
    """Stand in for whoever is told no more."""


_busy: set[Pump] = set()
"""The pumps whose pipe was full at their last turn."""
_NOWHERE = Output(None)


def _discard(fd: int, most: int) -> int:
    try:
        return os.readv(fd, [memoryview(_scratch)[:most]])
    except BlockingIOError:
        return -1
    except OSError:  # EIO: a terminal whose last user has gone
        return 0
