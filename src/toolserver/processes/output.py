"""One output stream of a running command: from its pipe, through the event loop, into its ring."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable, Collection
from dataclasses import dataclass

from toolserver._fast.ring import RING_SIZE, Ring
from toolserver.processes.pacing import PipeScheduler

CHUNK = 64 * 1024
"""Bytes of one read while many pipes are busy; a pipe's usual size."""
MAX_READ = 256 * 1024
"""Bytes of one read while few pipes are busy."""
BUSY_BYTES = CHUNK // 2
"""Bytes of one read that make a pipe busy: a full pipe may hold less than its size, its pages being part filled."""
FEW_BUSY = 3
"""Busy pipes up to which the event loop serves each of them; more take turns."""
FOLLOW_NS = 200_000
"""Nanoseconds for which one busy pipe of few is read on: its writer does not wait, and its pages stay cached."""
FOLLOWED = 2 * 1024 * 1024
"""Bytes read in that time at most."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a stream: its bytes, the offset after them, and how many before them were dropped."""

    data: bytes
    next: int
    dropped: int


class Output:
    """What was printed on a stream: the ring, and the first lines, which the ring alone would lose."""

    __slots__ = ("_head_lines", "framed", "head", "ring")

    def __init__(self, head_lines: int | None) -> None:
        self.ring = Ring(RING_SIZE)
        self._head_lines = head_lines
        self.head: bytes | None = None
        """The first lines, once the ring has begun to drop."""
        self.framed = 0
        """The offset up to which frames for streams have been cut."""

    def reading(self) -> Callable[[int, int, int], int]:
        """Return the function that fills the ring from a descriptor, called as `Ring.read_from`."""
        return self.ring.read_from if self._head_lines is None else self._read_from

    def _read_from(self, fd: int, most: int, follow_ns: int = 0) -> int:
        if self._head_lines is not None:
            if self.ring.total < RING_SIZE:  # up to there nothing has been dropped
                most = min(most, RING_SIZE - self.ring.total)
            else:
                self.head = self.ring.slice(0, self.ring.after_lines(self._head_lines))
                self._head_lines = None
        return self.ring.read_from(fd, most, follow_ns)

    def piece(self, since: int, *, whole: bool) -> Chunk:
        """Return what is held from an offset on; unless `whole`, never the beginning of an unfinished character."""
        ring = self.ring
        since = min(since, ring.total)
        until = ring.total if whole else max(ring.boundary(ring.total), since)
        return Chunk(ring.slice(since, until), until, max(ring.start - since, 0))


class PipeReader:
    """Reads a non-blocking descriptor to its end, and closes it.

    While `listeners` is not empty, `changed` is called after each read; `ended` is called once, at the end.
    """

    __slots__ = (
        "_busy",
        "_changed",
        "_ended",
        "_fd",
        "_listeners",
        "_listening",
        "_loop",
        "_output",
        "_read",
        "_scheduler",
    )

    def __init__(
        self,
        fd: int,
        output: Output,
        scheduler: PipeScheduler,
        *,
        listeners: Collection[object],
        changed: Callable[[Output], object],
        ended: Callable[[], object],
    ) -> None:
        self._fd = fd
        self._output = output
        self._scheduler = scheduler
        self._read = output.reading()
        self._listeners = listeners
        self._changed = changed
        self._ended = ended
        self._busy = self._listening = False
        self._loop = asyncio.get_running_loop()

    @property
    def open(self) -> bool:
        return self._fd >= 0

    def listen(self) -> None:
        """Read whenever something arrives; before this call only `drain` reads."""
        if self._fd >= 0 and not self._listening:
            self._listening = True
            self._loop.add_reader(self._fd, self._ready)

    def _ready(self) -> None:
        if self._scheduler.busy > FEW_BUSY:
            got = self._step(CHUNK)
        elif self._busy:
            got = self._step(FOLLOWED, FOLLOW_NS)
        else:
            got = self._step(MAX_READ)
        if got >= BUSY_BYTES and self._scheduler.busy > FEW_BUSY:
            self._loop.remove_reader(self._fd)
            self._scheduler.join(self._serve)

    def _serve(self) -> bool:
        """Read once when the scheduler says so; False leaves the scheduler."""
        if self._fd < 0:
            return False
        got = self._step(CHUNK)
        if got >= BUSY_BYTES:
            return True
        if got != 0:
            self._loop.add_reader(self._fd, self._ready)
        return False

    def _step(self, most: int, follow_ns: int = 0) -> int:
        """Read what is there, at most `most` bytes; return its size, 0 at the end, -1 when nothing is there now."""
        got = self._read(self._fd, most, follow_ns)
        if got > 0:
            if self._listeners:
                self._changed(self._output)
            if (got >= BUSY_BYTES) is not self._busy:
                self._set_busy(not self._busy)
        elif got == 0:
            ended = self._ended
            self.close()
            ended()
        return got

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        self._scheduler.busy += 1 if busy else -1

    def drain(self) -> None:
        """Read all that is in the pipe at this moment, and its end if that is there."""
        left: int | None = None
        while self._fd >= 0 and (left is None or left >= 0):
            got = self._read(self._fd, MAX_READ, 0)
            if got < 0:
                return
            if got == 0:
                self.close()
                return
            if self._listeners:
                self._changed(self._output)
            if left is None:
                left = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0\0\0\0"))[0]
            else:
                left -= got

    def discard(self) -> None:
        """Discard what is read from now on, so that other holders of the pipe never block on it."""
        self._forget()

    def _forget(self) -> None:
        """Drop the references to the process, whose rings are then freed without the cycle collector."""
        self._listeners = ()
        self._changed = self._ended = _nothing
        self._output = _DISCARDED
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
    """Take the place of a callback that is not to be called any more."""


_DISCARDED = Output(None)


_scratch = bytearray(MAX_READ)


def _discard(fd: int, most: int, follow_ns: int) -> int:
    try:
        return os.readv(fd, [memoryview(_scratch)[:most]])
    except BlockingIOError:
        return -1
    except OSError:  # EIO: a terminal whose last user has gone
        return 0
