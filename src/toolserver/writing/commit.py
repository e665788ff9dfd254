"""Commits a batch: temporary files beside their targets, flushed, then renamed; all or nothing."""

from __future__ import annotations

import errno
import functools
import logging
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolserver._fast.rename import exchange, link, rename_new, replace, sync_file_system
from toolserver.errors import ToolError
from toolserver.workspace.paths import failure
from toolserver.writing.attributes import copy_metadata, write_all
from toolserver.writing.batch import Batch, Conflict, File, Folder, status_at
from toolserver.writing.temps import TempRegistry, remove_hollow, temp_name

OPEN_TEMPS = 128
"""How many unnamed temporary files stay open at once; further ones get a name and are closed."""
FLUSHED_TOGETHER = 32
"""Files from which on one flush of the file system is faster than one of each file.

It also waits for what other programs have written, which is why a few files are flushed one by one."""
KERNEL = tuple(int(number) for number in re.findall(r"[0-9]{1,9}", os.uname().release)[:2])
TELLS_ERRORS = (5, 8)
"""The first Linux whose syncfs tells errors of the disk."""
NO_TMPFILE = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS)
"""Errors of a kernel or file system without unnamed files (O_TMPFILE)."""
CHANGED = (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ESTALE)
"""Errors of a step after another program changed a path that was looked at."""

log = logging.getLogger("toolserver.writer")


@dataclass(slots=True)
class Temp:
    """A temporary file with a new content: open without a name, or closed with one."""

    directory: int
    fd: int
    name: bytes | None


class Commit:
    """The commit of one batch: `stage`, then `carry_out` under the locks of its directories.

    Leaving the context removes the temporary files that were not renamed.
    """

    def __init__(self, batch: Batch, record: TempRegistry, umask: int) -> None:
        self._batch = batch
        self._record = record
        self._umask = umask
        self._removals = [file for file in batch.files.values() if file.to_remove]
        self._puts = [file for file in batch.files.values() if file.staged is not None]
        self._temps: dict[bytes, Temp] = {}
        self._open = 0
        """How many of them are open and have no name."""
        self._made: dict[bytes, int] = {}
        self._hidden: dict[bytes, tuple[int, bytes]] = {}
        """Hidden names that may exist: the directory of each, and its absolute path."""
        self._hidden_folders: set[bytes] = set()
        self._undo: list[tuple[File, Callable[[], None]]] = []
        self._at: File | None = None

    def __enter__(self) -> Commit:
        return self

    def __exit__(self, *_: object) -> None:
        self._clean()
        for temp in self._temps.values():
            if temp.fd >= 0:
                os.close(temp.fd)
        for fd in self._made.values():
            os.close(fd)

    def _clean(self) -> None:
        """Remove what still has a hidden name: new contents after a failure, old contents after a success."""
        for name, (directory, path) in reversed(self._hidden.items()):
            try:
                if name in self._hidden_folders:
                    remove_hollow(directory, name)
                else:
                    os.unlink(name, dir_fd=directory)
            except FileNotFoundError:
                pass
            except OSError as error:  # it stays in the record, for a later server to remove
                log.warning("a temporary file stays: %s: %s", os.fsdecode(path), error.strerror)
                continue
            self._record.drop(path)
        self._hidden.clear()

    # ------------------------------------------------------------------------------------------------------ staging

    def stage(self) -> bool:
        """Write and flush every new content in the directory of its target. Return False if the batch changes nothing.

        Raises ToolError for a file or directory that is in the way, and for an error of the disk.
        """
        try:
            for file in self._each(self._puts):
                self._check_way(file)
            for file in self._each(self._puts):
                self._write_temp(file)
            if len(self._puts) < FLUSHED_TOGETHER or not self._flush_together():
                for file in self._each(self._puts):
                    self._flush(self._temps[file.path])
            for file in self._each(self._removals):
                if file.prune:
                    self._open_above(file)
        except OSError as error:
            raise self._failure(error) from error
        return bool(self._puts or self._removals)

    def _each(self, files: list[File]) -> Iterator[File]:
        """Iterate over files, keeping the current one in `_at` for the error message."""
        for file in files:
            self._at = file
            yield file

    def _check_way(self, file: File) -> None:
        """Raise ToolError for a file where a folder is needed, and for a folder that stays where a file is to be."""
        files = self._batch.files
        above = os.path.dirname(file.path)
        while above:
            other = files.get(above)
            if other is not None and other.exists:
                raise ToolError(f"{file.place.given}: {above.decode(errors='replace')} is a file, not a directory")
            above = os.path.dirname(above)
        if file.missing:
            blocked = status_at(file.folder.fd, file.missing[0])
            other = files.get(os.path.join(file.folder.path, file.missing[0]))
            if blocked is not None and not stat.S_ISDIR(blocked.st_mode) and not (other and other.to_remove):
                raise ToolError(f"{file.place.given}: a part of the path is not a directory")
        if file.is_directory and not any(gone.path.startswith(file.path + b"/") for gone in self._removals):
            raise file.not_a_file()

    def _open_above(self, file: File) -> None:
        """Open the folders above a removed file that may become empty, so that they are locked too."""
        path = file.folder.path
        while path not in self._batch.keep:
            path = os.path.dirname(path)
            self._batch.folder(path)

    def _write_temp(self, file: File) -> None:
        directory = file.folder.fd
        temp = Temp(directory, -1, None)
        if self._open < OPEN_TEMPS:
            try:
                temp.fd = os.open(b".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=directory)
                self._open += 1
            except OSError as error:
                if error.errno not in NO_TMPFILE:
                    raise
        if temp.fd < 0:
            temp.name = self._hide(file.folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            temp.fd = os.open(temp.name, flags, 0o600, dir_fd=directory)
        self._temps[file.path] = temp
        assert file.staged is not None
        for piece in (file.staged,) if isinstance(file.staged, bytes) else file.staged:
            write_all(temp.fd, piece)
        copy_metadata(temp.fd, file, self._umask)
        if temp.name is not None:
            os.close(temp.fd)
            temp.fd = -1

    def _flush_together(self) -> bool:
        """Flush the file systems that hold the temps, one call each; False where errors would not be told."""
        if KERNEL < TELLS_ERRORS:
            return False
        file_systems = {file.folder.key[0]: file.folder.fd for file in self._puts}
        try:
            for fd in file_systems.values():
                sync_file_system(fd)
        except OSError as error:
            if error.errno != errno.EBADF:  # a folder that may not be read
                raise
            return False
        return True

    @staticmethod
    def _flush(temp: Temp) -> None:
        if temp.name is None:
            os.fdatasync(temp.fd)
            return
        fd = os.open(temp.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=temp.directory)
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)

    def _hide(self, folder: Folder) -> bytes:
        """Return a new hidden name in a folder. It is recorded before it is used, and removed at the end."""
        name = temp_name()
        path = os.path.join(self._batch.tree.root, folder.path, name)
        self._record.add(path)
        self._hidden[name] = (folder.fd, path)
        return name

    # ------------------------------------------------------------------------------------------------- carrying out

    def carry_out(self) -> None:
        """Rename everything, or nothing. The locks of all directories of the batch are held.

        Raises Conflict if a file has changed since it was looked at, and ToolError if a step fails; the steps done
        before are undone.
        """
        self._verify()
        alone = len(self._puts) + len(self._removals) == 1
        try:
            for file in self._each(self._removals):
                self._remove(file, alone)
            for file in self._each(self._puts):
                self._put(file, last=file is self._puts[-1])
        except BaseException as error:
            told = self._failure(error) if isinstance(error, OSError) else error
            self._put_back(told)
            raise told from (error if told is not error else error.__cause__)
        self._clean()
        for file in self._removals:
            if file.prune:
                self._prune(file.folder.path)

    def _verify(self) -> None:
        batch = self._batch
        for folder in batch.folders.values():
            if not folder.path:
                continue  # the root itself: every path is opened beneath its descriptor
            try:
                fd = batch.open_folder(folder.path)
            except OSError as error:
                raise Conflict(os.fsdecode(folder.path)) from error
            now = os.fstat(fd)
            os.close(fd)
            if (now.st_dev, now.st_ino) != folder.key:
                raise Conflict(os.fsdecode(folder.path))
        for file in batch.files.values():
            found = status_at(file.folder.fd, file.missing[0] if file.missing else file.name)
            if file.missing:
                same = found is None or not (stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode))
            else:
                same = _identity(found, file.was_read) == _identity(file.status, file.was_read)
            if not same:
                raise Conflict(file.place.given)

    def _remove(self, file: File, alone: bool) -> None:
        at, name = file.folder.fd, file.name
        if alone:
            os.unlink(name, dir_fd=at)
            return
        hidden = self._hide(file.folder)
        os.rename(name, hidden, src_dir_fd=at, dst_dir_fd=at)
        self._undo.append((file, lambda: rename_new(at, hidden, at, name)))

    def _put(self, file: File, last: bool) -> None:
        temp = self._temps[file.path]
        if file.on_disk:
            self._replace(file, temp, last)
            return
        if file.is_directory:
            self._hide_folder(file)
        at, name = self._parent(file), file.name
        if temp.name is None:
            link(temp.fd, at, name)
        else:
            rename_new(temp.directory, temp.name, at, name)
        self._undo.append((file, lambda: os.unlink(name, dir_fd=at)))

    def _replace(self, file: File, temp: Temp, last: bool) -> None:
        """Replace a file by a temporary one; unless it is the last step, keep the old file under a hidden name."""
        at, target = file.folder.fd, file.name
        name = temp.name or self._hide(file.folder)
        if last:
            if temp.name is None:
                replace(temp.fd, at, name, target)
            else:
                os.rename(name, target, src_dir_fd=at, dst_dir_fd=at)
            return
        if temp.name is None:
            link(temp.fd, at, name)
        try:
            exchange(at, name, target)
            self._undo.append((file, lambda: exchange(at, name, target)))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            old = self._hide(file.folder)
            _keep(at, target, old)
            self._undo.append((file, lambda: os.rename(old, target, src_dir_fd=at, dst_dir_fd=at)))
            os.rename(name, target, src_dir_fd=at, dst_dir_fd=at)

    def _hide_folder(self, file: File) -> None:
        """Rename a folder, which this batch has emptied, to a hidden name, so that a file can replace it."""
        above = self._batch.folder(os.path.dirname(file.path))
        if not self._is_hollow(above.fd, file.name):
            raise ToolError(f"{file.place.given} is a directory that is not empty")
        hidden = self._hide(above)
        self._hidden_folders.add(hidden)
        os.rename(file.name, hidden, src_dir_fd=above.fd, dst_dir_fd=above.fd)
        self._undo.append((file, lambda: os.rename(hidden, file.name, src_dir_fd=above.fd, dst_dir_fd=above.fd)))

    def _is_hollow(self, at: int, name: bytes | str) -> bool:
        """Whether a folder holds only hidden names of this batch, and folders that hold only such."""
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        try:
            for inner in os.listdir(fd):
                status = os.stat(inner, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    if not self._is_hollow(fd, inner):
                        return False
                elif os.fsencode(inner) not in self._hidden:
                    return False
            return True
        finally:
            os.close(fd)

    def _parent(self, file: File) -> int:
        """Return the directory of a new file, created if it is missing."""
        at, path = file.folder.fd, file.folder.path
        for part in file.missing:
            path = os.path.join(path, part)
            if path not in self._made:
                above = at
                try:
                    os.mkdir(part, dir_fd=above)
                except FileExistsError:
                    pass  # created by another call meanwhile; the open below fails unless it is a directory
                else:
                    self._undo.append((file, functools.partial(_unmake, above, part)))
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                self._made[path] = os.open(part, flags, dir_fd=above)
            at = self._made[path]
        return at

    def _prune(self, path: bytes) -> None:
        """Remove the folders that removals have emptied, upwards, until one is not empty or cannot be removed."""
        while path not in self._batch.keep:
            above, name = os.path.split(path)
            try:
                os.rmdir(name, dir_fd=self._batch.folder(above).fd)
            except OSError:
                return
            path = above

    # -------------------------------------------------------------------------------------------------- when it fails

    def _put_back(self, cause: BaseException) -> None:
        """Undo the steps done, the last one first. Raises ToolError naming what could not be put back."""
        lost = []
        for file, step in reversed(self._undo):
            try:
                step()
            except OSError as error:
                lost.append(f"{file.place.given} ({error.strerror})")
        if lost:
            kept = []
            for name, (directory, path) in self._hidden.items():
                self._record.drop(path)
                if status_at(directory, name) is not None:
                    kept.append(os.path.relpath(path, self._batch.tree.root).decode(errors="replace"))
            self._hidden.clear()
            raise ToolError(
                f"{cause}; then {', '.join(lost)} could not be put back; the old content is in {', '.join(kept)}"
            ) from cause

    def _failure(self, error: OSError) -> Exception:
        """Return the exception for an OSError about the current file."""
        assert self._at is not None
        given = self._at.place.given
        if error.errno in CHANGED:
            return Conflict(given)
        if error.errno == errno.EXDEV:
            return ToolError(f"{given}: its directory now lies on another file system")
        return failure(given, error)


def _unmake(directory: int, name: bytes) -> None:
    """Remove a folder that was created for a file, unless another program uses it by now."""
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
            raise


def _keep(directory: int, name: bytes, hidden: bytes) -> None:
    """Link a file to a hidden name; where hard links are refused, rename it."""
    try:
        os.link(name, hidden, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError:
        os.rename(name, hidden, src_dir_fd=directory, dst_dir_fd=directory)


def _identity(status: os.stat_result | None, whole: bool) -> tuple[int, ...]:
    """Return what must not have changed of a file: with `whole` size and times too, else inode, mode and owner."""
    if status is None:
        return ()
    what = (status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid)
    return (*what, status.st_size, status.st_mtime_ns, status.st_ctime_ns) if whole else what
