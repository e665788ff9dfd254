"""The repository at a tree's root, opened for one question: in process, through libgit2, read and never written."""

from __future__ import annotations

import errno
import logging
import os
import re
from dataclasses import dataclass
from functools import cached_property

import pygit2
from pygit2.enums import ObjectType, Option, RepositoryOpenFlag

from toolserver.git import guard
from toolserver.workspace import bounded

# A workspace may belong to another user than the server: whoever may call may read it.
pygit2.option(Option.SET_OWNER_VALIDATION, 0)

log = logging.getLogger("toolserver.git")

MAX_INDEX = 1 << 30
"""Bytes of an index that is read."""

LARGEST_CONVERTED = 64 << 20
"""Bytes of a blob that is read to see its line ends."""
LARGEST_TREE = 64 << 20
"""Bytes of a tree that is read."""
LARGEST_COMMIT = 4 << 20
"""Bytes of a commit that is read."""

_told: set[str] = set()
_IDENT = re.compile(rb"\$Id:[^$\n]*\$")


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The index as it was read: its bytes and what proves them."""

    data: bytes
    mtime_ns: int
    signature: tuple[int, ...]


class Repository:
    """A repository whose work tree is the tree's root. Belongs to the thread that opened it."""

    def __init__(self, git: pygit2.Repository, root: bytes, objects: list[bytes]) -> None:
        self.git = git
        self.root = root
        self._objects = objects
        self._safe_directories: dict[bytes, bool] = {b"": guard.attributes_are_safe(root + b"/.gitattributes")}
        """Whether the files of attributes of a directory and of those above it may be read."""

    @classmethod
    def open(cls, root: bytes) -> Repository | None:
        """Open the repository at this very directory; None where there is none that the library can read.

        A bare one has no work tree, and one whose configuration puts its work tree elsewhere is not this tree's.
        """
        path = os.fsdecode(root)
        if not os.path.lexists(os.path.join(path, ".git")):
            return None
        try:
            objects = guard.check(root)
            git = pygit2.Repository(path, RepositoryOpenFlag.NO_SEARCH)
        except (guard.Unsafe, pygit2.GitError, KeyError, ValueError, OSError) as error:
            if path not in _told:
                _told.add(path)
                log.warning("the repository of %s cannot be read: %s", path, error)
            return None
        if git.is_bare or git.workdir is None or os.path.realpath(git.workdir) != os.path.realpath(path):
            return None
        return cls(git, root, objects)

    # ------------------------------------------------------------------------------------------------------- what is

    @cached_property
    def head(self) -> pygit2.Commit | None:
        """The commit that is checked out; None on an unborn branch."""
        try:
            target = self.git.head.target
        except (pygit2.GitError, KeyError, ValueError):
            return None
        return self.commit(target) if isinstance(target, pygit2.Oid) else None

    @cached_property
    def index_file(self) -> IndexFile:
        """The index file as it is now; an empty one where there is none. Raises OSError."""
        try:
            with os.fdopen(bounded.open_regular(os.path.join(os.fsencode(self.git.path), b"index")), "rb") as file:
                status = os.fstat(file.fileno())
                if status.st_size > MAX_INDEX:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
                signature = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                return IndexFile(file.read(status.st_size), status.st_mtime_ns, signature)
        except FileNotFoundError:
            return IndexFile(b"", 0, ())

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean of the configuration."""
        try:
            return self.git.config.get_bool(name)
        except (KeyError, ValueError, pygit2.GitError):
            return default

    # --------------------------------------------------------------------------------------------------------- objects

    def header(self, oid: pygit2.Oid) -> tuple[ObjectType, int] | None:
        """Return the kind and the size of an object without reading it; None where it is not there."""
        name = str(oid).encode()
        if any(guard.is_special(os.path.join(objects, name[:2], name[2:])) for objects in self._objects):
            return None
        try:
            kind, size = self.git.odb.read_header(oid)
        except (KeyError, ValueError, pygit2.GitError):
            return None
        return ObjectType(kind), size

    def blob(self, oid: pygit2.Oid, most: int) -> bytes | None:
        """Return what a blob holds; None where there is none, or one of more than `most` bytes."""
        found = self._object(oid, ObjectType.BLOB, most)
        return found.data if isinstance(found, pygit2.Blob) else None

    def tree(self, oid: pygit2.Oid) -> pygit2.Tree | None:
        """Return a tree; None where there is none, or one that is too large."""
        found = self._object(oid, ObjectType.TREE, LARGEST_TREE)
        return found if isinstance(found, pygit2.Tree) else None

    def commit(self, oid: pygit2.Oid) -> pygit2.Commit | None:
        """Return a commit; None where there is none, or one that is too large."""
        found = self._object(oid, ObjectType.COMMIT, LARGEST_COMMIT)
        return found if isinstance(found, pygit2.Commit) else None

    def _object(self, oid: pygit2.Oid, kind: ObjectType, most: int) -> pygit2.Object | None:
        header = self.header(oid)
        if header is None or header[0] != kind or header[1] > most:
            return None
        try:
            return self.git.get(oid)
        except (ValueError, pygit2.GitError):  # it is broken
            return None

    # ----------------------------------------------------------------------------------------------------- conversion

    def stored(self, path: bytes, content: bytes, before: pygit2.Oid | None) -> bytes:
        """Return the content of a file as git would store it: line ends and `$Id$`; no program is ever run for it.

        `before` is the blob that the index has for the path: under `text=auto` CRLF that is in it already stays.
        """
        text = self._text(path)
        if text is False:
            return self._without_ident(path, content)
        if text == "auto" and (_is_binary(content) or self._has_crlf(before)):
            return self._without_ident(path, content)
        if text is not None:
            content = content.replace(b"\r\n", b"\n")
        return self._without_ident(path, content)

    def _text(self, path: bytes) -> bool | str | None:
        text = self.attribute(path, "text")
        if text is None:
            text = self.attribute(path, "crlf")
            text = True if text == "input" else text
        if text is None and self.attribute(path, "eol") in ("lf", "crlf"):
            text = True
        if text is None and self._autocrlf:
            text = "auto"
        return text

    @cached_property
    def _autocrlf(self) -> bool:
        try:
            value = self.git.config["core.autocrlf"]
        except (KeyError, pygit2.GitError):
            return False
        return (value or "true").lower() in ("true", "input", "yes", "on", "1")

    def attribute(self, path: bytes, name: str) -> bool | str | None:
        """Return a git attribute of a path: set, unset, a value, or None where nothing is said."""
        if not self._attributes_are_safe(path.rpartition(b"/")[0]):
            return None
        try:
            value = self.git.get_attr(path, name)
        except (KeyError, ValueError, pygit2.GitError):
            return None
        assert value is None or isinstance(value, bool | str)
        return value

    def _attributes_are_safe(self, directory: bytes) -> bool:
        known = self._safe_directories.get(directory)
        if known is None:
            known = self._attributes_are_safe(directory.rpartition(b"/")[0]) and guard.attributes_are_safe(
                os.path.join(self.root, directory, b".gitattributes")
            )
            self._safe_directories[directory] = known
        return known

    def _has_crlf(self, blob: pygit2.Oid | None) -> bool:
        found = None if blob is None else self.blob(blob, LARGEST_CONVERTED)
        return found is not None and b"\r\n" in found and not _is_binary(found)

    def _without_ident(self, path: bytes, content: bytes) -> bytes:
        if b"$Id:" in content and self.attribute(path, "ident") is True:
            return _IDENT.sub(b"$Id$", content)
        return content


def _is_binary(content: bytes) -> bool:
    """Whether git takes a content for binary when it converts line ends: a NUL, a lone CR, many control characters."""
    if b"\0" in content or content.count(b"\r") != content.count(b"\r\n"):
        return True
    head = content[:8192]
    odd = len(head.translate(None, _PRINTABLE))
    return (len(head) - odd) >> 7 < odd


_PRINTABLE = bytes(byte for byte in range(256) if byte >= 32 and byte != 127) + b"\b\t\n\r\x0c\x1b"
