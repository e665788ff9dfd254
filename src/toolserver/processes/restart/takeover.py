"""What one run of the server leaves to the next: the record of its processes, and the notes on its children."""

from __future__ import annotations

import asyncio

from toolserver.processes.restart.children import Children
from toolserver.processes.restart.orphans import sweep
from toolserver.processes.restart.record_lock import Ownership
from toolserver.processes.restart.recorder import Recorder
from toolserver.processes.restart.relaunch import relaunch
from toolserver.processes.table import ProcessTable
from toolserver.state.directory import directory as state_directory
from toolserver.workspace.root import Workspace


class Takeover:
    """Takes over from the previous run at the start, and hands over at the stop."""

    def __init__(
        self, workspace: Workspace, table: ProcessTable, recorder: Recorder, ownership: Ownership, children: Children
    ) -> None:
        self._workspace = workspace
        self._table = table
        self._recorder = recorder
        self._ownership = ownership
        self._children = children

    async def begin(self) -> None:
        """End the orphans of killed servers, then start again what they ran. Call it before connections are taken.

        Where another living server keeps the record of this root, nothing is started again and nothing recorded.
        """
        root = self._workspace.root
        await asyncio.to_thread(sweep, state_directory(root), root)
        await relaunch(self._recorder, self._table, self._workspace)

    def stopping(self) -> None:
        """Begin the stop: what still runs then is what the next server starts again."""
        self._table.begin_stop()
        self._ownership.stopping()

    async def close(self) -> None:
        """Wait for the last write of the record."""
        await self._recorder.close()

    def release(self) -> None:
        """Give up the notes and the lock, once nothing runs any more."""
        self._children.close()
        self._ownership.release()
