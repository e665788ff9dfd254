"""Connections that have not shown the token yet: few of them, each for a short time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Protocol

MAX_CONNECTIONS = 256
"""How many there may be; above that the oldest is closed."""
DEADLINE_S = 10
"""Seconds from the connect in which a request with the token must have come."""


class Connection(Protocol):
    """What is closed when there are too many, or when its time is over."""

    @property
    def answering(self) -> bool:
        """Whether a whole head has come and its answer is not complete."""

    def abort(self) -> None:
        """Close it at once, whatever is still to be sent."""


class Unauthenticated:
    """The connections of a server that have not shown the token, oldest first."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Connection, asyncio.TimerHandle]] = {}
        self._numbers = count()
        self._trimming = False

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> Callable[[], None]:
        """Take a new connection. Return what is called once it has shown the token, and when it is closed."""
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        self._open[number] = connection, loop.call_later(DEADLINE_S, connection.abort)
        if len(self._open) > MAX_CONNECTIONS and not self._trimming:
            self._trimming = True
            # Trim after two turns of the loop: in the first, what clients have sent already is read; in the second, the
            # requests among it are checked for the token.
            loop.call_soon(loop.call_soon, self._trim)
        return partial(self._discard, number)

    def _discard(self, number: int) -> None:
        found = self._open.pop(number, None)
        if found is not None:
            found[1].cancel()

    def _trim(self) -> None:
        """Close the oldest connections above the bound, those that wait for a request before any other."""
        self._trimming = False
        excess = len(self._open) - MAX_CONNECTIONS
        if excess > 0:
            connections = [connection for connection, _ in self._open.values()]
            for connection in sorted(connections, key=lambda one: one.answering)[:excess]:
                connection.abort()
