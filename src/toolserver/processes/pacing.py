"""Limits the work on pipes and streams in one iteration of the event loop, so that small calls need not wait.

Pipes that are always full, and streams that are always behind, would otherwise fill every iteration with megabytes and
keep the processors busy with their writers. With few of them nothing is limited.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

TICK = 0.001
"""Seconds between two rounds; the clock of the event loop resolves nothing shorter."""
SERVED = 4
"""Pipes that are read in one round: 256 MB/s for all of them together."""
SENT = 128 * 1024
"""Bytes of frames that all streams together send in one round."""
FRAME_COST = 2048
"""Bytes that one frame counts for besides its own."""


class PipeScheduler:
    """Schedules busy pipes round robin, a few each round. A callback returns whether to call it again."""

    __slots__ = ("_scheduled", "_waiting_pipes", "busy")

    def __init__(self) -> None:
        self.busy = 0
        """How many pipes were full when last read, scheduled here or not."""
        self._waiting_pipes: deque[Callable[[], bool]] = deque()
        self._scheduled = False

    def join(self, serve: Callable[[], bool]) -> None:
        self._waiting_pipes.append(serve)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_later(TICK, self._round)

    def _round(self) -> None:
        for _ in range(min(SERVED, len(self._waiting_pipes))):
            serve = self._waiting_pipes.popleft()
            if serve():
                self._waiting_pipes.append(serve)
        self._scheduled = bool(self._waiting_pipes)
        if self._scheduled:
            asyncio.get_running_loop().call_later(TICK, self._round)


class Throttle:
    """Lets so many bytes pass in one round; later callers wait for the next rounds, in order."""

    __slots__ = ("_began", "_left", "_scheduled", "_waiting")

    def __init__(self) -> None:
        self._left = SENT
        self._began = 0.0
        """When this round began. A timer ends it only while a caller waits; else the next caller does."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._scheduled = False

    async def enter(self, size: int) -> None:
        """Wait until so many bytes may be sent."""
        loop = asyncio.get_running_loop()
        size += FRAME_COST
        if not self._waiting and loop.time() - self._began >= TICK:
            self._left, self._began = SENT, loop.time()
        if not self._waiting and self._left > 0:
            self._left -= size
            return
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((size, future))
        if not self._scheduled:
            self._scheduled = True
            loop.call_later(TICK, self._round)
        await future

    def _round(self) -> None:
        loop = asyncio.get_running_loop()
        self._left, self._began = SENT, loop.time()
        while self._waiting and self._left > 0:
            size, future = self._waiting.popleft()
            if not future.done():
                self._left -= size
                future.set_result(None)
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            loop.call_later(TICK, self._round)
