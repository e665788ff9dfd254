"""Changes of paths, in batches: observed on a thread, merged on the event loop (specification, section 8)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable

from toolserver.watches.events import Burst
from toolserver.watches.interest import Interest
from toolserver.watches.observer import Change, Observer, WatchLimit
from toolserver.watches.polling import Poller, reports

BURST = 0.05
"""Seconds in which the changes of a path are merged."""

_logger = logging.getLogger(__name__)

Batch = Callable[[list[Change]], None]


class PathWatch:
    """Tells `batch` what changed below `targets` of a tree, until `close`.

    `root` is a descriptor of the tree's root, which this object closes; `where` is its absolute path.
    """

    def __init__(self, root: int, where: bytes, targets: list[bytes], interest: Interest, batch: Batch) -> None:
        self._root = root
        self._where = where
        self._targets = targets
        self._interest = interest
        self._batch = batch
        self._loop = asyncio.get_running_loop()
        self._burst = Burst()
        self._timer: asyncio.TimerHandle | None = None
        self._observer: Observer | None = None
        self._poller: Poller | None = None
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Begin: what changes after this returns is told. Raises OSError where the root is gone."""
        if not await asyncio.to_thread(reports, self._root):
            await self._poll("the file system does not report changes")
            return
        try:
            self._observer = Observer(os.dup(self._root), self._interest)
            await asyncio.to_thread(self._observer.start)
        except WatchLimit as limit:
            self._end_observer()
            await self._poll(f"the limit {limit} is reached")
            return
        if self._closed:
            self._end_observer()
        else:
            self._listen()

    def close(self) -> None:
        """End it; nothing is told any more. Again is no error."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is None or self._task.done():
            self._end_observer()  # else the thread uses it: `_collect` ends it
        if self._poller is not None:
            self._poller.close()
        os.close(self._root)

    # --------------------------------------------------------------------------------------------------- observing

    def _listen(self) -> None:
        assert self._observer is not None
        self._loop.add_reader(self._observer.fileno(), self._readable)

    def _readable(self) -> None:
        assert self._observer is not None
        self._loop.remove_reader(self._observer.fileno())
        self._task = self._loop.create_task(self._collect(self._observer))

    async def _collect(self, observer: Observer) -> None:
        """Take what waits on a thread, since new directories are looked into, and listen again."""
        try:
            self._add(await asyncio.to_thread(observer.collect))
        except WatchLimit as limit:
            await self._poll(f"the limit {limit} is reached")
            self._add(await asyncio.to_thread(observer.rescan))  # what changed before the first look was over
            self._end_observer()
            return
        if self._closed:
            self._end_observer()
        else:
            self._listen()

    def _end_observer(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            self._loop.remove_reader(observer.fileno())
            observer.close()

    # ------------------------------------------------------------------------------------------------------ looking

    async def _poll(self, reason: str) -> None:
        """Begin to look again and again; what changes after this returns is told."""
        if self._closed:
            return
        _logger.warning("a watch looks for changes again and again: %s", reason)
        self._poller = Poller(os.dup(self._root), self._where, self._targets, self._interest)
        self._looking = self._loop.create_task(self._look(self._poller))
        looked = self._loop.create_task(self._poller.looked.wait())
        await asyncio.wait([looked, self._looking], return_when=asyncio.FIRST_COMPLETED)
        looked.cancel()

    async def _look(self, poller: Poller) -> None:
        async for changes in poller.changes():
            self._add(changes)

    # -------------------------------------------------------------------------------------------------- the batches

    def _add(self, changes: list[Change]) -> None:
        if self._closed:
            return
        for path, kind in changes:
            self._burst.add(path, kind)
        if self._burst and self._timer is None:
            self._timer = self._loop.call_later(BURST, self._flush)

    def _flush(self) -> None:
        self._timer = None
        taken = self._burst.take()
        if taken:
            self._batch(taken)
