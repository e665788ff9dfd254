"""Keeps `.kd/processes.json` in step with the process table: read at the start, written at each change."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import msgspec

from toolserver.processes.process import Process
from toolserver.processes.restart.record import (
    Corrupt,
    Killed,
    Record,
    Running,
    decode,
    encode,
    encode_running,
    entry_of,
    number,
    salvage,
)
from toolserver.processes.table import ProcessTable
from toolserver.state.file import StateFile

log = logging.getLogger("toolserver.processes")


class Numbered(Protocol):
    """What gives out ids: the table of watches."""

    last_number: int


class Keeper:
    """Writes the record of one server. Changes that come while it is being written share the next write.

    A record that cannot be written (a full disk, a read-only workspace) fails nothing; it is logged once.
    """

    def __init__(
        self, file: StateFile, workspace: str, table: ProcessTable, watches: Numbered, may_keep: Callable[[], bool]
    ) -> None:
        """`may_keep` tells, in a thread, whether this server is the one that keeps the record."""
        self.workspace = workspace
        self.unreached: dict[str, Running] = {}
        """What is still to be started again; it stays in the record until it runs or is given up."""
        self.watches = watches
        self._file = file
        self._table = table
        self._may_keep = may_keep
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="record")
        self._entries: weakref.WeakKeyDictionary[Process, msgspec.Raw] = weakref.WeakKeyDictionary()
        self._wanted = self._written = 0
        self._task: asyncio.Task[None] | None = None
        self._round: asyncio.Future[None] | None = None
        self._last: bytes | None = None
        self._failing = False

    async def load(self) -> tuple[Record, bool] | None:
        """Read what an earlier run has left and tell whether it is ours to keep. None: nothing is left.

        A corrupt record is set aside; of what it holds only the ids count.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    def _load(self) -> tuple[Record, bool] | None:
        data = self._read()
        if data is None:
            return None
        ours = self._may_keep()
        if ours:
            data = self._read()  # one that we have waited for may have written it meanwhile
        return (self._decode(data, ours), ours) if data is not None else None

    def _read(self) -> bytes | None:
        try:
            return self._file.read()
        except OSError as error:
            log.warning("the record of processes cannot be read: %s", error.strerror)
            return None

    def _decode(self, data: bytes, ours: bool) -> Record:
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

    # ------------------------------------------------------------------------------------------------------- writing

    def note(self) -> None:
        """Something has changed: write the record, unless the server stops."""
        if self._last is not None:
            return
        self._wanted += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write_all())

    async def settled(self) -> None:
        """Wait until what has been noted so far is written."""
        want = self._wanted
        while self._written < want and self._task is not None:
            if self._round is None:
                self._round = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._round)

    def freeze(self) -> None:
        """From now on, the stop, nothing changes the record any more: what runs now ran until the stop."""
        if self._last is None:
            self._last = self._content()

    async def close(self) -> None:
        """Wait for the last write."""
        self.freeze()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._written < self._wanted:
                version = self._wanted
                data = self._content() if self._last is None else self._last
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
        if not self._may_keep():
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
        """Encode what a next start needs to know."""
        table = self._table
        running = {process.id: self._entry(process) for process in table.recorded() if process.id is not None}
        for name, entry in self.unreached.items():
            if name not in running:
                running[name] = encode_running(entry)
        killed = [
            Killed(id=one.id, tree=one.tree, cmd=one.shown, restarted_at=one.restarted_at)
            for one in table.former()
            if one.failed is None
        ]
        entries = [running[name] for name in sorted(running, key=number)]
        return encode(self.workspace, table.last_number, self.watches.last_number, entries, killed)

    def _entry(self, process: Process) -> msgspec.Raw:
        entry = self._entries.get(process)
        if entry is None:
            entry = self._entries[process] = encode_running(entry_of(process))
        return entry
