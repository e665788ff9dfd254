"""One subscriber to a watch's events, as a stream sends them (specification, section 12)."""

from __future__ import annotations

import asyncio
from collections import deque

import orjson

from toolserver.watches.watch import Watch


class WatchSubscriber:
    """Yields a watch's events from a number on, then its state; first, how many of them are no longer kept."""

    def __init__(self, watch: Watch, since: int) -> None:
        self._ring = watch.events
        self._next = min(since, self._ring.total)
        self._ready: deque[bytes] = deque()
        self._ended = False
        self.stopped = False
        """Whether the server stops, or the client has left, before the end."""
        self._waiting: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """End at once."""
        self.stopped = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def next(self) -> bytes | None:
        """Wait for the next frame and return it as JSON; None at the end."""
        while not self._ready:
            if self.stopped or self._ended:
                return None
            if self._ring.total <= self._next and not self._ring.closed:
                self._waiting = asyncio.get_running_loop().create_task(self._ring.changed(self._next))
                await asyncio.wait([self._waiting])
                continue
            self._take()
        return None if self.stopped else self._ready.popleft()

    def _take(self) -> None:
        events, self._next, dropped = self._ring.since(self._next)
        if dropped:
            self._ready.append(orjson.dumps({"dropped_events": dropped}))
        self._ready += map(orjson.dumps, events)
        if self._ring.closed:
            self._ready.append(orjson.dumps({"state": "stopped"}))
            self._ended = True
