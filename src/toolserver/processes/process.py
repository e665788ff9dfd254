"""One command from its start to its end: its streams, its input, its exit, its end by a signal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from toolserver.processes.child import Child
from toolserver.processes.command import Command
from toolserver.processes.group import gone
from toolserver.processes.output import Output, PipeReader
from toolserver.processes.pacing import PipeScheduler
from toolserver.processes.stdin import Stdin
from toolserver.processes.stdio import Stdio
from toolserver.processes.subscribers import Broadcast, QueuedBytes, Subscriber
from toolserver.processes.working_directory import WorkingDirectory

LISTEN_DELAY = 0.001
"""Seconds from the start until its pipes are watched: many commands have exited by then and printed little."""
DRAIN = 0.25
"""Seconds to wait after the exit for pipes that other processes still hold."""
KILL_DELAY = 5.0
"""Seconds from TERM to KILL, and from KILL until waiting ends."""


class Process:
    """A running or exited command. It is a job until it gets an id, at its start or by `ProcessTable.promote`."""

    def __init__(
        self,
        command: Command,
        directory: WorkingDirectory,
        child: Child,
        stdio: Stdio,
        *,
        head_lines: int | None,
        queued_bytes: QueuedBytes,
        scheduler: PipeScheduler,
    ) -> None:
        self.command = command
        self.tree = directory.tree
        self.cwd = directory.cwd
        self.started_at = datetime.now(UTC)
        self.id: str | None = None
        self.detached = False
        self.relaunch = True
        self.restarts = 0
        """How often it was started again after a restart of the server."""
        self.ended_here = False
        """Whether the server has ended it, or is about to."""
        self.exit_code: int | None = None
        """None while it runs."""
        self.failed: str | None = None
        """A note for `process_list` on why it failed."""
        self.child = child
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._began = loop.time()
        self.ended: asyncio.Future[None] = loop.create_future()
        """Done once it has exited and everything it printed is in the rings."""
        self.waiters: list[asyncio.Future[None]] = []
        """Futures set together with `ended`, one iteration of the event loop before its callbacks run."""
        self._exited: asyncio.Future[None] = loop.create_future()
        self._status: int | None = None
        self._impatient = False
        self._enders = 0
        self._timer: asyncio.TimerHandle | None = None
        self.on_end: Callable[[Process], None] | None = None
        self.stdout = Output(head_lines)
        self.stderr = Output(head_lines)
        self.broadcast = Broadcast({"stdout": self.stdout, "stderr": self.stderr}, queued_bytes)
        self.stdin = Stdin(stdio.input, terminal=command.terminal is not None)
        self._pipes = [
            PipeReader(
                fd,
                output,
                scheduler,
                listeners=self.broadcast.listeners,
                changed=self.broadcast.printed,
                ended=self._pipe_ended,
            )
            for fd, output in ((stdio.output, self.stdout), (stdio.errors, self.stderr))
            if fd >= 0
        ]
        loop.add_reader(child.pidfd, self._on_exit)
        self._listening = loop.call_later(LISTEN_DELAY, self._listen)

    @property
    def running(self) -> bool:
        return self.exit_code is None

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return self._loop.time() - self._began

    @property
    def state(self) -> str:
        return "running" if self.running else "exited"

    @property
    def exited(self) -> bool:
        """Whether it has exited, also when the event loop has not been told yet."""
        return self._status is not None or self.child.exited

    # --------------------------------------------------------------------------------------------------- its output

    def on_output(self, tap: Callable[[Output], None]) -> None:
        """Call `tap` when something was printed. Set it before control returns to the event loop after the start."""
        self.broadcast.tap(tap)

    def _listen(self) -> None:
        for pipe in self._pipes:
            pipe.listen()

    def _pipe_ended(self) -> None:
        if self._status is not None and not any(pipe.open for pipe in self._pipes):
            self._finish()

    def subscribe(self, since: int, since_err: int) -> Subscriber:
        """Subscribe to the frames from an offset of each output on; end it with `broadcast.unsubscribe`."""
        subscriber = self.broadcast.subscribe({"stdout": since, "stderr": since_err})
        if not self.running:
            for output in (self.stdout, self.stderr):
                self.broadcast.publish(output, whole=True)  # the other subscribers have had the end already
            subscriber.tell(self._last_frame())
            subscriber.finish()
        return subscriber

    def _last_frame(self) -> bytes:
        return b'{"exit":%d}' % (self.exit_code or 0)

    # ----------------------------------------------------------------------------------------------------- its exit

    def _on_exit(self) -> None:
        self._loop.remove_reader(self.child.pidfd)
        self._listening.cancel()
        self._status = self.child.status()
        for pipe in self._pipes:
            pipe.drain()
        if self._impatient or not any(pipe.open for pipe in self._pipes):
            self._finish()
        else:
            self._listen()
            self._timer = self._loop.call_later(DRAIN, self._finish)
        if not self._exited.done():
            self._exited.set_result(None)

    def _finish(self) -> None:
        """Publish the exit; everything printed up to it is in the rings."""
        if self._timer is not None:
            self._timer.cancel()
        if not self.running:
            return
        for pipe in self._pipes:
            if pipe.open:
                pipe.drain()
                pipe.discard()
        self.exit_code = self._status
        self.stdin.end()
        self.broadcast.finish(self._last_frame())
        if not self._enders:
            self.child.reap()
        self.ended.set_result(None)
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self.on_end is not None:
            self.on_end(self)

    # ------------------------------------------------------------------------------------------------ ending it

    async def end(self, patience: float = KILL_DELAY) -> None:
        """Send TERM to the group, KILL to what is left after `patience` seconds (0: at once), and wait for the exit.

        Returns while the process still runs only if not even KILL ended it within five seconds.
        """
        if self.exited and not self._enders:
            await asyncio.wait([self.ended])
            return
        self.ended_here = True
        self._enders += 1  # meanwhile the child stays a zombie, so that no other group gets its number
        try:
            if patience:
                self.child.terminate()
                await self._emptied(self._loop.time() + patience)
            self.child.kill()
            deadline = self._loop.time() + KILL_DELAY
            await self._emptied(deadline)
            await asyncio.wait([self.ended], timeout=max(deadline - self._loop.time(), 0))
        finally:
            self._enders -= 1
            if not self._enders and not self.running:
                self.child.reap()

    async def _emptied(self, deadline: float) -> None:
        """Wait until the whole group has gone."""
        await asyncio.wait([self._exited], timeout=max(deadline - self._loop.time(), 0))
        while self._exited.done():
            left = await asyncio.to_thread(self.child.members)
            if not left or not await gone(left, deadline - self._loop.time()):
                return

    async def cut_short(self) -> bool:
        """Kill the group at once and wait for the exit, but not for pipes that other processes hold.

        Returns False for a command that had exited by itself, after the usual wait.
        """
        if self._status is not None:
            await asyncio.wait([self.ended])
            return False
        self._impatient = True
        await self.end(0)
        return True

    def close(self) -> None:
        """Close pipes that other processes still hold."""
        self._listening.cancel()
        for pipe in self._pipes:
            pipe.close()
