"""Broadcasts what a process prints to the subscribers of its streams, each with a bounded queue of frames.

Specification, section 12: the ring is replayed, then what is printed follows with no byte lost or repeated between. A
subscriber that falls 1024 frames behind loses the newest ones and is told how many. Queued frames are joined up to 64
KiB, so that only a subscriber that is also far behind in bytes reaches that limit.
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
MAX_FRAMES = 1024
"""Frames queued for one subscriber at most."""
MAX_BYTES = 128 * 1024 * 1024
"""Bytes queued for all subscribers of a server together; beyond it each keeps at most `SPARED_FRAMES` frames."""
SPARED_FRAMES = 16


class QueuedBytes:
    """Counts what is queued for all subscribers of a server."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class Frame:
    """Some bytes of one stream, from `start` to before `end`; shared by subscribers unless `own`."""

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


class Message:
    """A finished JSON text between the frames."""

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


class Subscriber:
    """The queue of one subscriber. `next` is for one task; all of it runs on the event loop."""

    def __init__(self, queued_bytes: QueuedBytes, since: dict[str, int]) -> None:
        self._queued_bytes = queued_bytes
        self._since = since
        self._queue: deque[Frame | Message] = deque()
        self._lost = 0
        self._finished = False
        self._wake: asyncio.Future[None] | None = None
        self.stopped = False
        """Whether the stream ended early: the server stops, or the subscriber has left."""

    def offer(self, frame: Frame, ring: Ring) -> None:
        """Queue a frame, or count it as lost."""
        since = self._since[frame.stream]
        if frame.start < since:  # the subscription began in the middle of this one
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
        self._queued_bytes.bytes += frame.end - frame.start
        self._push(frame)

    @property
    def full(self) -> bool:
        """Whether the queue has reached its limit."""
        waiting = len(self._queue)
        return waiting >= MAX_FRAMES or (self._queued_bytes.bytes > MAX_BYTES and waiting >= SPARED_FRAMES)

    def lose(self, frames: int) -> None:
        """Count frames as lost."""
        self._lost += frames

    def _join(self, frame: Frame) -> bool:
        """Append a frame to the last one queued if the two are contiguous."""
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
        self._queued_bytes.bytes += frame.end - frame.start
        return True

    def tell(self, text: bytes) -> None:
        """Queue a message, however many frames are queued."""
        if self._lost:
            self._tell_lost()
        self._push(Message(text))

    def _tell_lost(self) -> None:
        lost, self._lost = self._lost, 0
        self._push(Message(b'{"dropped_frames":%d}' % lost))

    def _push(self, frame: Frame | Message) -> None:
        self._queue.append(frame)
        self._awake()

    def finish(self) -> None:
        """End the stream after what is queued."""
        if self._lost:
            self._tell_lost()
        self._finished = True
        self._awake()

    def stop(self) -> None:
        """End the stream at once and drop what is queued."""
        self.stopped = True
        self._queued_bytes.bytes -= sum(frame.end - frame.start for frame in self._queue if isinstance(frame, Frame))
        self._queue.clear()
        self._awake()

    def _awake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def next(self) -> bytes | None:
        """Wait for the next frame and return it as JSON; None at the end."""
        while not self._queue:
            if self._finished or self.stopped:
                return None
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        frame = self._queue.popleft()
        if isinstance(frame, Frame):
            self._queued_bytes.bytes -= frame.end - frame.start
        return frame.text()


class Broadcast:
    """Cuts what a process prints into frames, once, and queues them for all subscribers."""

    def __init__(self, outputs: dict[str, Output], queued_bytes: QueuedBytes) -> None:
        self._outputs = outputs
        self._names = {id(output): name for name, output in outputs.items()}
        self._queued_bytes = queued_bytes
        self.subscribers: set[Subscriber] = set()
        self._tap: Callable[[Output], None] | None = None
        self.listeners: set[object] = set()
        """The subscribers and the tap; while it is empty, `printed` need not be called."""

    def subscribe(self, since: dict[str, int]) -> Subscriber:
        """Add a subscriber from an offset of each stream on; what the rings hold is queued at once."""
        dropped = {}
        ends = {}
        if not self.subscribers:
            for output in self._outputs.values():
                output.framed = output.ring.boundary(output.ring.total)
        frames: list[tuple[Frame, Ring]] = []
        for name, output in self._outputs.items():
            ring = output.ring
            begin = min(since[name], ring.total)
            dropped[name] = max(ring.start - begin, 0)
            ends[name] = begin
            frames += [(frame, ring) for frame in cut(ring, name, max(begin, ring.start), output.framed)]
        subscriber = Subscriber(self._queued_bytes, ends)
        if any(dropped.values()):
            subscriber.tell(b'{"dropped":%d,"dropped_err":%d}' % (dropped["stdout"], dropped["stderr"]))
        for frame, ring in frames:
            subscriber.offer(frame, ring)
        self.subscribers.add(subscriber)
        self.listeners.add(subscriber)
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Remove a subscriber."""
        subscriber.stop()
        self.subscribers.discard(subscriber)
        self.listeners.discard(subscriber)

    def tap(self, tap: Callable[[Output], None]) -> None:
        """Call `tap` with an output whenever something was printed on it."""
        self._tap = tap
        self.listeners.add(tap)

    def printed(self, output: Output) -> None:
        """Pass on that something was printed on an output."""
        if self._tap is not None:
            self._tap(output)
        if self.subscribers:
            self.publish(output)

    def publish(self, output: Output, *, whole: bool = False) -> None:
        """Queue what was printed since the last frame; with `whole` also the beginning of an unfinished character."""
        ring = output.ring
        until = ring.total if whole else ring.boundary(ring.total)
        since = max(output.framed, ring.start)
        if not whole and all(subscriber.full for subscriber in self.subscribers):
            for subscriber in self.subscribers:
                subscriber.lose(-(-(until - since) // FRAME))
        else:
            for frame in cut(ring, self._names[id(output)], since, until):
                for subscriber in self.subscribers:
                    subscriber.offer(frame, ring)
        output.framed = max(until, output.framed)

    def finish(self, text: bytes) -> None:
        """Queue the rest and a last message, and end every stream."""
        if not self.subscribers:
            return
        for output in self._outputs.values():
            self.publish(output, whole=True)
        for subscriber in self.subscribers:
            subscriber.tell(text)
            subscriber.finish()

    def stop(self) -> None:
        for subscriber in self.subscribers:
            subscriber.stop()
