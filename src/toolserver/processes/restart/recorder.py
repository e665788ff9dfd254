"""Keeps `.kd/processes.json` in step with the process table: read at the start, written at each change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import msgspec

from toolserver.processes.restart.record import (
    Corrupt,
    Killed,
    ProcessRecord,
    Running,
    decode,
    encode,
    encode_running,
    number,
    salvage,
)
from toolserver.state.file import StateFile

log = logging.getLogger("toolserver.processes")


class Numbered(Protocol):
    """What assigns ids: the table of watches."""

    last_number: int


class Recorder:
    """Holds the record of one server and writes it after each change. Changes during a write share the next one.

    A record that cannot be written (a full disk, a read-only workspace) fails no call; that is logged once.
    """

    def __init__(self, file: StateFile, workspace: str, watches: Numbered, owned: Callable[[], bool]) -> None:
        """`workspace` is the workspace's id; `owned` tells, in a thread, whether this server keeps the record."""
        self.workspace = workspace
        self.watches = watches
        self.last_process = 0
        """The number of the newest id; ids are never used again."""
        self._file = file
        self._owned = owned
        self._running: dict[str, msgspec.Raw] = {}
        self._killed: dict[str, Killed] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="record")
        self._wanted = self._written = 0
        self._task: asyncio.Task[None] | None = None
        self._round: asyncio.Future[None] | None = None
        self._failing = False

    async def load(self) -> tuple[ProcessRecord, bool] | None:
        """Return the record of an earlier run and whether this server keeps it; None where there is none.

        A corrupt record is set aside; only the ids in it count.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    def _load(self) -> tuple[ProcessRecord, bool] | None:
        data = self._read()
        if data is None:
            return None
        ours = self._owned()
        if ours:
            data = self._read()  # the server that was waited for may have written it meanwhile
        return (self._decode(data, ours), ours) if data is not None else None

    def _read(self) -> bytes | None:
        try:
            return self._file.read()
        except OSError as error:
            log.warning("the record of processes cannot be read: %s", error.strerror)
            return None

    def _decode(self, data: bytes, ours: bool) -> ProcessRecord:
        try:
            return decode(data)
        except Corrupt as problem:
            if ours:
                self._set_aside(problem)
            return salvage(data)

    def _set_aside(self, problem: Corrupt) -> None:
        try:
            name = self._file.set_aside()
        except OSError as error:
            log.warning("the record of processes is corrupt and cannot be set aside: %s", error.strerror)
        else:
            log.warning("the record of processes is corrupt, it is kept as %s: %s", name, problem)

    # -------------------------------------------------------------------------------------------------- what is in it

    def preset(self, entries: Iterable[Running]) -> None:
        """Hold what is still to be started again, without a write: the file has it."""
        self._running = {entry.id: encode_running(entry) for entry in entries}

    def add(self, entry: Running) -> None:
        """Record a process that runs; a process of the same id is replaced."""
        self.last_process = max(self.last_process, number(entry.id))
        self._running[entry.id] = encode_running(entry)
        self.changed()

    def remove(self, name: str) -> None:
        """Forget a process that has ended or was given up."""
        if self._running.pop(name, None) is not None:
            self.changed()

    def add_killed(self, killed: Killed) -> None:
        """Record a process that a restart ended and that stays listed."""
        self._killed[killed.id] = killed
        self.changed()

    def remove_killed(self, name: str) -> None:
        if self._killed.pop(name, None) is not None:
            self.changed()

    # ------------------------------------------------------------------------------------------------------- writing

    def changed(self) -> None:
        """Write the record while the event loop goes on."""
        self._wanted += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write_all())

    async def settled(self) -> None:
        """Wait until every change so far is written."""
        want = self._wanted
        while self._written < want and self._task is not None:
            if self._round is None:
                self._round = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._round)

    async def close(self) -> None:
        """Wait for the last write."""
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._written < self._wanted:
                version = self._wanted
                data = self._content()
                await loop.run_in_executor(self._thread, self._write, data)
                self._written = version
                self._tell()
        finally:
            self._task = None
            self._tell()

    def _tell(self) -> None:
        if self._round is not None:
            self._round.set_result(None)
            self._round = None

    def _write(self, data: bytes) -> None:
        if not self._owned():
            return
        try:
            self._file.write(data)
        except OSError as error:
            if not self._failing:
                log.warning("the record of processes cannot be written: %s", error.strerror)
            self._failing = True
        else:
            self._failing = False

    def _content(self) -> bytes:
        running = [self._running[name] for name in sorted(self._running, key=number)]
        return encode(self.workspace, self.last_process, self.watches.last_number, running, self._killed.values())
