"""What a watch tells: the ring of its events, and the merging of a burst (specification, section 8)."""

from __future__ import annotations

import asyncio
import fnmatch
import re
from collections import deque
from typing import Any

KEPT = 1000
"""Events that a watch keeps."""

Event = dict[str, Any]

_MERGED = {
    ("create", "modify"): "create",
    ("create", "create"): "create",
    ("create", "remove"): None,
    ("modify", "create"): "modify",
    ("modify", "modify"): "modify",
    ("modify", "remove"): "remove",
    ("remove", "create"): "modify",
    ("remove", "modify"): "modify",
    ("remove", "remove"): "remove",
}

TEMPORARIES = ("4913", "*~", ".#*", "#*#", ".*.sw?", ".goutputstream-*", "*___jb_tmp___", "*___jb_old___", ".*.tmp")
"""Names of files that editors (and this server's writer, `.*.tmp`) make beside the one they save."""
_TEMPORARY = re.compile("|".join(fnmatch.translate(pattern) for pattern in TEMPORARIES))


def is_temporary(name: str) -> bool:
    """Tell whether a file's base name is that of an editor's temporary."""
    return _TEMPORARY.match(name) is not None


class Burst:
    """Changes of a few milliseconds, merged per path: a file made and removed again was never there."""

    def __init__(self) -> None:
        self._kinds: dict[bytes, str] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, path: bytes, kind: str) -> None:
        """Take one change: kind is create, modify or remove."""
        before = self._kinds.get(path)
        merged = kind if before is None else _MERGED[before, kind]
        if merged is None:
            del self._kinds[path]
        else:
            self._kinds[path] = merged

    def take(self) -> list[tuple[bytes, str]]:
        """Return what is left of the burst, each path in the place of its first change, and begin anew."""
        taken, self._kinds = list(self._kinds.items()), {}
        return taken


class EventRing:
    """The last 1000 events of a watch, numbered from 0, for any number of readers."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=KEPT)
        self.total = 0
        """How many events there have been: the number of the next one."""
        self.closed = False
        self._waiting: set[asyncio.Future[None]] = set()

    def put(self, event: Event) -> None:
        """Add an event and wake the readers; after `close` it is ignored."""
        if not self.closed:
            self._events.append(event)
            self.total += 1
            self._wake()

    def close(self) -> None:
        """Say that no event follows, and wake the readers."""
        self.closed = True
        self._wake()

    def since(self, number: int) -> tuple[list[Event], int, int]:
        """Return the events from `number` on, the number of the next one, and how many before were not kept any more.

        A number past the end answers none.
        """
        first = self.total - len(self._events)
        skipped = max(0, number - first)
        kept = [event for index, event in enumerate(self._events) if index >= skipped]
        return kept, self.total, max(0, first - number)

    async def changed(self, number: int) -> None:
        """Wait until there is an event of `number` or later, or no more will come."""
        while self.total <= number and not self.closed:
            woken = asyncio.get_running_loop().create_future()
            self._waiting.add(woken)
            try:
                await woken
            finally:
                self._waiting.discard(woken)

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
