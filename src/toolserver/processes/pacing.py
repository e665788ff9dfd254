"""Paces endless work, so that small calls find the event loop and a processor free.

Pipes that are always full, and streams that are always behind, would else fill every turn of the loop with megabytes,
and keep the processors busy with whoever fills those pipes. What is not crowded is not paced.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

TICK = 0.001
"""Seconds between two turns of those that have to wait, the shortest that the event loop's clock tells apart."""
SERVED = 4
"""Crowded pipes that are read in one turn: 256 MB/s for all of them together."""
SENT = 128 * 1024
"""Bytes of frames that all streams together hand out in one turn."""
FRAME_COST = 2048
"""What a frame costs beside its bytes, in bytes."""


class Crowd:
    """Serves in a circle, a few each turn. A server gives back whether it is to be served again."""

    __slots__ = ("_circle", "_scheduled", "busy")

    def __init__(self) -> None:
        self.busy = 0
        """How many pipes were full when last read, in the circle or not."""
        self._circle: deque[Callable[[], bool]] = deque()
        self._scheduled = False

    def join(self, serve: Callable[[], bool]) -> None:
        self._circle.append(serve)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_later(TICK, self._turn)

    def _turn(self) -> None:
        for _ in range(min(SERVED, len(self._circle))):
            serve = self._circle.popleft()
            if serve():
                self._circle.append(serve)
        self._scheduled = bool(self._circle)
        if self._scheduled:
            asyncio.get_running_loop().call_later(TICK, self._turn)


class Turnstile:
    """Lets so many bytes through in one turn; whoever comes later waits for the next ones, in order."""

    __slots__ = ("_began", "_left", "_scheduled", "_waiting")

    def __init__(self) -> None:
        self._left = SENT
        self._began = 0.0
        """When this turn began. Only where somebody waits a timer ends it; else whoever comes next does."""
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
            loop.call_later(TICK, self._turn)
        await future

    def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        self._left, self._began = SENT, loop.time()
        while self._waiting and self._left > 0:
            size, future = self._waiting.popleft()
            if not future.done():
                self._left -= size
                future.set_result(None)
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            loop.call_later(TICK, self._turn)
