"""Starts again what ran when the server was stopped or killed (specification, section 9)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from toolserver.errors import ToolError
from toolserver.processes.restart.lost import LostProcess, moment
from toolserver.processes.restart.record import Killed, Running, number
from toolserver.processes.restart.recorder import Recorder
from toolserver.processes.table import LISTED, ProcessTable
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.workspace.root import Workspace

PAUSES = (0.0, 0.2, 1.0)
"""Seconds before each of the attempts to start a process."""
KILLED_LISTED = 3600.0
"""Seconds that a process which was not started again stays listed."""

log = logging.getLogger("toolserver.processes")


async def relaunch(recorder: Recorder, table: ProcessTable, workspace: Workspace) -> None:
    """Fill the table from the record: what can be started again runs, the rest is listed.

    Call it once, before connections are taken, so that no call meets a process that is about to be started. Of a record
    that another living server keeps only the numbers count, so that ids are not used again.
    """
    loaded = await recorder.load()
    if loaded is None:
        return
    record, ours = loaded
    table.last_number = recorder.last_process = max([record.last_process, *map(number, record.ids)])
    recorder.watches.last_number = record.last_watch
    if not ours:
        return
    now = datetime.now(UTC)
    again: list[Running] = []
    lost: list[Running] = []
    for entry in sorted(record.running, key=lambda entry: number(entry.id)):
        same = record.workspace == recorder.workspace
        (again if same and entry.detached and entry.relaunch else lost).append(entry)
    recorder.preset(again)
    _list_killed(table, record.killed, now)
    for entry in lost:
        table.keep_lost(LostProcess(entry.id, entry.tree, entry.shown, now, entry.started_at), KILLED_LISTED)
    await _start_all(again, table, workspace, now)
    recorder.changed()


def _list_killed(table: ProcessTable, killed: Iterable[Killed], now: datetime) -> None:
    """List for the rest of their hour what earlier starts did not start again."""
    for one in killed:
        # a clock that was set back makes nothing older than it is
        age = max(now - one.restarted_at, timedelta()).total_seconds()
        if age < KILLED_LISTED:
            lost = LostProcess(one.id, one.tree, one.cmd, one.restarted_at, one.started_at)
            table.keep_lost(lost, KILLED_LISTED - age)


async def _start_all(entries: list[Running], table: ProcessTable, workspace: Workspace, now: datetime) -> None:
    waiting = {entry.id: entry for entry in entries}
    reasons: dict[str, str] = {}
    started = []
    for pause in PAUSES:
        if not waiting:
            break
        await asyncio.sleep(pause)
        for entry in list(waiting.values()):
            try:
                await _start(entry, table, workspace, now)
            except (ToolError, OSError) as error:
                reasons[entry.id] = str(error)
            else:
                del waiting[entry.id]
                started.append(entry.id)
    for entry in waiting.values():
        failed = f"could not be started again after a restart of the server: {reasons[entry.id]}"
        lost = LostProcess(entry.id, entry.tree, entry.shown, now, entry.started_at, failed, entry.restarts)
        table.keep_lost(lost, LISTED)
    if reasons or started:
        log.info(
            "processes of an earlier run were started again",
            extra={"facts": {"started": started, "failed": [name for name in reasons if name not in started]}},
        )


async def _start(entry: Running, table: ProcessTable, workspace: Workspace, now: datetime) -> None:
    """Start one process again. Raises ToolError, also where its directory is gone or leads outside now."""
    command = entry.command()
    marker = f"[toolserver] restarted at {moment(now)}\n".encode()
    with workspace.tree(entry.tree) as tree:
        fd, cwd = tree.directory(entry.directory)
        try:
            directory = WorkingDirectory(tree.name, tree.root, cwd, fd)
            await table.start_again(entry, command, directory, marker)
        finally:
            os.close(fd)
