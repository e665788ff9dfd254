"""Memory that large calls have freed: used again by the next ones, returned to the system when there are none."""

from __future__ import annotations

import asyncio

from toolserver._fast.allocator import return_freed_memory

DELAY_S = 1.0
"""Seconds after the last large call."""


class FreedMemory:
    """Returns memory to the system from a thread, once for any number of calls; an idle server has no timer."""

    __slots__ = ("_due", "_timer")

    def __init__(self) -> None:
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def after_large_call(self) -> None:
        """Have what the call has freed returned, unless another large call comes first."""
        loop = asyncio.get_running_loop()
        self._due = loop.time() + DELAY_S
        if self._timer is None:
            self._timer = loop.call_later(DELAY_S, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._due:
            self._timer = loop.call_at(self._due, self._look)
            return
        self._timer = None
        loop.run_in_executor(None, return_freed_memory)

    def close(self) -> None:
        """Cancel what is pending."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
