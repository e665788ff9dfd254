"""The table of watches of a server: ids, the limit, what stays listed, the end of all (specification, section 8)."""

from __future__ import annotations

import asyncio

from toolserver.errors import ToolError
from toolserver.watches.watch import Watch, WatchRequest

MAX_RUNNING = 32
"""Watches that run at once."""
KEPT_SECONDS = 600.0
"""Seconds that a stopped watch can still be polled."""


class WatchTable:
    """All watches of a server, of every tree."""

    def __init__(self) -> None:
        self.last_number = 0
        """The number of the newest id; ids are never used again."""
        self._watches: dict[str, Watch] = {}
        self._stopped: dict[Watch, asyncio.TimerHandle] = {}

    def add(self, tree: str, request: WatchRequest) -> Watch:
        """Make a watch, not yet begun. ToolError when 32 run already."""
        if len(self._watches) - len(self._stopped) >= MAX_RUNNING:
            raise ToolError(f"{MAX_RUNNING} watches already; stop one with watch_stop")
        self.last_number += 1
        watch = Watch(f"w{self.last_number}", tree, request)
        watch.on_stop = self._keep
        self._watches[watch.id] = watch
        return watch

    def discard(self, watch: Watch) -> None:
        """Remove a watch."""
        self._watches.pop(watch.id, None)
        timer = self._stopped.pop(watch, None)
        if timer is not None:
            timer.cancel()

    def find(self, tree: str, name: str) -> Watch | None:
        """Return a tree's watch, None where it is another tree's, unknown or long gone."""
        watch = self._watches.get(name)
        return watch if watch is not None and watch.tree == tree else None

    def get(self, tree: str, name: str) -> Watch:
        """Return a tree's watch; ToolError `no watch ID` where there is none."""
        watch = self.find(tree, name)
        if watch is None:
            raise ToolError(f"no watch {name}")
        return watch

    def _keep(self, watch: Watch) -> None:
        """Keep a stopped watch for ten minutes."""
        loop = asyncio.get_running_loop()
        self._stopped[watch] = loop.call_later(KEPT_SECONDS, self.discard, watch)

    async def stop(self) -> None:
        """Stop every watch and forget them."""
        await asyncio.gather(*(watch.stop() for watch in list(self._watches.values())))
        for watch in list(self._stopped):
            self.discard(watch)
