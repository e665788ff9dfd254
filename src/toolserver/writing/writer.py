"""The atomic writer: every change of files in a tree goes through it (specification, section 4).

A change is a function that takes a `Batch`, looks at files and stages changes. The writer then writes each new content
to an unnamed file in the target's directory, flushes all of them, and renames them; all or nothing.

* In one server, calls over the same files run one after the other, by link-free path.
* Between servers (and against any other program that writes) a call checks, under locks of the directories, that each
  file it has read is unchanged; otherwise it starts over. So the function must depend on the batch alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from toolserver._fast.files import in_memory
from toolserver.errors import ToolError
from toolserver.workspace.paths import Place, Tree, failure
from toolserver.writing.batch import FILE_LIMIT, Batch, Conflict, NotBrief
from toolserver.writing.commit import Commit
from toolserver.writing.locks import Busy, DirectoryLocks, PathLocks
from toolserver.writing.temps import TempRegistry

R = TypeVar("R")

THREADS = 8
"""How many changes run at once; they mostly wait for the disk."""
OPTIMISTIC = 3
"""After so many conflicts a change locks its directories before it looks."""
ATTEMPTS = 40
"""After so many conflicts it gives up: a program that takes no lock keeps changing the file."""
INLINE = 8
"""Up to so many places are resolved on the event loop, and changed there if the change is brief."""


class Writer:
    """Changes files of a workspace, all or nothing. One a server."""

    def __init__(self, root: bytes) -> None:
        """`root` is the workspace's resolved path. Removes temporary files of killed servers."""
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="writer")
        self._paths = PathLocks()
        self._directories = DirectoryLocks()
        self._record = TempRegistry(root)
        self.umask = _umask()
        self._record.sweep()

    @property
    def temps(self) -> TempRegistry:
        """The record of names that would be left after a kill."""
        return self._record

    def close(self) -> None:
        """Wait for the changes in progress and stop."""
        self._pool.shutdown()
        self._record.close()

    async def change(
        self,
        tree: Tree,
        places: Iterable[Place],
        work: Callable[[Batch], R],
        limit: int = FILE_LIMIT,
        *,
        brief: bool = False,
    ) -> R:
        """Run `work` on a batch of the tree, commit what it stages, and return its result.

        `work` runs in a thread, and runs again if a file it looked at changes before the commit; it may change only its
        batch. If it raises, nothing is changed. Other calls of this server that name one of `places` wait, so give all
        that `work` looks at; one that is missing costs only a repetition. `limit` is the most bytes of one file. Raises
        ToolError, with nothing changed, if a step fails.

        `brief`: `work` takes well below a millisecond for a few small files. Where no disk is involved either, it runs
        on the event loop first, since a hop to a thread would take longer than the change.
        """
        wanted = tuple(places)
        few = len(wanted) <= INLINE
        if few:
            keys = _keys(tree, wanted)
        else:
            keys = await self._run(lambda: _keys(tree, wanted))
        async with self._paths.hold(keys):
            if brief and few and in_memory(tree.fd):
                with contextlib.suppress(Conflict, Busy, NotBrief):
                    self._record.sweep()
                    with Batch(tree, limit, brief=True) as batch:
                        return self._attempt(batch, work, patience=0)
            return await self._run(lambda: self.apply(tree, work, limit))

    async def _run(self, job: Callable[[], R]) -> R:
        """Run a job in the pool; if cancelled, still wait for its end, since the caller holds locks for it."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, job)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise
        finally:
            del future  # an error's traceback refers to this frame: keeping the future here would be a cycle

    def apply(self, tree: Tree, work: Callable[[Batch], R], limit: int = FILE_LIMIT) -> R:
        """Do what `change` does, blocking the calling thread, without waiting for calls over the same files.

        No change is lost: a conflict is detected, and the work repeated.
        """
        self._record.sweep()
        ahead: set[bytes] = set()
        name = ""
        for attempt in range(ATTEMPTS):
            with Batch(tree, limit) as batch:
                try:
                    if attempt < OPTIMISTIC:
                        return self._attempt(batch, work)
                    return self._attempt_locked(batch, work, ahead)
                except Conflict as conflict:
                    name = str(conflict)
                    ahead.update(batch.folders)
                except Busy:
                    given = next(iter(batch.files.values())).place.given
                    raise ToolError(f"{given}: another program holds a lock on its directory") from None
        raise ToolError(f"{name} keeps changing while it is being changed here; nothing was written")

    def _attempt(self, batch: Batch, work: Callable[[Batch], R], patience: float | None = None) -> R:
        """Look and stage without locks; hold them only while names change."""
        result = work(batch)
        with Commit(batch, self._record, self.umask) as commit:
            if commit.stage():
                with self._directories.hold(batch.locks(), patience):
                    commit.carry_out()
        return result

    def _attempt_locked(self, batch: Batch, work: Callable[[Batch], R], ahead: set[bytes]) -> R:
        """Lock first the directories that earlier attempts needed, so that no other server can interfere."""
        for path in ahead:
            with contextlib.suppress(OSError):  # gone meanwhile, and then no longer needed
                batch.folder(path)
        locks = batch.locks()
        with self._directories.hold(locks):
            result = work(batch)
            with Commit(batch, self._record, self.umask) as commit:
                if commit.stage():
                    if not batch.locks().keys() <= locks.keys():
                        raise Conflict(next(iter(batch.files.values())).place.given)
                    commit.carry_out()
        return result


def _keys(tree: Tree, places: tuple[Place, ...]) -> list[bytes]:
    """Return the absolute link-free paths of places. Raises ToolError where one cannot be resolved."""
    keys = []
    for place in places:
        try:
            keys.append(os.path.join(tree.root, tree.real(place)))
        except OSError as error:
            raise failure(place.given, error) from error
    return keys


def _umask() -> int:
    """Return the process's umask; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
