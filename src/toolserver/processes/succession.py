"""What one run of the server leaves to the next: its record, its right to keep it, the notes on its children."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os

from toolserver.processes.children import Children
from toolserver.processes.claim import Claim
from toolserver.processes.keeper import Keeper
from toolserver.processes.orphans import sweep
from toolserver.processes.relaunch import relaunch, take_numbers
from toolserver.processes.table import ProcessTable
from toolserver.workspace.root import Workspace
from toolserver.workspace.state import make_directory

log = logging.getLogger("toolserver.processes")


class Succession:
    """Takes over from the run before at the start, and hands over at the stop."""

    def __init__(self, workspace: Workspace, table: ProcessTable, keeper: Keeper) -> None:
        self._workspace = workspace
        self._table = table
        self._keeper = keeper
        self._directory: str | None = None
        self._claim: Claim | None = None

    async def begin(self) -> int:
        """End the orphans of killed servers, then start again what they ran. Answer the last watch's number.

        To be called before connections are taken. Where another living server keeps the record of this root, this one
        leaves it alone: it starts nothing again and records nothing.
        """
        try:
            self._directory = await asyncio.to_thread(make_directory, self._workspace.root)
            await asyncio.to_thread(sweep, self._directory, self._workspace.root)
            self._claim = await asyncio.to_thread(Claim.take, self._directory)
        except OSError as error:
            log.warning("no state directory, so a crash may leave commands running: %s", error.strerror)
        else:
            self._table.launcher.children = Children(self._directory)
            if self._claim is None:
                log.warning("another server of this root is running: processes of this one are not recorded")
                return await take_numbers(self._keeper, self._table)
        self._table.recorder = self._keeper
        return await relaunch(self._keeper, self._table, self._workspace)

    def stopping(self) -> None:
        """The stop begins: what runs now is what ran."""
        self._keeper.freeze()
        if self._claim is not None:
            with contextlib.suppress(OSError):  # a full disk: a server that starts right now does not wait
                self._claim.stopping()

    async def close(self) -> None:
        """Wait for the record's last write."""
        await self._keeper.close()

    def release(self) -> None:
        """Give the rest up, once nothing runs any more."""
        if self._table.launcher.children is not None:
            self._table.launcher.children.close()
        if self._claim is not None:
            self._claim.release()
        if self._directory is not None:
            with contextlib.suppress(OSError):  # it holds the root's token
                os.rmdir(self._directory)
