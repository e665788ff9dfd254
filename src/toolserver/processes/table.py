"""The table of a server's processes: ids, limits, what stays listed, the stop (specification, section 7)."""

from __future__ import annotations

import asyncio
import signal
import weakref
from datetime import datetime
from typing import Protocol

from toolserver.errors import ToolError
from toolserver.processes.command import Command
from toolserver.processes.launch import Launcher
from toolserver.processes.pacing import PipeScheduler, Throttle
from toolserver.processes.port_notes import port_note
from toolserver.processes.process import Process
from toolserver.processes.restart.lost import LostProcess, moment
from toolserver.processes.restart.record import Killed, Running, entry_of, number
from toolserver.processes.subscribers import QueuedBytes
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

A capsule takes some time to get ready: a command that was reported as running would be ended before it began.
"""
STOP_PATIENCE = 2.0
"""Seconds from TERM to KILL when the server stops."""
FOREIGN_GRACE = 1.0
"""Seconds for which a process that another program ended stays in the record, see `ProcessTable._ended`."""
FOREIGN_ENDS = (128 + signal.SIGTERM, 128 + signal.SIGKILL)


class Recorder(Protocol):
    """Keeps a record of the table that outlives the server."""

    def add(self, entry: Running) -> None:
        """Record a process that runs."""

    def remove(self, name: str) -> None:
        """Forget a process that has ended."""

    def add_killed(self, killed: Killed) -> None:
        """Record a process that a restart ended."""

    def remove_killed(self, name: str) -> None:
        """Forget such a process."""

    def changed(self) -> None:
        """Write the record: a number in it has changed."""

    async def settled(self) -> None:
        """Wait until every change so far is written."""


class NoRecorder:
    """Stands for a record that nobody keeps."""

    def add(self, entry: Running) -> None: ...
    def remove(self, name: str) -> None: ...
    def add_killed(self, killed: Killed) -> None: ...
    def remove_killed(self, name: str) -> None: ...
    def changed(self) -> None: ...
    async def settled(self) -> None: ...


class ProcessTable:
    """All processes and jobs of a server, of every tree.

    Jobs, promoted ones too, count as activity; detached processes do not hold the server awake. The record follows each
    change; a call that reports one waits for `recorded` first.
    """

    def __init__(self, launcher: Launcher, activity: Activity, recorder: Recorder | None = None) -> None:
        self.launcher = launcher
        self._activity = activity
        self._recorder = NoRecorder() if recorder is None else recorder
        self.last_number = 0
        """The number of the newest id; ids are never used again."""
        self._processes: dict[str, Process] = {}
        self._jobs: set[Process] = set()
        self._queued_bytes = QueuedBytes()
        self._scheduler = PipeScheduler()
        self.throttle = Throttle()
        """Shared by all streams."""
        self._exited: dict[Process, asyncio.TimerHandle] = {}
        self._foreign_ends: dict[Process, asyncio.TimerHandle] = {}
        self._stopped: set[Process] = set()
        """Those that the stop ends, or has ended: they stay in the record."""
        self._lost: dict[str, tuple[LostProcess, asyncio.TimerHandle]] = {}
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
        """Start the command of a watch: a job that does not count as activity."""
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
        await self.recorded()
        return process

    async def start_again(
        self, entry: Running, command: Command, directory: WorkingDirectory, marker: bytes
    ) -> Process:
        """Start a process of an earlier run under its id; `marker` begins its output. Raises as `start_detached`."""
        process = self._start_detached(command, directory, relaunch=True)
        process.started_at = entry.started_at
        process.restarts = entry.restarts + 1
        process.stdout.ring.append(marker)
        self._list(process, entry.id)
        await self.recorded()
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
            command,
            directory,
            child,
            stdio,
            head_lines=head_lines,
            queued_bytes=self._queued_bytes,
            scheduler=self._scheduler,
        )
        process.on_end = self._ended
        self._every.add(process)
        return process

    def promote(self, job: Process) -> str:
        """Make a job a process, above the limit too, and return its id; the caller waits for the record."""
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
        if process.running:
            self._recorder.add(entry_of(process))

    # ------------------------------------------------------------------------------------------------------- looking

    def find(self, tree: str, name: str) -> Process | None:
        """Return a tree's process; None where the id is unknown, another tree's, or no longer listed."""
        process = self._processes.get(name)
        return process if process is not None and process.tree == tree else None

    def find_lost(self, tree: str, name: str) -> LostProcess | None:
        """Return a tree's process of an earlier run that does not run now."""
        lost = self._lost.get(name)
        return lost[0] if lost is not None and lost[0].tree == tree else None

    def get(self, tree: str, name: str) -> Process:
        """Return a tree's process; ToolError `no process ID` where there is none, or why nothing runs under its id."""
        process = self.find(tree, name)
        if process is not None:
            return process
        lost = self.find_lost(tree, name)
        if lost is None:
            raise ToolError(f"no process {name}")
        if lost.failed is None:
            at = moment(lost.restarted_at)
            raise ToolError(f"process {name} was ended by a restart of the server at {at} and does not run any more")
        raise ToolError(f"process {name} has exited: it {lost.failed}")

    def all(self) -> list[Process]:
        """Return the processes of every tree."""
        return list(self._processes.values())

    def lost(self) -> list[LostProcess]:
        """Return the processes of earlier runs that are listed and do not run."""
        return [lost for lost, _ in self._lost.values()]

    def listed(self, tree: str) -> list[Process | LostProcess]:
        """Return a tree's processes in the order in which they were first started."""
        everything: list[Process | LostProcess] = [*self.all(), *self.lost()]
        found = [one for one in everything if one.tree == tree]
        return sorted(found, key=_start_order)

    def keep_lost(self, lost: LostProcess, seconds: float) -> None:
        """List a process of an earlier run for some time."""

        def forget() -> None:
            del self._lost[lost.id]
            self._recorder.remove_killed(lost.id)

        self._lost[lost.id] = (lost, asyncio.get_running_loop().call_later(seconds, forget))
        self._recorder.remove(lost.id)
        if lost.failed is None:
            self._recorder.add_killed(
                Killed(
                    id=lost.id,
                    tree=lost.tree,
                    cmd=lost.shown,
                    restarted_at=lost.restarted_at,
                    started_at=lost.started_at,
                )
            )

    # -------------------------------------------------------------------------------------------------------- ending

    def _ended(self, process: Process) -> None:
        """Take note of an exit.

        A machine that goes down sends TERM or KILL to everything at once, and the server may see its children end
        before it gets its own signal. So a process that ended by such a signal, which the server did not send, stays in
        the record for another second, and for good once the server stops.
        """
        if not process.detached:
            self._activity.end()
        if process.id is None:
            self._jobs.discard(process)
            return
        self._keep(process)
        if process in self._stopped:
            return
        if process.ended_here or process.exit_code not in FOREIGN_ENDS:
            self._recorder.remove(process.id)
        elif not self.stopping:
            timer = asyncio.get_running_loop().call_later(FOREIGN_GRACE, self._ended_for_good, process, process.id)
            self._foreign_ends[process] = timer

    def _ended_for_good(self, process: Process, name: str) -> None:
        del self._foreign_ends[process]
        self._recorder.remove(name)

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
        process.broadcast.stop()

    async def recorded(self) -> None:
        """Wait until every change so far is in the record."""
        await self._recorder.settled()

    async def record_numbers(self) -> None:
        """Write the record because the number of a watch has changed, and wait for it."""
        self._recorder.changed()
        await self._recorder.settled()

    def begin_stop(self) -> None:
        """Start nothing any more, end every stream, and settle what the next server starts again.

        That is what runs now, without what ends by itself during its first half second.
        """
        self.stopping = True
        for timer in self._foreign_ends.values():
            timer.cancel()
        for process in self._processes.values():
            process.broadcast.stop()
            if process.age >= BEGINNING:
                self._ends_by_stop(process)

    def _ends_by_stop(self, process: Process) -> None:
        if not (process.exited or process.ended_here):
            self._stopped.add(process)

    async def stop(self) -> None:
        """End everything that runs: TERM once it is half a second old, two seconds, KILL."""
        self.begin_stop()
        running = [process for process in (*self._processes.values(), *self._jobs) if process.running]
        await asyncio.gather(*map(self._stop, running))
        for timer in [*self._exited.values(), *(timer for _, timer in self._lost.values())]:
            timer.cancel()
        for process in list(self._every):
            process.close()
        self.launcher.close()

    async def _stop(self, process: Process) -> None:
        await asyncio.wait([process.ended], timeout=max(BEGINNING - process.age, 0))
        self._ends_by_stop(process)
        await process.end(STOP_PATIENCE)


def _start_order(process: Process | LostProcess) -> tuple[datetime, int]:
    """Return what processes are sorted by; a lost one of an older server's record tells its start no nearer."""
    started_at = process.started_at
    if started_at is None:
        assert isinstance(process, LostProcess)
        started_at = process.restarted_at
    return started_at, number(process.id or "p0")


def _allocated(process: Process) -> int:
    return process.stdout.ring.allocated + process.stderr.ring.allocated
