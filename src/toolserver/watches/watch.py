"""One watch: its paths, its command, or a command that runs after each batch of changes (specification, section 8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from toolserver.errors import ToolError
from toolserver.processes.output import Output
from toolserver.processes.process import Process
from toolserver.watches.events import EventRing
from toolserver.watches.lines import Lines, Tail
from toolserver.watches.observer import Change
from toolserver.watches.paths import PathWatch

TAIL = 2000
"""Bytes of a run's output that its event holds."""
CANNOT_START = 127
"""The exit code told of a command that cannot be executed, a shell's."""

Printed = Callable[[bytes, str], None]
"""Takes bytes that a command printed, and the name of the stream."""
Start = Callable[[Printed], Process]
"""Starts the watch's command. Raises ToolError where it cannot be executed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a watch: `start` runs its command, if it has one; `keep` filters its lines."""

    start: Start | None
    keep: Callable[[bytes], bool] | None
    once: bool


def hand_on(process: Process, printed: Printed) -> None:
    """Have `printed` told whatever the process prints from its start on."""
    names = {id(process.stdout): "stdout", id(process.stderr): "stderr"}
    seen = dict.fromkeys(names, 0)

    def take(output: Output) -> None:
        ring = output.ring
        data = ring.slice(seen[id(output)], ring.total)
        seen[id(output)] = ring.total
        printed(data, names[id(output)])

    process.on_output(take)


class Watch:
    """A running or stopped watch. `events` are what it has told."""

    def __init__(self, name: str, tree: str, asked: Asked) -> None:
        self.id = name
        self.tree = tree
        self.events = EventRing()
        self.on_stop: Callable[[Watch], None] | None = None
        self._asked = asked
        self._paths: PathWatch | None = None
        self._process: Process | None = None
        self._waiting: dict[bytes, None] = {}
        self._run: asyncio.Task[None] | None = None
        self._lines = {"stdout": Lines(), "stderr": Lines()}
        self._ending: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        return "stopped" if self.events.closed else "running"

    def start_command(self) -> None:
        """Begin a watch of a command alone. Raises ToolError where it cannot be executed."""
        assert self._asked.start is not None
        self._process = self._asked.start(self._printed)
        self._run = asyncio.get_running_loop().create_task(self._until_exit(self._process))

    async def start_paths(self, paths: PathWatch) -> None:
        """Begin a watch of paths, which tells `batch`. Raises OSError where the root is gone."""
        self._paths = paths
        await paths.start()

    async def stop(self) -> None:
        """End it, its command too; again is no error."""
        self._close()
        if self._ending is not None:
            await asyncio.shield(self._ending)

    def _close(self) -> None:
        """Say that no event follows, and begin to end what runs."""
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
        for line in self._lines[stream].feed(data):
            self._tell_line(line)

    def _tell_line(self, line: bytes) -> None:
        if self.events.closed or (self._asked.keep is not None and not self._asked.keep(line)):
            return
        self.events.put({"line": line.decode(errors="replace")})
        if self._asked.once:
            self._close()

    async def _until_exit(self, process: Process) -> None:
        await asyncio.wait([process.ended])
        for lines in self._lines.values():
            for line in lines.end():
                self._tell_line(line)
        self.events.put({"exit": process.exit_code})
        self._close()

    # ----------------------------------------------------------------------------------------------- batches of paths

    def batch(self, changes: list[Change]) -> None:
        """Take a batch of changes: tell them, or have the command run for them."""
        if self.events.closed:
            return
        if self._asked.start is None:
            for path, kind in changes:
                self.events.put({"path": path.decode(errors="replace"), "kind": kind})
                if self._asked.once:
                    self._close()
                    return
            return
        self._waiting |= dict.fromkeys(path for path, _ in changes)
        if self._run is None or self._run.done():
            self._run = asyncio.get_running_loop().create_task(self._runs(self._asked.start))

    async def _runs(self, start: Start) -> None:
        """Run the command for what waits, and again for what came meanwhile."""
        while self._waiting and not self.events.closed:
            paths, self._waiting = self._waiting, {}
            tail = Tail(TAIL)
            try:
                self._process = process = start(tail.feed)
            except ToolError as error:
                tail.feed(str(error).encode(), "stderr")
                code: int | None = CANNOT_START
            else:
                await asyncio.wait([process.ended])
                code = process.exit_code
            shown = [path.decode(errors="replace") for path in paths]
            self.events.put({"paths": shown, "cmd_exit": code, "output_tail": tail.text()})
            if self._asked.once:
                self._close()
