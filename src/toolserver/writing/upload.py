"""Uploads: files that come in ranges, kept hidden beside their target until they are committed.

What is held of an upload is one file whose name tells the upload and how many bytes of it count. A range is written
after those and counts once the file has its next name: whole or not at all, also when the server is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import stat
import time
import weakref
from dataclasses import dataclass
from typing import Any

from xxhash import xxh3_128_hexdigest

from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver._fast.rename import rename_new
from toolserver.errors import Conflict, OverLimit, ToolError
from toolserver.workspace.paths import Place, Tree, failure, kind
from toolserver.writing.attributes import copy_attributes, write_all

MOST_BYTES = 200_000_000
"""Bytes of a file."""
ABANDONED_S = 24 * 3600
"""Seconds after its last range for which an upload is kept."""
PART = re.compile(r"\.toolserver-[0-9a-f]{32}-[0-9]{1,9}\.part")
"""The whole name of what is held of an upload."""
NEW_MODE = 0o644
_SWEPT_AT_ONCE = 100
_TRIES = 8


@dataclass(frozen=True, slots=True)
class Range:
    """One call: bytes of an upload from `offset` on, and what is to be done after them."""

    upload: str
    offset: int
    data: bytes
    commit: bool = False
    overwrite: bool = False
    abort: bool = False


class Uploads:
    """The uploads of a workspace. Those of one target follow one another."""

    def __init__(self, umask: int) -> None:
        self._umask = umask
        self._locks: weakref.WeakValueDictionary[tuple[bytes, bytes], asyncio.Lock] = weakref.WeakValueDictionary()

    async def take(self, tree: Tree, place: Place, given: Range) -> dict[str, Any]:
        """Take a range; return `{bytes}` held, or of a commit `{path, bytes, created}`. Raises ToolError."""
        key = (tree.root, place.path)
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        async with lock:
            return await asyncio.to_thread(self._take, tree, place, given)

    def _take(self, tree: Tree, place: Place, given: Range) -> dict[str, Any]:
        try:
            return self._in_directory(tree, place, given)
        except OSError as error:
            raise failure(place.given, error) from error

    def _in_directory(self, tree: Tree, place: Place, given: Range) -> dict[str, Any]:
        path = tree.real(place)
        above, _, name = path.rpartition(b"/")
        if not name or place.names_directory:
            raise Conflict(f"{place.given} is a directory, which no upload replaces")
        directory = _open_directory(tree.fd, above, make=not given.abort)
        if directory < 0:
            return {"bytes": 0}
        try:
            held = _Held(directory, name, given.upload)
            if given.abort:
                held.remove()
                return {"bytes": 0}
            try:
                held.open()
                _sweep(directory, held.name)
                return self._use(place, held, name, given)
            finally:
                held.close()
        finally:
            os.close(directory)

    def _use(self, place: Place, held: _Held, name: bytes, given: Range) -> dict[str, Any]:
        if given.offset != held.bytes:
            held.remove_empty()
            raise Conflict(f"offset: the upload holds {held.bytes} bytes, so the next range begins there")
        there = _status(held.directory, name)
        if there is not None and not given.overwrite:
            held.remove_empty()
            raise Conflict(f"{place.given} exists; overwrite=1 replaces it")
        if there is not None and not stat.S_ISREG(there.st_mode):
            held.remove_empty()
            raise Conflict(f"{place.given} is {kind(there.st_mode)}, which no upload replaces")
        if given.offset + len(given.data) > MOST_BYTES:
            raise OverLimit(f"{place.given}: {MOST_BYTES} bytes at most")
        if given.data or not given.commit:
            held.append(given.data)
        if not given.commit:
            return {"bytes": held.bytes}
        size = held.bytes
        self._commit(place, held, name, there, overwrite=given.overwrite)
        return {**place.shown(), "bytes": size, "created": there is None}

    def _commit(self, place: Place, held: _Held, name: bytes, there: os.stat_result | None, *, overwrite: bool) -> None:
        """Give the upload its target's name, with the mode, owner and attributes of a file that it replaces."""
        mode = NEW_MODE & ~self._umask
        if there is not None:
            mode = stat.S_IMODE(there.st_mode)
            with contextlib.suppress(PermissionError):
                os.fchown(held.fd, there.st_uid, there.st_gid)
        os.fchmod(held.fd, mode)
        if there is not None:
            copy_attributes(b"/proc/self/fd/%d/%s" % (held.directory, name), held.fd)
        os.fsync(held.fd)
        held.name_it(name, replace=overwrite, given=place.given)
        os.fsync(held.directory)


class _Held:
    """What is held of an upload: a hidden file, locked while it is open, and how many of its bytes count."""

    def __init__(self, directory: int, target: bytes, upload: str) -> None:
        self.directory = directory
        self._prefix = f".toolserver-{xxh3_128_hexdigest(target + b'/' + upload.encode())}-"
        self.name = ""
        self.bytes = 0
        self.fd = -1

    def _find(self) -> None:
        """Find the file; of several, which only a kill between two names leaves, the one with most bytes."""
        names = [name for name in os.listdir(self.directory) if name.startswith(self._prefix) and PART.fullmatch(name)]
        self.name = max(names, key=_bytes_of, default="")
        self.bytes = _bytes_of(self.name) if self.name else 0

    def open(self) -> None:
        """Open and lock the file, made where it is missing.

        Raises Conflict where another call is writing to it: one of another server, or one that names the target by
        another path.
        """
        for _ in range(_TRIES):
            self._find()
            if not self.name:
                self.name = f"{self._prefix}0.part"
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self.fd = os.open(self.name, flags, 0o600, dir_fd=self.directory)
            status = os.fstat(self.fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size < self.bytes:
                raise ToolError(f"{self.name} is not what an upload left; abort=1 removes it")
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                break
            if self._is_named(status):
                return
            self.close()  # it got its next name between being found and being locked
        raise Conflict("id: another call is writing to this upload; try again")

    def _is_named(self, status: os.stat_result) -> bool:
        """Whether the name still stands for the file that was opened."""
        now = _status(self.directory, os.fsencode(self.name))
        return now is not None and (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino)

    def append(self, data: bytes) -> None:
        """Write a range after what counts, and have it count."""
        os.ftruncate(self.fd, self.bytes)
        os.lseek(self.fd, self.bytes, os.SEEK_SET)
        try:
            write_all(self.fd, data)
        except OSError:
            os.ftruncate(self.fd, self.bytes)
            raise
        name = f"{self._prefix}{self.bytes + len(data)}.part"
        if name != self.name:
            os.rename(self.name, name, src_dir_fd=self.directory, dst_dir_fd=self.directory)
        self.name, self.bytes = name, self.bytes + len(data)

    def name_it(self, target: bytes, *, replace: bool, given: str) -> None:
        """Rename the file to its target's name. Raises Conflict where something stands there and `replace` is false."""
        os.ftruncate(self.fd, self.bytes)
        own = os.fsencode(self.name)
        if replace:
            os.rename(own, target, src_dir_fd=self.directory, dst_dir_fd=self.directory)
            return
        try:
            rename_new(self.directory, own, self.directory, target)
        except FileExistsError as error:
            raise Conflict(f"{given} exists; overwrite=1 replaces it") from error

    def remove(self) -> None:
        """Remove all that is held."""
        self._find()
        while self.name:
            os.unlink(self.name, dir_fd=self.directory)
            self._find()

    def remove_empty(self) -> None:
        """Remove a file that this call has made for nothing."""
        if self.bytes == 0:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.name, dir_fd=self.directory)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _bytes_of(name: str) -> int:
    return int(name.rpartition("-")[2].removesuffix(".part"))


def _status(directory: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _open_directory(root: int, path: bytes, *, make: bool) -> int:
    """Open the directory of a target below the root, made where it is missing; -1: it is, and is not to be made."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    try:
        return open_beneath(root, path, flags, resolve=NO_SYMLINKS)
    except FileNotFoundError:
        if not make:
            return -1
    at = os.dup(root)
    try:
        for name in path.split(b"/"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=at)
            below = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        found, at = at, -1
        return found
    except NotADirectoryError as error:
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
    finally:
        if at >= 0:
            os.close(at)


def _sweep(directory: int, own: str) -> None:
    """Remove uploads that nobody has gone on with for a day."""
    now = time.time()
    names = [name for name in os.listdir(directory) if PART.fullmatch(name) and name != own]
    for name in names[:_SWEPT_AT_ONCE]:
        with contextlib.suppress(OSError):
            if now - os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime > ABANDONED_S:
                os.unlink(name, dir_fd=directory)
