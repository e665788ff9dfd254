"""A small file of the server's own in `.kd`, always whole: replaced in one step, set aside when it is corrupt."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from typing import Protocol

from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver._fast.rename import rename_new
from toolserver.state.kd import open_kd
from toolserver.workspace import bounded
from toolserver.workspace.names import KD

LARGEST = 1 << 30
"""Bytes of a file that is read at all."""
_SET_ASIDE = 1000
"""Names that are tried for a corrupt file within one second."""


class Temps(Protocol):
    """Names of temporary files, noted so that those of a killed server are found: the writer's."""

    def new_name(self) -> bytes: ...
    def add(self, path: bytes) -> None: ...
    def drop(self, path: bytes) -> None: ...


class StateFile:
    """One file in `.kd` of a directory, mode 0600. Its methods block; only one of them may run at a time.

    `.kd` is looked up at each use, so it may be deleted meanwhile. Neither it nor the file is used through a symlink:
    reading raises ELOOP, writing puts a file in the place of a link.
    """

    def __init__(self, root: bytes, name: bytes, temps: Temps) -> None:
        """`root` is the absolute, link-free path of the directory; `temps` records names that a kill would leave."""
        self._root = root
        self._name = name
        self._temps = temps

    def read(self) -> bytes | None:
        """Return the content, None where there is no such file. Raises OSError."""
        root = self._open_root()
        try:
            fd = open_beneath(root, b"%s/%s" % (KD, self._name), os.O_RDONLY | os.O_NONBLOCK, resolve=NO_SYMLINKS)
        except FileNotFoundError:
            return None
        finally:
            os.close(root)
        try:
            bounded.check_regular(fd, self._name)
            return bounded.read_open(fd, LARGEST)
        finally:
            os.close(fd)

    def write(self, data: bytes) -> None:
        """Put the content in place, flushed to the disk. Raises OSError; then what was there before stands."""
        with self._directory() as kd:
            temp = self._temps.new_name()
            path = os.path.join(self._root, KD, temp)
            self._temps.add(path)
            try:
                fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=kd)
                try:
                    with os.fdopen(fd, "wb") as file:
                        file.write(data)
                        file.flush()
                        os.fsync(fd)
                    os.rename(temp, self._name, src_dir_fd=kd, dst_dir_fd=kd)
                except BaseException:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(temp, dir_fd=kd)
                    raise
            finally:
                self._temps.drop(path)
            os.fsync(kd)

    def set_aside(self) -> str:
        """Rename the file to `NAME.corrupt-TIME`, never over another one, and return the new name. Raises OSError."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()).encode()
        with self._directory() as kd:
            for number in range(_SET_ASIDE):
                name = b"%s.corrupt-%s%s" % (self._name, stamp, b".%d" % number if number else b"")
                with contextlib.suppress(FileExistsError):
                    rename_new(kd, self._name, kd, name)
                    return os.fsdecode(name)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    @contextlib.contextmanager
    def _directory(self) -> Iterator[int]:
        """Open `.kd`, made where it is missing."""
        root = self._open_root()
        try:
            kd = open_kd(root)
        finally:
            os.close(root)
        try:
            yield kd
        finally:
            os.close(kd)

    def _open_root(self) -> int:
        return os.open(self._root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
