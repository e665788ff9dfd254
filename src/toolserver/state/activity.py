"""When the server was last used, for `--idle-stop` (specification, section 12)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Activity:
    """Counts the calls and jobs that run, and remembers when the last one ended.

    `begin` is called where one starts, `end` where it is over.
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
        """Return the seconds since the last one ended; 0 while one runs."""
        return 0.0 if self._running else time.monotonic() - self._last

    def watch(self, seconds: float, stop: Callable[[], None]) -> Callable[[], None]:
        """Call `stop` once after `seconds` without activity. Return the function that ends the watching.

        There is one timer; it runs out at most once in `seconds` while something runs.
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
