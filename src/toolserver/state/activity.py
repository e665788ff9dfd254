"""When the server was last used, for `--idle-stop` (specification, section 12)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Activity:
    """Counts what is under way and remembers when the last of it ended.

    A call is under way from `begin` to `end`, so is a job: whoever starts one says `begin`, and `end` when it is over.
    """

    __slots__ = ("_last", "_running")

    def __init__(self) -> None:
        self._running = 0
        self._last = time.monotonic()

    def begin(self) -> None:
        self._running += 1

    def end(self) -> None:
        self._running -= 1
        self._last = time.monotonic()

    def idle(self) -> float:
        """Return for how many seconds nothing has been under way; 0 while something is."""
        return 0.0 if self._running else time.monotonic() - self._last

    def watch(self, seconds: float, stop: Callable[[], None]) -> Callable[[], None]:
        """Call `stop` once after `seconds` without activity; answer how to end the watching.

        One timer at a time, never more often than every `seconds` while something is under way.
        """
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            left = seconds - self.idle()
            if left <= 0:
                stop()
            else:
                timer = loop.call_later(left, look)

        timer = loop.call_later(seconds, look)
        return lambda: timer.cancel()
