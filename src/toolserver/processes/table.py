"""The table of processes of a server: ids, limits, what stays listed, the end of all (specification, section 7)."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable

from toolserver.errors import ToolError
from toolserver.processes.command import Command
from toolserver.processes.feed import Backlog
from toolserver.processes.launch import Launcher, Where
from toolserver.processes.notes import port_note
from toolserver.processes.process import Process
from toolserver.workspace.activity import Activity

RUNNING = 32
"""Processes that run at once; jobs do not count."""
LISTED = 600.0
"""Seconds that an exited process stays listed."""
EXITED_BYTES = 256 * 1024 * 1024
"""Bytes of the rings of exited processes together."""
STOP_PATIENCE = 2.0
"""Seconds from TERM to KILL when the server stops."""


class ProcessTable:
    """All processes and jobs of a server, of every tree.

    Jobs, promoted ones too, count as activity; detached processes do not hold the server awake. `changed` is awaited
    whenever a process came, ended or went, before the answer that tells of it: the place of a record that outlives the
    server.
    """

    def __init__(self, launcher: Launcher, activity: Activity) -> None:
        self.launcher = launcher
        self._activity = activity
        self.changed: Callable[[], Awaitable[None]] | None = None
        self.last_number = 0
        """The number of the newest id; ids are never used again."""
        self._processes: dict[str, Process] = {}
        self._jobs: set[Process] = set()
        self._backlog = Backlog()
        self._exited: dict[Process, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._every: weakref.WeakSet[Process] = weakref.WeakSet()
        self.stopping = False

    # ------------------------------------------------------------------------------------------------------ starting

    def start_job(self, command: Command, where: Where, head_lines: int | None) -> Process:
        """Start a job: it has no input, no id, and is listed nowhere."""
        process = self._start(command, where, head_lines, takes_input=False)
        self._jobs.add(process)
        self._activity.begin()
        return process

    def start_watched(self, command: Command, where: Where) -> Process:
        """Start the command of a watch: like a job, but it does not hold the server awake."""
        process = self._start(command, where, None, takes_input=False)
        process.detached = True
        self._jobs.add(process)
        return process

    async def start_detached(
        self, command: Command, where: Where, *, relaunch: bool = True, name: str | None = None, marker: bytes = b""
    ) -> Process:
        """Start a process with an id, a given one when it is started again; `marker` begins its output.

        ToolError when 32 run already, or when it cannot be executed; then it has no id.
        """
        if sum(process.running for process in self._processes.values()) >= RUNNING:
            raise ToolError(f"{RUNNING} processes already; end one with process_kill, or wait until one has exited")
        process = self._start(command, where, None, takes_input=True)
        process.detached = True
        process.relaunch = relaunch
        if marker:
            process.stdout.ring.append(marker)
        self._list(process, name)
        await self.record()
        return process

    def _start(self, command: Command, where: Where, head_lines: int | None, *, takes_input: bool) -> Process:
        if self.stopping:
            raise ToolError("the server is stopping and starts no command any more")
        child, ends = self.launcher.start(command, where, takes_input=takes_input)
        process = Process(command, where, child, ends, head_lines, self._backlog)
        process.on_end = self._ended
        self._every.add(process)
        return process

    def promote(self, job: Process) -> str:
        """Make a job a process, above the limit too, and answer its id; the caller has the change recorded."""
        if job.id is None:
            self._jobs.discard(job)
            self._list(job, None)
            if not job.running:
                self._keep(job)
        assert job.id is not None
        return job.id

    def _list(self, process: Process, name: str | None) -> None:
        if name is None:
            self.last_number += 1
            name = f"p{self.last_number}"
        process.id = name
        self._processes[name] = process

    # ------------------------------------------------------------------------------------------------------- looking

    def find(self, tree: str, name: str) -> Process | None:
        """Answer a tree's process, None where it is another tree's, unknown or long gone."""
        process = self._processes.get(name)
        return process if process is not None and process.tree == tree else None

    def get(self, tree: str, name: str) -> Process:
        """Answer a tree's process; ToolError `no process ID` where there is none."""
        process = self.find(tree, name)
        if process is None:
            raise ToolError(f"no process {name}")
        return process

    def all(self) -> list[Process]:
        """Answer the processes of every tree in start order."""
        return list(self._processes.values())

    # -------------------------------------------------------------------------------------------------------- ending

    def _ended(self, process: Process) -> None:
        if not process.detached:
            self._activity.end()
        if process.id is None:
            self._jobs.discard(process)
        else:
            self._keep(process)
            self._note()

    def _keep(self, process: Process) -> None:
        """Keep an exited process listed for ten minutes, its output as long as there is room for it."""
        if process.exit_code:
            process.failed = port_note(process)
        for output in (process.stdout, process.stderr):
            output.ring.shrink()
        loop = asyncio.get_running_loop()
        self._exited[process] = loop.call_later(LISTED, self._forget, process)
        held = [one for one in self._exited if _allocated(one)]
        total = sum(map(_allocated, held))
        for one in held:
            if total <= EXITED_BYTES:
                break
            total -= _allocated(one)
            one.stdout.ring.release()
            one.stderr.ring.release()

    def _forget(self, process: Process) -> None:
        del self._exited[process]
        assert process.id is not None
        del self._processes[process.id]
        process.feed.stop()
        self._note()

    async def record(self) -> None:
        """Have the change recorded."""
        if self.changed is not None:
            await self.changed()

    def _note(self) -> None:
        """Have the change recorded while the event loop goes on."""
        if self.changed is not None:
            task = asyncio.get_running_loop().create_task(self.record())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close_streams(self) -> None:
        """End every stream, as the first step of a stop."""
        self.stopping = True
        for process in self._processes.values():
            process.feed.stop()

    async def stop(self) -> None:
        """End everything that runs: TERM, two seconds, KILL."""
        self.close_streams()
        running = [process for process in (*self._processes.values(), *self._jobs) if process.running]
        await asyncio.gather(*(process.end(STOP_PATIENCE) for process in running))
        for timer in self._exited.values():
            timer.cancel()
        for process in list(self._every):
            process.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self.launcher.close()


def _allocated(process: Process) -> int:
    return process.stdout.ring.allocated + process.stderr.ring.allocated
