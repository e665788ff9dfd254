"""The table of processes of a server: ids, limits, what stays listed, the end of all (specification, section 7)."""

from __future__ import annotations

import asyncio
import signal
import weakref
from typing import Protocol

from toolserver.errors import ToolError
from toolserver.processes.command import Command
from toolserver.processes.launch import Launcher
from toolserver.processes.pacing import Crowd, Turnstile
from toolserver.processes.port_notes import port_note
from toolserver.processes.process import Process
from toolserver.processes.restart.lost import Former, moment
from toolserver.processes.subscribers import Backlog
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.state.activity import Activity

RUNNING = 32
"""Processes that run at once; jobs do not count."""
LISTED = 600.0
"""Seconds that an exited process stays listed."""
EXITED_BYTES = 256 * 1024 * 1024
"""Bytes of the rings of exited processes together."""
BEGINNING = 0.5
"""Seconds for which a command that was just started is left alone when the server stops.

A capsule takes some time to get ready. A command that was told to be running would be ended before it began.
"""
STOP_PATIENCE = 2.0
"""Seconds from TERM to KILL when the server stops."""
LINGER = 1.0
"""Seconds for which a process that somebody else ended counts as running in the record, see `ProcessTable._ended`."""
FOREIGN_ENDS = (128 + signal.SIGTERM, 128 + signal.SIGKILL)


class Recorder(Protocol):
    """Keeps a record of the table that outlives the server."""

    def note(self) -> None:
        """Something has changed."""

    async def settled(self) -> None:
        """Wait until all that has been noted is recorded."""

    def freeze(self) -> None:
        """The server stops: what runs now is what ran."""


class ProcessTable:
    """All processes and jobs of a server, of every tree.

    Jobs, promoted ones too, count as activity; detached processes do not hold the server awake. `recorder` is told
    whenever a process came or ended; whoever tells a caller of it waits for `recorded_all` before.
    """

    def __init__(self, launcher: Launcher, activity: Activity) -> None:
        self.launcher = launcher
        self._activity = activity
        self.recorder: Recorder | None = None
        self.last_number = 0
        """The number of the newest id; ids are never used again."""
        self._processes: dict[str, Process] = {}
        self._jobs: set[Process] = set()
        self._backlog = Backlog()
        self._crowd = Crowd()
        self.turnstile = Turnstile()
        """Shared by all streams."""
        self._exited: dict[Process, asyncio.TimerHandle] = {}
        self._lingering: dict[Process, asyncio.TimerHandle] = {}
        self._former: dict[str, tuple[Former, asyncio.TimerHandle]] = {}
        self._every: weakref.WeakSet[Process] = weakref.WeakSet()
        self.stopping = False

    # ------------------------------------------------------------------------------------------------------ starting

    def start_job(self, command: Command, directory: WorkingDirectory, head_lines: int | None) -> Process:
        """Start a job: it has no input, no id, and is listed nowhere."""
        process = self._start(command, directory, head_lines, takes_input=False)
        self._jobs.add(process)
        self._activity.begin()
        return process

    def start_watched(self, command: Command, directory: WorkingDirectory) -> Process:
        """Start the command of a watch: like a job, but it does not hold the server awake."""
        process = self._start(command, directory, None, takes_input=False)
        process.detached = True
        self._jobs.add(process)
        return process

    async def start_detached(self, command: Command, directory: WorkingDirectory, *, relaunch: bool = True) -> Process:
        """Start a process with an id of its own.

        ToolError when 32 run already, or when it cannot be executed; then it has no id.
        """
        process = self._start_detached(command, directory, relaunch=relaunch)
        self._list(process, None)
        await self.record()
        return process

    async def start_again(
        self, name: str, command: Command, directory: WorkingDirectory, *, restarts: int, marker: bytes
    ) -> Process:
        """Start a process of an earlier run under the id that it had; `marker` begins its output. Else as above."""
        process = self._start_detached(command, directory, relaunch=True)
        process.restarts = restarts
        process.stdout.ring.append(marker)
        self._list(process, name)
        await self.record()
        return process

    def _start_detached(self, command: Command, directory: WorkingDirectory, *, relaunch: bool) -> Process:
        if sum(process.running for process in self._processes.values()) >= RUNNING:
            raise ToolError(f"{RUNNING} processes already; end one with process_kill, or wait until one has exited")
        process = self._start(command, directory, None, takes_input=True)
        process.detached = True
        process.relaunch = relaunch
        return process

    def _start(
        self, command: Command, directory: WorkingDirectory, head_lines: int | None, *, takes_input: bool
    ) -> Process:
        if self.stopping:
            raise ToolError("the server is stopping and starts no command any more")
        child, stdio = self.launcher.start(command, directory, takes_input=takes_input)
        process = Process(
            command, directory, child, stdio, head_lines=head_lines, backlog=self._backlog, crowd=self._crowd
        )
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
        """Return a tree's process, None where it is another tree's, unknown or long gone."""
        process = self._processes.get(name)
        return process if process is not None and process.tree == tree else None

    def find_former(self, tree: str, name: str) -> Former | None:
        """Return a tree's process of an earlier run that does not run now."""
        former = self._former.get(name)
        return former[0] if former is not None and former[0].tree == tree else None

    def get(self, tree: str, name: str) -> Process:
        """Return a tree's process; ToolError `no process ID` where there is none, or why nothing runs under its id."""
        process = self.find(tree, name)
        if process is not None:
            return process
        former = self.find_former(tree, name)
        if former is None:
            raise ToolError(f"no process {name}")
        if former.failed is None:
            at = moment(former.restarted_at)
            raise ToolError(f"process {name} was ended by a restart of the server at {at} and does not run any more")
        raise ToolError(f"process {name} has exited: it {former.failed}")

    def all(self) -> list[Process]:
        """Return the processes of every tree in start order."""
        return list(self._processes.values())

    def former(self) -> list[Former]:
        """Return the processes of earlier runs that are listed and do not run."""
        return [former for former, _ in self._former.values()]

    def recorded(self) -> list[Process]:
        """Return the processes that the record has as running."""
        return [process for process in self._processes.values() if process.running or process in self._lingering]

    def keep_former(self, former: Former, seconds: float) -> None:
        """List a process of an earlier run for some time."""

        def forget() -> None:
            del self._former[former.id]
            self.note()

        self._former[former.id] = (former, asyncio.get_running_loop().call_later(seconds, forget))

    # -------------------------------------------------------------------------------------------------------- ending

    def _ended(self, process: Process) -> None:
        """Take note of an exit.

        A machine that goes down sends TERM or KILL to everything at once, and the server may learn of the end of its
        children before of its own. So a process that died of that, without our doing, is recorded as running for
        another second.
        """
        if not process.detached:
            self._activity.end()
        if process.id is None:
            self._jobs.discard(process)
            return
        self._keep(process)
        if process.exit_code in FOREIGN_ENDS and not process.ended_here:
            self._lingering[process] = asyncio.get_running_loop().call_later(LINGER, self._linger_no_more, process)
        else:
            self.note()

    def _linger_no_more(self, process: Process) -> None:
        del self._lingering[process]
        self.note()

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

    def note(self) -> None:
        """Have the change recorded while the event loop goes on."""
        if self.recorder is not None:
            self.recorder.note()

    async def recorded_all(self) -> None:
        """Wait until every change so far is recorded."""
        if self.recorder is not None:
            await self.recorder.settled()

    async def record(self) -> None:
        """Have the change recorded, and wait for it."""
        self.note()
        await self.recorded_all()

    def close_streams(self) -> None:
        """End every stream, as the first step of a stop."""
        self.stopping = True
        if self.recorder is not None:
            self.recorder.freeze()
        for process in self._processes.values():
            process.feed.stop()

    async def stop(self) -> None:
        """End everything that runs: TERM once it is half a second old, two seconds, KILL."""
        self.close_streams()
        running = [process for process in (*self._processes.values(), *self._jobs) if process.running]
        await asyncio.gather(*map(_stop, running))
        timers = [*self._exited.values(), *self._lingering.values(), *(timer for _, timer in self._former.values())]
        for timer in timers:
            timer.cancel()
        for process in list(self._every):
            process.close()
        self.launcher.close()


async def _stop(process: Process) -> None:
    """End a process because the server stops."""
    await asyncio.wait([process.ended], timeout=max(BEGINNING - process.age, 0))
    await process.end(STOP_PATIENCE)


def _allocated(process: Process) -> int:
    return process.stdout.ring.allocated + process.stderr.ring.allocated
