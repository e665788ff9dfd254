"""Starts again what ran when the server was stopped or killed (specification, section 9)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from toolserver.errors import ToolError
from toolserver.processes.restart.lost import Former, moment
from toolserver.processes.restart.record import Killed, Running, number
from toolserver.processes.restart.recorder import Keeper
from toolserver.processes.table import LISTED, ProcessTable
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.workspace.root import Workspace

PAUSES = (0.0, 0.2, 1.0)
"""Seconds before each of the attempts to start a process."""
KILLED_LISTED = 3600.0
"""Seconds that a process which was not brought back stays listed."""

log = logging.getLogger("toolserver.processes")


async def relaunch(keeper: Keeper, table: ProcessTable, workspace: Workspace) -> None:
    """Fill the table from the record: what is brought back runs, the rest is listed.

    Called once, before connections are taken, so that nobody meets a process that is about to be started. Of a record
    that another living server keeps only the numbers count, so that ids go on.
    """
    loaded = await keeper.load()
    table.recorder = keeper
    if loaded is None:
        return
    record, ours = loaded
    table.last_number = max([record.last_process, *map(number, record.ids)])
    keeper.watches.last_number = record.last_watch
    if not ours:
        return
    now = datetime.now(UTC)
    _list_killed(table, record.killed, now)
    same = record.workspace == keeper.workspace
    for entry in sorted(record.running, key=lambda entry: number(entry.id)):
        if same and entry.detached and entry.relaunch:
            keeper.unreached[entry.id] = entry
        else:
            table.keep_former(Former(entry.id, entry.tree, entry.shown, now), KILLED_LISTED)
    await _start_all(keeper, table, workspace, now)
    table.note()


def _list_killed(table: ProcessTable, killed: Iterable[Killed], now: datetime) -> None:
    """List for the rest of their hour what earlier starts did not bring back."""
    for one in killed:
        # a clock that was put back makes nothing older than it is
        age = max(now - one.restarted_at, timedelta()).total_seconds()
        if age < KILLED_LISTED:
            table.keep_former(Former(one.id, one.tree, one.cmd, one.restarted_at), KILLED_LISTED - age)


async def _start_all(keeper: Keeper, table: ProcessTable, workspace: Workspace, now: datetime) -> None:
    reasons: dict[str, str] = {}
    started = []
    for pause in PAUSES:
        if not keeper.unreached:
            break
        await asyncio.sleep(pause)
        for entry in list(keeper.unreached.values()):
            try:
                await _start(entry, table, workspace, now)
            except (ToolError, OSError) as error:
                reasons[entry.id] = str(error)
            else:
                del keeper.unreached[entry.id]
                started.append(entry.id)
    for entry in list(keeper.unreached.values()):
        failed = f"could not be started again after a restart of the server: {reasons[entry.id]}"
        former = Former(entry.id, entry.tree, entry.shown, now, entry.started_at, failed, entry.restarts)
        table.keep_former(former, LISTED)
        del keeper.unreached[entry.id]
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
            await table.start_again(entry.id, command, directory, restarts=entry.restarts + 1, marker=marker)
        finally:
            os.close(fd)
