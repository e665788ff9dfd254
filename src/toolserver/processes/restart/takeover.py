"""What one run of the server leaves to the next: its record, its right to keep it, the notes on its children."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os

from toolserver.processes.restart.children import Children
from toolserver.processes.restart.claim import Claim
from toolserver.processes.restart.orphans import sweep
from toolserver.processes.restart.recorder import Keeper, Numbered
from toolserver.processes.restart.relaunch import relaunch
from toolserver.processes.table import ProcessTable
from toolserver.state.directory import directory as state_directory
from toolserver.state.directory import make_directory
from toolserver.state.file import StateFile
from toolserver.workspace.root import Workspace

log = logging.getLogger("toolserver.processes")


class Succession:
    """Takes over from the run before at the start, and hands over at the stop."""

    def __init__(
        self, workspace: Workspace, table: ProcessTable, watches: Numbered, file: StateFile, identity: str
    ) -> None:
        """`file` is the record, `identity` the workspace's id."""
        self._workspace = workspace
        self._table = table
        self._claim: Claim | None = None
        self._keeps: bool | None = None
        self.keeper = Keeper(file, identity, table, watches, self._may_keep)

    async def begin(self) -> None:
        """End the orphans of killed servers, then start again what they ran.

        To be called before connections are taken. Where another living server keeps the record of this root, this one
        leaves it alone: it starts nothing again and records nothing.
        """
        root = self._workspace.root
        directory = state_directory(root)
        await asyncio.to_thread(sweep, directory, root)
        self._table.launcher.children = Children(directory)
        await relaunch(self.keeper, self._table, self._workspace)

    def _may_keep(self) -> bool:
        """Tell whether this server keeps the record; asked before it is first read or written, in a thread."""
        if self._keeps is None:
            self._keeps = True
            try:
                self._claim = Claim.take(make_directory(self._workspace.root))
            except OSError as error:
                log.warning("no state directory, so two servers of this root would not know: %s", error.strerror)
            else:
                self._keeps = self._claim is not None
            if not self._keeps:
                log.warning("another server of this root is running: processes of this one are not recorded")
        return self._keeps

    def stopping(self) -> None:
        """The stop begins: what runs now is what ran."""
        self.keeper.freeze()
        if self._claim is not None:
            with contextlib.suppress(OSError):  # a full disk: a server that starts right now does not wait
                self._claim.stopping()

    async def close(self) -> None:
        """Wait for the record's last write."""
        await self.keeper.close()

    def release(self) -> None:
        """Give the rest up, once nothing runs any more."""
        if self._table.launcher.children is not None:
            self._table.launcher.children.close()
        if self._claim is not None:
            self._claim.release()
            with contextlib.suppress(OSError):  # it holds the root's token
                os.rmdir(state_directory(self._workspace.root))
