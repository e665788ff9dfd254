"""Locks of the writer: over files by name inside one server, over directories between servers."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Generic, TypeVar

PATIENCE_S = 4.0
"""Seconds to wait for a directory lock that another program holds."""

K = TypeVar("K")
L = TypeVar("L", asyncio.Lock, threading.Lock)


class _Table(Generic[K, L]):
    """Locks by key, created on demand and dropped when no caller holds or awaits them."""

    def __init__(self, make: type[L]) -> None:
        self._make: type[L] = make
        self._guard = threading.Lock()
        self._locks: dict[K, tuple[L, int]] = {}

    def borrow(self, key: K) -> L:
        with self._guard:
            lock, users = self._locks.get(key) or (self._make(), 0)
            self._locks[key] = (lock, users + 1)
            return lock

    def give_back(self, key: K) -> None:
        with self._guard:
            lock, users = self._locks[key]
            if users == 1:
                del self._locks[key]
            else:
                self._locks[key] = (lock, users - 1)


class PathLocks:
    """One lock for each path, for the calls of one server. Taken in sorted order, so that no deadlock is possible."""

    def __init__(self) -> None:
        self._table: _Table[bytes, asyncio.Lock] = _Table(asyncio.Lock)

    @contextlib.asynccontextmanager
    async def hold(self, paths: Iterable[bytes]) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for path in sorted(set(paths)):
                lock = self._table.borrow(path)
                stack.callback(self._table.give_back, path)
                await stack.enter_async_context(lock)
            yield


class Busy(Exception):
    """Another program holds the lock of a directory and did not release it in time."""


class DirectoryLocks:
    """Locks over directories, for the threads of this server and, by flock, for every server on the same files."""

    def __init__(self) -> None:
        self._table: _Table[tuple[int, int], threading.Lock] = _Table(threading.Lock)

    @contextlib.contextmanager
    def hold(self, folders: dict[tuple[int, int], int], patience: float | None = None) -> Iterator[None]:
        """Hold the locks of directories, given as `(device, inode) → descriptor`.

        Raises Busy after `patience` seconds (None: PATIENCE_S); with 0 it never waits.
        """
        end = time.monotonic() + (PATIENCE_S if patience is None else patience)
        with contextlib.ExitStack() as stack:
            for key in sorted(folders):
                lock = self._table.borrow(key)
                stack.callback(self._table.give_back, key)
                if not lock.acquire(timeout=max(end - time.monotonic(), 0.0)):
                    raise Busy
                stack.callback(lock.release)
                if _flock(folders[key], end):
                    stack.callback(fcntl.flock, folders[key], fcntl.LOCK_UN)
            yield


def _flock(fd: int, end: float) -> bool:
    """Lock a directory. Return False where its file system does not support locks, or it was opened with O_PATH.

    Only another program can hold the lock, since the threads of this one wait for the lock in the table first. A
    blocking flock has no deadline, so it is tried again at growing intervals.
    """
    pause = 0.0002
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno in (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                return False
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                raise
        if time.monotonic() >= end:
            raise Busy
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
