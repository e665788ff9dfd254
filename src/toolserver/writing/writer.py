"""The atomic writer: every change of files in a tree goes through it (specification, section 4).

A change is a function that is given a `Batch`, looks at files and stages what shall be. The writer then writes each new
content to an unnamed file beside its target, flushes it, and gives them all their names; all or nothing.

* In one server, calls over the same files run one after the other, by link-free path.
* Between servers (and against whoever else writes) a call notices, under locks of the directories, that a file it has
  read is no longer the one it read; then it starts over. So the function must work from the batch alone.
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
from toolserver.writing.temps import Record

R = TypeVar("R")

THREADS = 8
"""How many changes are under way at once; they mostly wait for the disk."""
OPTIMISTIC = 3
"""After so many conflicts a change locks its directories before it looks."""
ATTEMPTS = 40
"""After so many conflicts it gives up: somebody who keeps no lock changes the file all the time."""
INLINE = 8
"""Up to so many places are resolved, and changed where that is brief, on the event loop, a few system calls each."""


class Writer:
    """Changes files of a workspace, all or nothing. One a server."""

    def __init__(self, root: bytes) -> None:
        """`root` is the workspace's resolved path. Removes what a killed server left."""
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="writer")
        self._paths = PathLocks()
        self._directories = DirectoryLocks()
        self._record = Record(root)
        self.umask = _umask()
        """Taken from the mode of what is new."""
        self._record.sweep()

    @property
    def temps(self) -> Record:
        """Where names are noted that a kill would leave behind."""
        return self._record

    def close(self) -> None:
        """Wait for what is under way and stop."""
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
        """Run `work` on a batch of the tree, carry out what it has staged, and answer what it answered.

        `work` runs in a thread, and again from the start when a file it looked at has changed meanwhile; it changes
        nothing but its batch. An exception of it ends the call with nothing done. `places` are those that other calls
        of this server shall wait for, normally all that `work` looks at; leaving one out costs only repetition.
        `limit` is the most bytes of one file. Raises ToolError with nothing changed when a step fails.

        `brief`: for a few small files `work` takes well below a millisecond. Where no disk has to be waited for either,
        it is tried on the event loop first: the way to a thread and back would take longer than all the rest.
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
        """Run a job in the pool; a caller that is cancelled still waits for its end, since locks depend on it."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, job)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise
        finally:
            del future  # the traceback of an error in it refers to this frame; the two would keep each other

    def apply(self, tree: Tree, work: Callable[[Batch], R], limit: int = FILE_LIMIT) -> R:
        """Do what `change` does in the calling thread, which it blocks, without waiting for calls over the same files.

        Nothing is lost without waiting either: a conflict is noticed, and the work repeated.
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
        """Look and stage without a lock; lock for as long as names change."""
        answer = work(batch)
        with Commit(batch, self._record, self.umask) as commit:
            if commit.stage():
                with self._directories.hold(batch.locks(), patience):
                    commit.carry_out()
        return answer

    def _attempt_locked(self, batch: Batch, work: Callable[[Batch], R], ahead: set[bytes]) -> R:
        """Lock the directories that the attempts before needed, so that no other server gets in between again."""
        for path in ahead:
            with contextlib.suppress(OSError):  # gone meanwhile, and then no longer needed
                batch.folder(path)
        locks = batch.locks()
        with self._directories.hold(locks):
            answer = work(batch)
            with Commit(batch, self._record, self.umask) as commit:
                if commit.stage():
                    if not batch.locks().keys() <= locks.keys():
                        raise Conflict(next(iter(batch.files.values())).place.given)
                    commit.carry_out()
        return answer


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
    """Read the process's umask, which can only be had by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
