"""One command from its start to its end: its streams, its input, its exit, its end by a signal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from toolserver.processes.child import Child
from toolserver.processes.command import Command
from toolserver.processes.group import gone
from toolserver.processes.output import Output, Pump
from toolserver.processes.pacing import Crowd
from toolserver.processes.stdin import Stdin
from toolserver.processes.stdio import Stdio
from toolserver.processes.subscribers import Backlog, Feed, Reader
from toolserver.processes.working_directory import WorkingDirectory

AT_ONCE = 0.001
"""Seconds after the start in which its pipes are not looked at: many commands are over by then, and say little."""
DRAIN = 0.25
"""Seconds after the exit in which pipes that somebody else still holds are waited for."""
PATIENCE = 5.0
"""Seconds from TERM to KILL, and from KILL to giving up."""


class Process:
    """A running or exited command. It is a job until `promote` or its start gives it an id."""

    def __init__(
        self,
        command: Command,
        directory: WorkingDirectory,
        child: Child,
        stdio: Stdio,
        *,
        head_lines: int | None,
        backlog: Backlog,
        crowd: Crowd,
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
        """Whether the server itself was told to end it."""
        self.exit_code: int | None = None
        """None while it runs."""
        self.failed: str | None = None
        """A note for `process_list` on why it did not do what it should."""
        self.child = child
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._began = loop.time()
        self.ended: asyncio.Future[None] = loop.create_future()
        """Done when it has exited and all that it printed is in the rings."""
        self.waiters: list[asyncio.Future[None]] = []
        """Set with `ended`, a turn of the event loop sooner than its callbacks would do it."""
        self._exited: asyncio.Future[None] = loop.create_future()
        self._status: int | None = None
        self._impatient = False
        self._enders = 0
        self._timer: asyncio.TimerHandle | None = None
        self.on_end: Callable[[Process], None] | None = None
        self.stdout = Output(head_lines)
        self.stderr = Output(head_lines)
        self.feed = Feed({"stdout": self.stdout, "stderr": self.stderr}, backlog)
        self.stdin = Stdin(stdio.input, terminal=command.terminal is not None)
        self._pumps = [
            Pump(fd, output, crowd, watched=self.feed.interested, changed=self.feed.printed, ended=self._pipe_ended)
            for fd, output in ((stdio.output, self.stdout), (stdio.errors, self.stderr))
            if fd >= 0
        ]
        loop.add_reader(child.pidfd, self._on_exit)
        self._listening = loop.call_later(AT_ONCE, self._listen)

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

    # --------------------------------------------------------------------------------------------------- its output

    def on_output(self, tap: Callable[[Output], None]) -> None:
        """Have `tap` called when something was printed; to be said before the event loop goes on after the start."""
        self.feed.tap(tap)

    def _listen(self) -> None:
        for pump in self._pumps:
            pump.listen()

    def _pipe_ended(self) -> None:
        if self._status is not None and not any(pump.open for pump in self._pumps):
            self._finish()

    def read(self, since: int, since_err: int) -> Reader:
        """Open a stream of frames from an offset of each output on; give it back with `feed.close`."""
        reader = self.feed.open({"stdout": since, "stderr": since_err})
        if not self.running:
            for output in (self.stdout, self.stderr):
                self.feed.publish(output, whole=True)  # nobody else can be in need of it: they have had the end
            reader.tell(self._last_frame())
            reader.finish()
        return reader

    def _last_frame(self) -> bytes:
        return b'{"exit":%d}' % (self.exit_code or 0)

    # ----------------------------------------------------------------------------------------------------- its exit

    def _on_exit(self) -> None:
        self._loop.remove_reader(self.child.pidfd)
        self._listening.cancel()
        self._status = self.child.status()
        for pump in self._pumps:
            pump.drain()
        if self._impatient or not any(pump.open for pump in self._pumps):
            self._finish()
        else:
            self._listen()
            self._timer = self._loop.call_later(DRAIN, self._finish)
        if not self._exited.done():
            self._exited.set_result(None)

    def _finish(self) -> None:
        """State the exit: all that was printed up to it is in the rings."""
        if self._timer is not None:
            self._timer.cancel()
        if not self.running:
            return
        for pump in self._pumps:
            if pump.open:
                pump.drain()
                pump.discard()
        self.exit_code = self._status
        self.stdin.end()
        self.feed.finish(self._last_frame())
        if not self._enders:
            self.child.reap()
        self.ended.set_result(None)
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self.on_end is not None:
            self.on_end(self)

    # ------------------------------------------------------------------------------------------------ ending it

    async def end(self, patience: float = PATIENCE) -> None:
        """Send TERM to the group, KILL to what is left after `patience` seconds (0: at once), and wait for the exit.

        It comes back while the process still runs only if not even KILL ended it within five seconds.
        """
        if self._status is not None and not self._enders:
            await asyncio.wait([self.ended])
            return
        self.ended_here = True
        self._enders += 1  # until we are done the child stays a zombie, so that its group's number is nobody else's
        try:
            if patience:
                self.child.terminate()
                await self._emptied(self._loop.time() + patience)
            self.child.kill()
            deadline = self._loop.time() + PATIENCE
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
        """Kill the group at once and wait for the exit, not for pipes that others hold.

        Answers False for a command that had exited by itself; that is waited for as ever.
        """
        if self._status is not None:
            await asyncio.wait([self.ended])
            return False
        self._impatient = True
        await self.end(0)
        return True

    def close(self) -> None:
        """Let go of pipes that others still hold."""
        self._listening.cancel()
        for pump in self._pumps:
            pump.close()
