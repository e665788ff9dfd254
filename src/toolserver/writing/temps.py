"""Names of temporary files, and the record by which those of a killed server are found and removed.

A server that is killed between linking a temporary file and renaming it cannot clean up. So every name is recorded
first: in one file for each server in `.kd/writes`, locked (flock) while its server lives; the kernel releases the lock
of a dead one. The next server that writes below the same root removes what the records of dead servers name.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import stat
import threading

from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver.state import locked
from toolserver.state.kd import open_kd
from toolserver.workspace.bounded import read_open
from toolserver.workspace.names import KD

TEMP = re.compile(rb"\.toolserver-[0-9a-f]{24}\.tmp")
"""Matches the whole name of a temporary file; watches and walks recognise the server's own files by it."""
RECORDS = KD + b"/writes"
_ROOM = 64 * 1024
"""Bytes after which a record is rewritten with only the names still in use."""
_LARGEST = 64 * 1024 * 1024
"""Bytes of a record that is read: room for the names of the largest call."""

log = logging.getLogger("toolserver.writer")


def temp_name() -> bytes:
    """Return a new unique hidden name; its length does not depend on the target's."""
    return b".toolserver-%s.tmp" % secrets.token_hex(12).encode()


class TempRegistry:
    """The temporary files of this server that have a name now, in a file on disk. Thread-safe."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._prefix = root if root.endswith(b"/") else root + b"/"
        self._guard = threading.Lock()
        self._fd = -1
        self._size = 0
        self._names: dict[bytes, None] = {}

    @staticmethod
    def new_name() -> bytes:
        """Return a new unique hidden name, to be added before it is used."""
        return temp_name()

    def add(self, path: bytes) -> None:
        """Record an absolute path before it is created. Without a writable `.kd` nothing is recorded."""
        path = path.removeprefix(self._prefix)
        with self._guard:
            self._names[path] = None
            try:
                self._write(path + b"\0")
            except OSError as error:
                log.debug("no record of temps: %s", error)

    def _write(self, line: bytes) -> None:
        if self._fd < 0 or os.fstat(self._fd).st_nlink == 0:  # `.kd` was removed while this server runs
            self._begin()
        elif self._size + len(line) > _ROOM:
            self._rewrite()
        else:
            self._size += os.pwrite(self._fd, line, self._size)

    def _begin(self) -> None:
        self._close()
        root = os.open(self._root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            directory = open_kd(root, RECORDS)
        finally:
            os.close(root)
        try:
            self._fd, _ = locked.create(directory)
        finally:
            os.close(directory)
        self._rewrite()

    def _rewrite(self) -> None:
        held = b"".join(name + b"\0" for name in self._names)
        os.pwrite(self._fd, held, 0)
        os.ftruncate(self._fd, len(held))
        self._size = len(held)

    def drop(self, path: bytes) -> None:
        """Remove a path from the record; the file no longer exists."""
        path = path.removeprefix(self._prefix)
        with self._guard:
            self._names.pop(path, None)
            if not self._names and self._size:
                try:
                    os.ftruncate(self._fd, 0)
                    self._size = 0
                except OSError as error:  # a name that is gone may stay in the record
                    log.debug("the record of temps stays as it is: %s", error)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._size = 0

    def close(self) -> None:
        """Release the record at a clean stop, when no change is in progress."""
        with self._guard:
            self._close()
        self.sweep()

    def sweep(self) -> None:
        """Remove the temporary files of killed servers, and their records; what fails is left to the next sweep."""
        try:
            root = os.open(self._root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return  # the root itself is gone, and all temps with it
        try:
            directory = open_beneath(root, RECORDS, os.O_RDONLY | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        except OSError:
            os.close(root)
            return  # no record, nothing to sweep
        try:
            for fd, name in locked.left_behind(directory):
                self._sweep_one(root, directory, fd, name)
        finally:
            os.close(directory)
            os.close(root)

    def _sweep_one(self, root: int, directory: int, fd: int, name: str) -> None:
        """Remove what a record names, then the record, which is closed here."""
        with contextlib.suppress(OSError):
            try:
                gone = [self._remove(root, path) for path in read_open(fd, _LARGEST).split(b"\0")[:-1]]
                if all(gone):
                    os.unlink(name, dir_fd=directory)
            finally:
                os.close(fd)

    def _remove(self, root: int, path: bytes) -> bool:
        """Remove one leftover. Its name and place are checked, since any program may have written the record."""
        above, name = os.path.split(path)
        if not TEMP.fullmatch(name):
            return True
        try:
            at = open_beneath(root, above, os.O_PATH | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        except OSError:
            return True  # its directory is gone
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                remove_hollow(at, name)
            else:
                os.unlink(name, dir_fd=at)
        except FileNotFoundError:
            return True
        except OSError as error:
            log.warning("a temporary file of a killed server stays: %s: %s", os.fsdecode(path), error.strerror)
            return False
        finally:
            os.close(at)
        return True


def remove_hollow(at: int, name: bytes | str) -> None:
    """Remove a folder that holds only temporary files and such folders. Raises OSError ENOTEMPTY if it holds more."""
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    try:
        for inner in os.listdir(fd):
            if stat.S_ISDIR(os.stat(inner, dir_fd=fd, follow_symlinks=False).st_mode):
                remove_hollow(fd, inner)
            elif TEMP.fullmatch(os.fsencode(inner)):
                os.unlink(inner, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=at)
