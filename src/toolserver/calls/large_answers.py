"""Memory of large answers: a budget of the server that calls take shares of, first come first served."""

from __future__ import annotations

import asyncio
import collections

from toolserver.calls.client import Client
from toolserver.errors import ToolError

BUDGET = 256 * 1024 * 1024
"""Bytes of large answers, made or being made, that the server keeps at a time."""


class ClientLeft(ToolError):
    """The client left while its call waited for memory; nobody reads this."""


class Share:
    """What one call may keep of the budget, from `AnswerMemory.take` until `release`."""

    __slots__ = ("_memory", "size")

    def __init__(self, memory: AnswerMemory, size: int) -> None:
        self._memory = memory
        self.size = size

    def shrink(self, size: int) -> None:
        """Keep only so many bytes; no more than before."""
        if size < self.size:
            spare, self.size = self.size - size, size
            self._memory.give_back(spare)

    def release(self) -> None:
        """Give everything back; a second call does nothing."""
        self.shrink(0)


class AnswerMemory:
    """The budget. Used on the event loop only."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.free = budget
        self._waiting: collections.deque[tuple[int, asyncio.Future[None]]] = collections.deque()

    async def take(self, size: int, client: Client) -> Share:
        """Wait for so many bytes, after the calls that came before. More than the whole budget counts as the budget.

        They are given back when the answer has been sent or dropped, or earlier by the share itself. Raises ClientLeft.
        """
        size = min(size, self.budget)
        if self._waiting or size > self.free:
            await self._turn(size, client)
        else:
            self.free -= size
        share = Share(self, size)
        client.on_end(share.release)
        return share

    async def _turn(self, size: int, client: Client) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (size, granted)
        self._waiting.append(place)

        def leave() -> None:
            granted.cancel()

        client.on_leave(leave)
        try:
            await granted
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
                self._grant()
            else:  # granted in the same turn of the loop
                self.give_back(size)
            if client.gone:
                raise ClientLeft("the client left") from None
            raise

    def give_back(self, size: int) -> None:
        """Return bytes to the budget and let those go on for which there is room, in their order."""
        self.free += size
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.free:
            size, granted = self._waiting.popleft()
            if granted.cancelled():
                continue
            self.free -= size
            granted.set_result(None)
