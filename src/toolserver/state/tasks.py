"""The queue of tasks of a tree, kept in `.kd/tasks.json` (specification, section 11)."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from toolserver.errors import BadArgument, ToolError
from toolserver.state.file import StateFile, Temps

NAME = b"tasks.json"
QUEUED = 200
"""Tasks that wait at most."""
RECENT = 5
"""Finished tasks that are kept."""

log = logging.getLogger("toolserver.tasks")

_Signature = tuple[int, int, int, int, int]
State = Literal["queued", "running", "done", "failed", "cancelled"]


class Task(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One task, as it is stored and as it is shown; what is None is left out. Times are RFC 3339 in UTC."""

    id: str
    title: str
    note: str | None = None
    state: State
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    result: str | None = None
    reason: str | None = None


class Board(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All that is stored of a tree. `last` is the number of the newest id; ids are never used again."""

    last: int = 0
    running: Task | None = None
    queue: list[Task] = msgspec.field(default_factory=list)
    recent: list[Task] = msgspec.field(default_factory=list)

    def add(self, title: str, note: str | None, after: str | None) -> None:
        """Queue a task at the end, or after a queued one."""
        if len(self.queue) >= QUEUED:
            raise BadArgument(f"title: {QUEUED} tasks are queued already; finish or cancel some first")
        place = len(self.queue) if after is None else self._queued(after) + 1
        self.last += 1
        self.queue.insert(place, Task(id=f"t{self.last}", title=title, note=note, state="queued", created_at=_now()))

    def start(self, name: str | None) -> None:
        """Start a queued task, by default the first."""
        if self.running is not None and name != self.running.id:
            raise ToolError(f"task {self.running.id} ({self.running.title[:60]}) is running; finish or cancel it first")
        if self.running is not None:
            raise ToolError(f"task {name} is running already")
        if name is None and not self.queue:
            raise ToolError("no task is queued; add one first")
        task = self.queue.pop(0 if name is None else self._queued(name))
        task.state, task.started_at = "running", _now()
        self.running = task

    def finish(self, name: str | None, state: State, *, result: str | None = None, reason: str | None = None) -> None:
        """End the running task as done or failed."""
        if self.running is None or name not in (None, self.running.id):
            if name is None:
                raise ToolError("no task is running; start one first")
            self._queued(name)  # says what is wrong with any other
            raise ToolError(f"task {name} is queued, not running; start it first, or cancel it")
        task, self.running = self.running, None
        task.result, task.reason = result, reason
        self._ended(task, state)

    def cancel(self, name: str, reason: str | None) -> None:
        """Cancel the running task or a queued one."""
        if self.running is not None and name == self.running.id:
            task, self.running = self.running, None
        else:
            task = self.queue.pop(self._queued(name))
        task.reason = reason
        self._ended(task, "cancelled")

    def reorder(self, names: Sequence[str]) -> None:
        """Put the queue in another order."""
        by_name = {task.id: task for task in self.queue}
        if sorted(names) != sorted(by_name):
            raise BadArgument(f"ids: expected exactly the queued ids, each once: {', '.join(by_name) or 'none'}")
        self.queue = [by_name[name] for name in names]

    def _ended(self, task: Task, state: State) -> None:
        task.state, task.finished_at = state, _now()
        self.recent = [task, *self.recent][:RECENT]

    def _queued(self, name: str) -> int:
        """Return the place of a queued task; ToolError says why there is none."""
        for place, task in enumerate(self.queue):
            if task.id == name:
                return place
        if self.running is not None and name == self.running.id:
            raise ToolError(f"task {name} is running, not queued")
        for task in self.recent:
            if task.id == name:
                raise ToolError(f"task {name} is {task.state} and stays so")
        number = name[1:] if name.startswith("t") and name.isascii() and name[1:].isdecimal() else ""
        if number and number[0] != "0" and len(number) < 20 and int(number) <= self.last:
            raise ToolError(f"task {name} has ended and stays so")
        raise ToolError(f"no task {name[:64]}")

    def consistent(self) -> bool:
        """Whether states, places and ids agree, as they do in what was written here."""
        tasks = [*self.queue, *self.recent, *([self.running] if self.running else [])]
        numbers = [task.id[1:] for task in tasks if task.id.startswith("t") and task.id.isascii()]
        return (
            len(set(numbers)) == len(tasks)
            and all(number.isdecimal() and int(number) <= self.last for number in numbers)
            and all(task.state == "queued" for task in self.queue)
            and (self.running is None or self.running.state == "running")
            and all(task.state in ("done", "failed", "cancelled") for task in self.recent)
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_ID = re.compile(rb'"(?:id"\s{0,9}:\s{0,9}"t|last"\s{0,9}:\s{0,9})([0-9]{1,9})(?![0-9])')


def _last_id(data: bytes) -> int:
    """Return the greatest number of an id that a corrupt file still tells, so that none is used again."""
    return max((int(found) for found in _ID.findall(data)), default=0)


_decode = msgspec.json.Decoder(Board).decode
_encode = msgspec.json.Encoder().encode


def read(file: StateFile) -> tuple[Board, list[str]]:
    """Return what is stored and what there is to tell of it. A corrupt file is set aside. Raises OSError."""
    data = file.read()
    if data is None:
        return Board(), []
    try:
        board = _decode(data)
        if board.consistent():
            return board, []
    except msgspec.MsgspecError:
        pass
    name = file.set_aside()
    log.warning("the queue of tasks was corrupt and is set aside as %s", name)
    return Board(last=_last_id(data)), [
        f"the stored queue was corrupt; it is kept as .kd/{name}, and the queue begins anew"
    ]


class Tasks:
    """The boards of all trees of a server: changed one call at a time, also where several servers share a root."""

    def __init__(self, temps: Temps, lock_directory: Callable[[], str]) -> None:
        """`lock_directory` returns where the lock between servers lies, outside the workspace. It may raise OSError."""
        self._temps = temps
        self._lock_directory = lock_directory
        self._locks: weakref.WeakValueDictionary[bytes, asyncio.Lock] = weakref.WeakValueDictionary()
        self._running: dict[bytes, tuple[_Signature, str | None]] = {}

    async def look(self, root: bytes) -> tuple[Board, list[str]]:
        """Return the board of the tree with this root, and what there is to tell of its file. Raises ToolError."""
        return await self.change(root, None)

    async def change(self, root: bytes, action: Callable[[Board], None] | None) -> tuple[Board, list[str]]:
        """Change the board of a tree and store it; nothing is stored where `action` raises. Raises ToolError."""
        lock = self._locks.get(root)
        if lock is None:
            lock = self._locks[root] = asyncio.Lock()
        async with lock:
            return await asyncio.to_thread(self._change, StateFile(root, NAME, self._temps), action)

    def _change(self, file: StateFile, action: Callable[[Board], None] | None) -> tuple[Board, list[str]]:
        try:
            with self._locked():
                board, notes = read(file)
                if action is not None:
                    action(board)
                    file.write(_encode(board))
        except OSError as error:
            raise ToolError(f".kd/{NAME.decode()}: {(error.strerror or 'cannot be used').lower()}") from error
        return board, notes

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Wait for other servers; where no lock can be made there is none, and the last one to write wins."""
        try:
            path = os.path.join(self._lock_directory(), "tasks.lock")
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            log.debug("no lock of the tasks: %s", error)
            yield
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def running(self, root: bytes) -> str | None:
        """Return the id of the task that runs in a tree. The file is read again when it has changed."""
        try:
            status = os.stat(os.path.join(root, b".kd", NAME), follow_symlinks=False)
        except OSError:
            return None
        signature = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self._running.get(root)
        if known is None or known[0] != signature:
            known = self._running[root] = (signature, self._read_running(root))
        return known[1]

    def _read_running(self, root: bytes) -> str | None:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            board = _decode(StateFile(root, NAME, self._temps).read() or b"{}")
            return board.running.id if board.running is not None else None
        return None
