"""Changes of paths, in batches: observed on a thread, merged on the event loop (specification, section 8)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar

from toolserver.watches.events import Change, Coalescer
from toolserver.watches.filter import WatchFilter
from toolserver.watches.observer import Observer, WatchLimit
from toolserver.watches.polling import UNSEEN_PAUSE, Poller, Scout, reports

BURST = 0.05
"""Seconds in which the changes of a path are merged."""

_logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Batch = list[tuple[bytes, str]]
"""Root-relative paths and what happened to each."""


class PathWatch:
    """Reports to `batch` what changes of a tree as far as `watched` covers it, until `close`.

    `root` is a descriptor of the tree's root, which this object closes.
    """

    def __init__(self, root: int, watched: WatchFilter, batch: Callable[[Batch], None]) -> None:
        self._root = root
        self._filter = watched
        self._batch = batch
        self._loop = asyncio.get_running_loop()
        self._coalescer = Coalescer()
        self._timer: asyncio.TimerHandle | None = None
        self._observer: Observer | None = None
        self._poller: Poller | None = None
        self._task: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._busy: asyncio.Future[Any] | None = None
        """What runs on a thread, with this object's descriptors."""
        self._closed = False
        self._wake = asyncio.Event()
        """Set when polling is to look, or to end."""

    async def start(self) -> None:
        """Start: what changes after this returns is reported. Raises OSError where the root is gone."""
        if not await self._on_thread(lambda: reports(self._root)):
            await self._poll("the file system does not report changes")
            return
        if self._closed:
            return
        try:
            self._observer = Observer(os.dup(self._root), self._filter)
            await self._on_thread(self._observer.start)
        except WatchLimit as limit:
            await self._poll(f"the limit {limit} is reached")
        else:
            self._listen()

    def close(self) -> None:
        """End it; nothing is reported any more. Again is no error."""
        if self._closed:
            return
        self._closed = True
        self._wake.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._busy is None or self._busy.done():
            self._release()
        else:
            self._busy.add_done_callback(self._release)

    def _release(self, busy: asyncio.Future[Any] | None = None) -> None:
        if busy is not None and not busy.cancelled():
            busy.exception()  # its caller may have been cancelled
        self._end_observer()
        if self._poller is not None:
            self._poller.close()
        os.close(self._root)

    async def _on_thread(self, call: Callable[[], Result]) -> Result:
        """Return what `call` returns; nothing it uses is closed before it is over, also where this is cancelled."""
        self._busy = busy = self._loop.run_in_executor(None, call)
        return await asyncio.shield(busy)

    # --------------------------------------------------------------------------------------------------- observing

    def _listen(self) -> None:
        if self._observer is not None:
            self._loop.add_reader(self._observer.fileno(), self._readable, self._observer)

    def _readable(self, observer: Observer) -> None:
        self._loop.remove_reader(observer.fileno())
        self._task = self._loop.create_task(self._collect(observer))

    async def _collect(self, observer: Observer) -> None:
        """Collect what waits on a thread, since new directories are looked into, and listen again."""
        try:
            self._add(await self._on_thread(observer.collect))
        except WatchLimit as limit:
            await self._poll(f"the limit {limit} is reached", observer.rescan)
        else:
            self._listen()

    def _end_observer(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            self._loop.remove_reader(observer.fileno())
            observer.close()

    # --------------------------------------------------------------------------------------------------------- polling

    async def _poll(self, reason: str, meanwhile: Callable[[], list[Change]] = list) -> None:
        """Poll in place of observing; `meanwhile` returns what changed before the first look was over."""
        if self._closed:
            return
        _logger.warning("a watch polls for changes: %s", reason)
        self._poller = Poller(os.dup(self._root), self._filter)
        await self._on_thread(self._poller.start)
        if not self._closed:
            self._add(await self._on_thread(meanwhile))
        self._end_observer()
        self._polling = self._loop.create_task(self._look_again(self._poller))

    async def _look_again(self, poller: Poller) -> None:
        where = os.readlink(b"/proc/self/fd/%d" % self._root)
        scout = Scout([os.path.join(where, target) for target in self._filter.targets], self._seen)
        try:
            while not self._closed:
                with contextlib.suppress(TimeoutError):
                    pause = max(poller.pause, UNSEEN_PAUSE) if scout.alive else poller.pause
                    await asyncio.wait_for(self._wake.wait(), pause)
                self._wake.clear()
                if not self._closed:
                    self._add(await self._on_thread(poller.look))
        finally:
            scout.stop()

    def _seen(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, at the end of the server
            self._loop.call_soon_threadsafe(self._wake.set)

    # --------------------------------------------------------------------------------------------------------- batches

    def _add(self, changes: list[Change]) -> None:
        if self._closed:
            return
        for change in changes:
            self._coalescer.add(change)
        if self._coalescer and self._timer is None:
            self._timer = self._loop.call_later(BURST, self._flush)

    def _flush(self) -> None:
        self._timer = None
        taken = self._coalescer.take()
        if taken:
            self._batch(taken)
