"""The client of a call: a handler learns here that it has left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Client:
    """The client of one call.

    A client that leaves does not end its call. A handler that has something to stop, such as a search, registers it
    with `on_leave`. Only the first `on_leave` starts a task that watches the connection.

        stopped = search.start(...)
        call.client.on_leave(search.stop)          # called on the event loop, once; immediately where it has left
        return await stopped

    `leave` returns when the connection is gone; without it the client never leaves. Nothing is called after `close`,
    which the caller of the dispatcher calls before it sends the answer.
    """

    __slots__ = ("_callbacks", "_ends", "_gone", "_leave", "_task")

    def __init__(self, leave: Callable[[], Awaitable[None]] | None = None) -> None:
        self._leave = leave
        self._gone = False
        self._task: asyncio.Task[None] | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._ends: list[Callable[[], None]] = []

    @property
    def gone(self) -> bool:
        """Whether it has left. Known only after the first `on_leave`."""
        return self._gone

    def on_leave(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the client leaves before it has its answer."""
        if self._gone:
            callback()
            return
        self._callbacks.append(callback)
        if self._task is None and self._leave is not None:
            self._task = asyncio.get_running_loop().create_task(self._watch(self._leave))

    async def _watch(self, leave: Callable[[], Awaitable[None]]) -> None:
        await leave()
        self._gone = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_end(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when the answer has been sent, or dropped because the client left."""
        self._ends.append(callback)

    def end(self) -> None:
        """Say that nothing of the answer is kept any more."""
        ends, self._ends = self._ends, []
        for callback in ends:
            callback()

    def close(self) -> None:
        """Stop watching; no callback is called after this."""
        self._callbacks.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None
