"""A batch: the files that a call reads and changes, as they are on disk and with the changes staged over them.

Nothing here writes. `Writer` (writer.py) makes a batch, calls the tool's function to stage changes, and commits them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from toolserver._fast.files import in_memory
from toolserver.errors import ToolError
from toolserver.workspace.paths import Place, Tree, failure, kind, not_a_directory

FILE_LIMIT = 10 * 1024 * 1024
"""Bytes of one file that is read for a change or written (specification, section 13)."""
BRIEF_LIMIT = 64 * 1024
"""Bytes of one file, before and after, up to which a change counts as brief."""
NEW_MODE = 0o644
PINNED = 128
"""How many files that were read stay open, so that their inode numbers are not reused before the commit."""

Content = bytes | Sequence[bytes | memoryview]
"""A file's new content: whole, or as pieces that are written one after the other."""


class Conflict(Exception):
    """A file changed between the look and the commit; the call starts over."""


class NotBrief(Exception):
    """A brief batch met a large file or a disk; the call starts over in a thread."""


@dataclass(frozen=True, slots=True)
class Folder:
    """An open directory of the tree: its link-free path, a descriptor, its device and inode."""

    path: bytes
    fd: int
    key: tuple[int, int]


class File:
    """One file of a batch: its state on disk and its staged state.

    Places that lead to the same path through links share one File. `exists`, `mode` and `content()` are the staged
    state; `status`, `on_disk` and `original()` the state on disk.
    """

    def __init__(self, batch: Batch, place: Place, path: bytes, folder: Folder, missing: list[bytes]) -> None:
        self.place = place
        """The place first given; errors name it."""
        self.path = path
        """Root-relative, all links resolved."""
        self.name = os.path.basename(path)
        self.folder = folder
        """The deepest existing directory on the path."""
        self.missing = missing
        """The directories that have to be made below `folder`."""
        self.status: os.stat_result | None = None
        """The stat of what is at the path on disk, never a link; None: nothing."""
        self.staged: Content | None = None
        """The new content; None: unchanged, or removed."""
        self.was_read = False
        """The content was read, so a later change of it on disk is a conflict."""
        self.prune = False
        """Folders that the removal leaves empty are removed too."""
        self.mode_given: int | None = None
        self.masked = False
        """Whether the umask applies to `mode_given`."""
        self.owner: tuple[int, int] | None = None
        """The owner and group that the new file gets where permitted; None: the old file's, or the server's."""
        self._batch = batch
        self._original: bytes | None = None
        self._removed = False

    # -------------------------------------------------------------------------------------------------------- state

    @property
    def on_disk(self) -> bool:
        """Whether a regular file is at the path on disk."""
        return self.status is not None and stat.S_ISREG(self.status.st_mode)

    @property
    def exists(self) -> bool:
        """Whether a regular file is at the path in the staged state."""
        return self.staged is not None or (self.on_disk and not self._removed)

    @property
    def limit(self) -> int:
        """The most bytes the file may have."""
        return self._batch.limit

    @property
    def is_directory(self) -> bool:
        """Whether a directory is at the path on disk."""
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def mode(self) -> int:
        """Permission bits in the staged state (0644 for a new file; the umask applies when it is made)."""
        if self.mode_given is not None:
            return self.mode_given
        return NEW_MODE if self.kept is None else stat.S_IMODE(self.kept.st_mode)

    @property
    def kept(self) -> os.stat_result | None:
        """The status of the file on disk whose mode and owner a new content keeps; None for a new file."""
        return self.status if self.on_disk and not self._removed else None

    @property
    def to_remove(self) -> bool:
        """Whether the file on disk is removed and nothing replaces it."""
        return self._removed and self.staged is None

    @property
    def changed(self) -> bool:
        return self._removed or self.staged is not None

    def require(self) -> None:
        """Raise ToolError, which says what is there instead, unless a regular file is there in the staged state."""
        if not self.exists:
            raise self.not_a_file()

    def not_a_file(self) -> ToolError:
        if self.status is None or self._removed:
            return ToolError(f"{self.place.given}: no such file or directory")
        return ToolError(f"{self.place.given} is {kind(self.status.st_mode)}, not a regular file")

    def check_size(self, size: int) -> None:
        """Raise ToolError with the size where it is over the limit of one file."""
        if size > self.limit:
            raise self.too_large(size)

    def too_large(self, size: int, before: str = "") -> ToolError:
        return ToolError(f"{before}{self.place.given}: {size} bytes, more than the {self.limit} that a file may have")

    # ------------------------------------------------------------------------------------------------------- content

    def original(self) -> bytes:
        """Return the content on disk, read once. Raises ToolError where there is no file or it is over the limit."""
        if self._original is None:
            if not self.on_disk:
                raise self.not_a_file()
            self._original = self._load()
        return self._original

    def content(self) -> bytes:
        """Return the content in the staged state. Raises as `original` does."""
        if self.staged is None:
            self.require()
            return self.original()
        if not isinstance(self.staged, bytes):
            self.staged = b"".join(self.staged)
        return self.staged

    def _load(self) -> bytes:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            fd = os.open(self.name, flags, dir_fd=self.folder.fd)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
                raise Conflict(self.place.given) from error
            raise failure(self.place.given, error) from error
        try:
            self.status = os.fstat(fd)
            if not self.on_disk:
                raise Conflict(self.place.given)
            self.check_size(self.status.st_size)
            self._batch.check_brief(self.status.st_size)
            self.was_read = True
            pieces = []
            size = 0
            while piece := os.read(fd, max(self.status.st_size + 1 - size, 64 * 1024)):
                pieces.append(piece)
                size += len(piece)
                self.check_size(size)
            if self._batch.pin(fd):
                fd = -1
        except OSError as error:
            raise failure(self.place.given, error) from error
        finally:
            if fd >= 0:
                os.close(fd)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # ------------------------------------------------------------------------------------------------------- staging

    def put(self, content: Content, mode: int | None = None, like: File | None = None) -> None:
        """Stage a content: an existing file keeps its mode and owner, a missing one is created with its parents.

        `mode`: the permission bits of a diff, for new and old files; the umask applies. `like`: a File whose mode and
        owner on disk are copied, as for the target of a rename. A directory at the path must be emptied by the removals
        of this batch. Raises ToolError for a special file and for more than the limit.
        """
        size = len(content) if isinstance(content, bytes) else sum(map(len, content))
        self.check_size(size)
        self._batch.check_brief(size)
        if not self.name or (self.status is not None and not self.on_disk and not self.is_directory):
            raise self.not_a_file()
        self.staged = content
        if mode is not None:
            self.mode_given, self.masked = mode, True
        elif like is not None and like.status is not None:
            self.mode_given, self.masked = stat.S_IMODE(like.status.st_mode), False
        if like is not None and like.status is not None:
            self.owner = (like.status.st_uid, like.status.st_gid)

    def remove(self, prune: bool = False) -> None:
        """Stage the removal of a regular file; with `prune` also of the folders that it leaves empty.

        Pruning stops at the root and at the paths in `Batch.keep`. Raises ToolError where there is no regular file.
        """
        self.require()
        self.staged, self._removed, self.prune = None, self.on_disk, prune
        self.mode_given, self.owner = None, None


class Batch:
    """The files that one call looks at and changes. Used from one thread; see `Writer.change`."""

    def __init__(self, tree: Tree, limit: int = FILE_LIMIT, *, brief: bool = False) -> None:
        """`brief`: raise NotBrief where a file has more than BRIEF_LIMIT bytes or does not lie in memory."""
        self.tree = tree
        self.limit = limit
        self.brief = brief
        self.files: dict[bytes, File] = {}
        """By link-free path, in the order of the first look."""
        self.keep: set[bytes] = {b""}
        """Link-free paths of directories that `prune` leaves even when they are empty, such as the call's `cwd`."""
        self.folders: dict[bytes, Folder] = {}
        """By link-free path: those opened so far."""
        self._pins: list[int] = []

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (*self._pins, *(folder.fd for folder in self.folders.values())):
            os.close(fd)
        # Each file refers to this batch, so large contents would wait for a collection of cycles. One after the other:
        # freeing hundreds of MB in one step would hold the GIL for long.
        while self.files:
            self.files.popitem()

    def look(self, place: Place) -> File:
        """Return the file at a place, links followed; it need not exist, nor its parents.

        Raises OutsideTree where a link leads out, ToolError where the system refuses to tell, and for a path that ends
        in `/` where no directory is.
        """
        file = self._look(place)
        if place.names_directory and not file.is_directory:
            raise not_a_directory(place.given)
        return file

    def _look(self, place: Place) -> File:
        above, name = os.path.split(place.path)
        try:
            folder = self.folder(above)
            status = status_at(folder.fd, name)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise failure(place.given, error) from error
        else:
            if status is None or not stat.S_ISLNK(status.st_mode):
                return self._file(place, place.path, folder, [], status)
        return self._look_through(place)

    def _look_through(self, place: Place) -> File:
        """Look at a place that is reached through links, or whose parent directories are missing."""
        missing: list[bytes] = []
        try:
            path = self.tree.real(place)
            above, name = os.path.split(path)
            while True:
                try:
                    folder = self.folder(above)
                    break
                except OSError as error:
                    if error.errno == errno.ELOOP:
                        raise Conflict(place.given) from error
                    if error.errno not in (errno.ENOENT, errno.ENOTDIR) or not above:
                        raise
                    above, part = os.path.split(above)
                    missing.insert(0, part)
            status = None if missing else status_at(folder.fd, name)
        except OSError as error:
            raise failure(place.given, error) from error
        if status is not None and stat.S_ISLNK(status.st_mode):
            raise Conflict(place.given)
        return self._file(place, path, folder, missing, status)

    def _file(
        self, place: Place, path: bytes, folder: Folder, missing: list[bytes], status: os.stat_result | None
    ) -> File:
        file = self.files.get(path)
        if file is None:
            file = self.files[path] = File(self, place, path, folder, missing)
            file.status = status
        return file

    def is_link(self, place: Place) -> bool:
        """Return whether the place's own last name is a symlink (links above it are followed)."""
        above, name = os.path.split(place.path)
        if not name:
            return False
        try:
            real = self.tree.real(Place(place.given, above))
            status = status_at(self.folder(real).fd, name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise failure(place.given, error) from error
        return status is not None and stat.S_ISLNK(status.st_mode)

    def folder(self, path: bytes) -> Folder:
        """Open a directory by its link-free path, once. Raises OSError, ELOOP for a link on the path."""
        found = self.folders.get(path)
        if found is None:
            fd = self.open_folder(path)
            if self.brief and not in_memory(fd):
                os.close(fd)
                raise NotBrief
            status = os.fstat(fd)
            found = self.folders[path] = Folder(path, fd, (status.st_dev, status.st_ino))
        return found

    def check_brief(self, size: int) -> None:
        """Raise NotBrief if the batch is brief and a file of `size` bytes is not."""
        if self.brief and size > BRIEF_LIMIT:
            raise NotBrief

    def open_folder(self, path: bytes) -> int:
        """Open a directory again; one that may not be read is opened with O_PATH, and cannot be locked."""
        try:
            return self.tree.open_real(path, os.O_RDONLY | os.O_DIRECTORY)
        except PermissionError:
            return self.tree.open_real(path, os.O_PATH | os.O_DIRECTORY)

    def locks(self) -> dict[tuple[int, int], int]:
        """Return the directories opened so far, as `DirectoryLocks.hold` takes them."""
        return {folder.key: folder.fd for folder in self.folders.values()}

    def pin(self, fd: int) -> bool:
        """Keep a descriptor open until the batch ends; False where PINNED are open already."""
        if len(self._pins) >= PINNED:
            return False
        self._pins.append(fd)
        return True


def status_at(directory: int, name: bytes) -> os.stat_result | None:
    """Return the stat of a name, links not followed; None: nothing there. The empty name is the directory itself."""
    if not name:
        return os.fstat(directory)
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
