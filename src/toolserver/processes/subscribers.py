"""What streams of a process send: frames cut once for all readers, each with a queue that never grows past its bounds.

Specification, section 12: the ring is replayed, then what is printed follows with no byte lost or repeated between. A
reader that falls 1024 frames behind loses the newest ones and is told how many. Frames that wait are joined up to 64
KiB, so that only who is far behind in bytes, too, gets there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from toolserver._fast.lines import json_string, well_formed
from toolserver._fast.ring import Ring
from toolserver.processes.output import Output

FRAME = 64 * 1024
"""Bytes of text in one frame."""
ILL_FORMED = FRAME // 3
"""Bytes of output that stay below `FRAME` as text when each of them becomes U+FFFD."""
BEHIND = 1024
"""Frames that wait for one reader at most."""
BACKLOG = 128 * 1024 * 1024
"""Bytes that wait for all readers of a server together; beyond it a reader keeps no more than `SPARE` frames."""
SPARE = 16


class Backlog:
    """Counts what waits for all readers of a server."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class Frame:
    """Some bytes of one stream, from `start` to before `end`; shared by readers unless `own`."""

    __slots__ = ("_text", "clean", "end", "own", "parts", "start", "stream")

    def __init__(self, stream: str, start: int, parts: list[bytes], *, clean: bool, own: bool = False) -> None:
        self.stream = stream
        self.start = start
        self.end = start + sum(map(len, parts))
        self.parts = parts
        self.clean = clean
        self.own = own
        self._text: bytes | None = None

    def text(self) -> bytes:
        """Return the frame as JSON."""
        if self._text is None:
            self._text = b'{"stream":"%s","data":%s}' % (self.stream.encode(), json_string(b"".join(self.parts)))
        return self._text


class Told:
    """A finished piece of JSON among the frames."""

    __slots__ = ("_text",)

    def __init__(self, text: bytes) -> None:
        self._text = text

    def text(self) -> bytes:
        return self._text


def cut(ring: Ring, stream: str, since: int, until: int) -> list[Frame]:
    """Cut what is held between two offsets into frames of whole characters, none longer than 64 KiB of text."""
    frames = []
    while since < until:
        end = until if until - since <= FRAME else ring.boundary(since + FRAME)
        data = ring.slice(since, end)
        clean = well_formed(data) == len(data)
        if not clean and len(data) > ILL_FORMED:
            end = ring.boundary(since + ILL_FORMED)
            data = ring.slice(since, end)
            clean = well_formed(data) == len(data)
        frames.append(Frame(stream, since, [data], clean=clean))
        since = end
    return frames


class Reader:
    """One reader of a process's streams. `next` is for one task; the rest is called on the event loop."""

    def __init__(self, backlog: Backlog, since: dict[str, int]) -> None:
        self._backlog = backlog
        self._since = since
        self._queue: deque[Frame | Told] = deque()
        self._lost = 0
        self._finished = False
        self._wake: asyncio.Future[None] | None = None
        self.stopped = False
        """Whether the server stops, or the reader has left, before the end."""

    def offer(self, frame: Frame, ring: Ring) -> None:
        """Queue a frame, or count it as lost."""
        since = self._since[frame.stream]
        if frame.start < since:  # it began in the middle of this one
            if frame.end <= since:
                return
            data = ring.slice(since, frame.end)
            frame = Frame(frame.stream, since, [data], clean=False, own=True)
        if self._join(frame):
            return
        if self.full:
            self._lost += 1
            return
        if self._lost:
            self._tell_lost()
        self._backlog.bytes += frame.end - frame.start
        self._push(frame)

    @property
    def full(self) -> bool:
        """Whether as much waits as may."""
        waiting = len(self._queue)
        return waiting >= BEHIND or (self._backlog.bytes > BACKLOG and waiting >= SPARE)

    def lose(self, frames: int) -> None:
        """Count frames as lost."""
        self._lost += frames

    def _join(self, frame: Frame) -> bool:
        """Join a frame to the last one that waits, where they are of one piece."""
        last = self._queue[-1] if self._queue else None
        if (
            not isinstance(last, Frame)
            or self._lost
            or last.stream != frame.stream
            or last.end != frame.start
            or not (last.clean and frame.clean)
            or frame.end - last.start > FRAME
        ):
            return False
        if not last.own:
            last = Frame(last.stream, last.start, list(last.parts), clean=True, own=True)
            self._queue[-1] = last
        last.parts += frame.parts
        last.end = frame.end
        self._backlog.bytes += frame.end - frame.start
        return True

    def tell(self, text: bytes) -> None:
        """Queue a finished piece of JSON, whatever waits."""
        if self._lost:
            self._tell_lost()
        self._push(Told(text))

    def _tell_lost(self) -> None:
        lost, self._lost = self._lost, 0
        self._push(Told(b'{"dropped_frames":%d}' % lost))

    def _push(self, frame: Frame | Told) -> None:
        self._queue.append(frame)
        self._awake()

    def finish(self) -> None:
        """There comes nothing more; what waits is still handed out."""
        if self._lost:
            self._tell_lost()
        self._finished = True
        self._awake()

    def stop(self) -> None:
        """End at once; what waits is forgotten."""
        self.stopped = True
        self._backlog.bytes -= sum(frame.end - frame.start for frame in self._queue if isinstance(frame, Frame))
        self._queue.clear()
        self._awake()

    def _awake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def next(self) -> bytes | None:
        """Wait for the next frame and answer it as JSON; None at the end."""
        while not self._queue:
            if self._finished or self.stopped:
                return None
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        frame = self._queue.popleft()
        if isinstance(frame, Frame):
            self._backlog.bytes -= frame.end - frame.start
        return frame.text()


class Feed:
    """Hands what a process prints to its readers."""

    def __init__(self, outputs: dict[str, Output], backlog: Backlog) -> None:
        self._outputs = outputs
        self._names = {id(output): name for name, output in outputs.items()}
        self._backlog = backlog
        self.readers: set[Reader] = set()
        self._tap: Callable[[Output], None] | None = None
        self.interested: set[object] = set()
        """The readers and the tap: whoever wants `printed` to be called."""

    def open(self, since: dict[str, int]) -> Reader:
        """Begin a reader at an offset of each stream: what is held is queued at once."""
        dropped = {}
        ends = {}
        if not self.readers:
            for output in self._outputs.values():
                output.framed = output.ring.boundary(output.ring.total)
        frames: list[tuple[Frame, Ring]] = []
        for name, output in self._outputs.items():
            ring = output.ring
            begin = min(since[name], ring.total)
            dropped[name] = max(ring.start - begin, 0)
            ends[name] = begin
            frames += [(frame, ring) for frame in cut(ring, name, max(begin, ring.start), output.framed)]
        reader = Reader(self._backlog, ends)
        if any(dropped.values()):
            reader.tell(b'{"dropped":%d,"dropped_err":%d}' % (dropped["stdout"], dropped["stderr"]))
        for frame, ring in frames:
            reader.offer(frame, ring)
        self.readers.add(reader)
        self.interested.add(reader)
        return reader

    def close(self, reader: Reader) -> None:
        """Forget a reader that has left."""
        reader.stop()
        self.readers.discard(reader)
        self.interested.discard(reader)

    def tap(self, tap: Callable[[Output], None]) -> None:
        """Have `tap` called with each output that something was printed on."""
        self._tap = tap
        self.interested.add(tap)

    def printed(self, output: Output) -> None:
        """Something has come on an output."""
        if self._tap is not None:
            self._tap(output)
        if self.readers:
            self.publish(output)

    def publish(self, output: Output, *, whole: bool = False) -> None:
        """Hand out what has come; with `whole` the beginning of an unfinished character, too."""
        ring = output.ring
        until = ring.total if whole else ring.boundary(ring.total)
        since = max(output.framed, ring.start)
        if not whole and all(reader.full for reader in self.readers):
            for reader in self.readers:
                reader.lose(-(-(until - since) // FRAME))
        else:
            for frame in cut(ring, self._names[id(output)], since, until):
                for reader in self.readers:
                    reader.offer(frame, ring)
        output.framed = max(until, output.framed)

    def finish(self, text: bytes) -> None:
        """Hand out the rest and a last frame."""
        if not self.readers:
            return
        for output in self._outputs.values():
            self.publish(output, whole=True)
        for reader in self.readers:
            reader.tell(text)
            reader.finish()

    def stop(self) -> None:
        for reader in self.readers:
            reader.stop()
