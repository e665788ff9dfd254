"""The events of a watch: how a burst of changes is merged, and the ring that keeps them (specification, section 8)."""

from __future__ import annotations

import asyncio
import fnmatch
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

KEPT = 1000
"""Events that a watch keeps."""

Event = dict[str, Any]
Item = TypeVar("Item")
Change = tuple[bytes, str, bool]
"""A root-relative path, what happened to it, and whether it is (or was) a directory."""
CREATE, MODIFY, REMOVE = "create", "modify", "remove"

TEMPORARIES = (
    *("4913", "*~", ".#*", "#*#", ".*.sw?", ".goutputstream-*", "*___jb_tmp___", "*___jb_old___", ".*.tmp"),
    ".toolserver-*.part",
)
"""Names of files that editors and this server (`.*.tmp`, `.toolserver-*.part`) make beside the one they save."""
_TEMPORARY = re.compile("|".join(fnmatch.translate(pattern) for pattern in TEMPORARIES))


def is_temporary(name: str) -> bool:
    """Tell whether a file's base name is that of an editor's temporary."""
    return _TEMPORARY.match(name) is not None


class Coalescer:
    """Merges the changes of a burst per path, to what has become of it: a file made and removed again is no change.

    A file that was removed and made again is modified; of a directory that was, only what differs below is reported.
    """

    def __init__(self) -> None:
        self._net: dict[bytes, tuple[bool | None, bool | None]] = {}
        """What each path was and what it is: a directory, a file (False), or nothing (None)."""

    def __bool__(self) -> bool:
        return bool(self._net)

    def add(self, change: Change) -> None:
        """Add the next change."""
        path, kind, is_dir = change
        before = None if kind == CREATE else is_dir
        now = None if kind == REMOVE else is_dir
        known = self._net.get(path)
        self._net[path] = before if known is None else known[0], now

    def take(self) -> list[tuple[bytes, str]]:
        """Return the path and kind of each change that is left, in order of their first, and start again."""
        taken, self._net = self._net, {}
        return [(path, kind) for path, (before, now) in taken.items() for kind in _kinds(before, now)]


def _kinds(before: bool | None, now: bool | None) -> tuple[str, ...]:
    if before is None:
        return () if now is None else (CREATE,)
    if now is None:
        return (REMOVE,)
    if before != now:
        return REMOVE, CREATE
    return () if now else (MODIFY,)


class EventRing:
    """The last 1000 events of a watch, numbered from 0, for any number of subscribers."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=KEPT)
        self.total = 0
        """How many events there have been: the number of the next one."""
        self.closed = False
        self._waiting: set[asyncio.Future[None]] = set()

    def extend(self, made: Callable[[Item], Event], items: Sequence[Item]) -> None:
        """Add the event that `made` makes of each item, and wake the subscribers; after `close` it is ignored."""
        if items and not self.closed:
            self._events.extend(map(made, items[-KEPT:]))
            self.total += len(items)
            self._wake()

    def put(self, event: Event) -> None:
        """Add one event."""
        self.extend(lambda one: one, [event])

    def close(self) -> None:
        """Take no more events, and wake the subscribers."""
        self.closed = True
        self._wake()

    def since(self, number: int) -> tuple[list[Event], int, int]:
        """Return the events from `number` on, the number of the next one, and how many of them are no longer kept.

        For a number past the end there are none.
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
