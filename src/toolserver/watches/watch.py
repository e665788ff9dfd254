"""One watch: its paths, its command, or a command that runs after each batch of changes (specification, section 8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from toolserver.errors import ToolError
from toolserver.processes.output import Output
from toolserver.processes.process import Process
from toolserver.watches.events import EventRing
from toolserver.watches.lines import LineSplitter, OutputTail
from toolserver.watches.paths import Batch, PathWatch
from toolserver.workspace.paths import shown

TAIL = 2000
"""Bytes of a run's output that its event holds."""
CANNOT_START = 127
"""The exit code reported for a command that cannot be executed, as a shell does."""

PrintSink = Callable[[bytes, str], None]
"""Takes bytes that a command printed, and the name of the stream."""
Start = Callable[[PrintSink], Process]
"""Starts the watch's command. Raises ToolError where it cannot be executed."""


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a watch does: `start` runs its command, if it has one; `keep` tells which of its lines are events."""

    start: Start | None
    keep: Callable[[bytes], bool] | None
    once: bool


def forward_output(process: Process, printed: PrintSink) -> None:
    """Pass whatever the process prints, from its start on, to `printed`."""
    names = {id(process.stdout): "stdout", id(process.stderr): "stderr"}
    seen = dict.fromkeys(names, 0)

    def take(output: Output) -> None:
        ring = output.ring
        data = ring.slice(seen[id(output)], ring.total)
        seen[id(output)] = ring.total
        printed(data, names[id(output)])

    process.on_output(take)


class Watch:
    """A running or stopped watch, and its `events`."""

    def __init__(self, name: str, tree: str, request: WatchRequest) -> None:
        self.id = name
        self.tree = tree
        self.events = EventRing()
        self.on_stop: Callable[[Watch], None] | None = None
        self._request = request
        self._paths: PathWatch | None = None
        self._process: Process | None = None
        self._waiting: dict[bytes, None] = {}
        self._run: asyncio.Task[None] | None = None
        self._lines = {"stdout": LineSplitter(), "stderr": LineSplitter()}
        self._ending: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        return "stopped" if self.events.closed else "running"

    def start_command(self) -> None:
        """Start a watch of a command alone. Raises ToolError where it cannot be executed."""
        assert self._request.start is not None
        self._process = self._request.start(self._printed)
        self._run = asyncio.get_running_loop().create_task(self._until_exit(self._process))

    async def start_paths(self, paths: PathWatch) -> None:
        """Start a watch of paths, which reports to `batch`. Raises OSError where the root is gone."""
        self._paths = paths
        await paths.start()

    async def stop(self) -> None:
        """End it, its command too; again is no error."""
        self._close()
        if self._ending is not None:
            await asyncio.shield(self._ending)

    def _close(self) -> None:
        """Take no more events, and start to end what runs."""
        if self.events.closed:
            return
        self.events.close()
        if self._paths is not None:
            self._paths.close()
        if self._process is not None and self._process.running:
            self._ending = asyncio.get_running_loop().create_task(self._process.end())
        if self.on_stop is not None:
            self.on_stop(self)

    # ---------------------------------------------------------------------------------------- a command's lines alone

    def _printed(self, data: bytes, stream: str) -> None:
        self._add_lines(self._lines[stream].feed(data))

    def _add_lines(self, lines: list[bytes]) -> None:
        if self.events.closed:
            return
        keep = self._request.keep
        if keep is not None:
            lines = [line for line in lines if keep(line)]
        if self._request.once:
            lines = lines[:1]
        self.events.extend(lambda line: {"line": line.decode(errors="replace")}, lines)
        if self._request.once and lines:
            self._close()

    async def _until_exit(self, process: Process) -> None:
        await asyncio.wait([process.ended])
        for lines in self._lines.values():
            self._add_lines(lines.end())
        self.events.put({"exit": process.exit_code})
        self._close()

    # ----------------------------------------------------------------------------------------------- batches of paths

    def batch(self, changes: Batch) -> None:
        """Take a batch of changes: add an event for each, or run the command for them."""
        if self.events.closed:
            return
        once = self._request.once
        if self._request.start is None:
            self.events.extend(lambda change: {**shown(change[0]), "kind": change[1]}, changes[: 1 if once else None])
            if once:
                self._close()
            return
        self._waiting |= dict.fromkeys(path for path, _ in changes)
        if self._run is None or self._run.done():
            self._run = asyncio.get_running_loop().create_task(self._runs(self._request.start))

    async def _runs(self, start: Start) -> None:
        """Run the command for what waits, and again for what came meanwhile."""
        while self._waiting and not self.events.closed:
            paths, self._waiting = self._waiting, {}
            tail = OutputTail(TAIL)
            try:
                self._process = process = start(tail.feed)
            except ToolError as error:
                tail.feed(str(error).encode(), "stderr")
                code: int | None = CANNOT_START
            else:
                await asyncio.wait([process.ended])
                code = process.exit_code
            names = [path.decode(errors="replace") for path in paths]
            self.events.put({"paths": names, "cmd_exit": code, "output_tail": tail.text()})
            if self._request.once:
                self._close()
