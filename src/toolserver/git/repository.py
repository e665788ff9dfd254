"""The repository at a tree's root, opened for one question: in process, through libgit2, read and never written."""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass
from functools import cached_property

import pygit2
from pygit2.enums import Option, RepositoryOpenFlag

# A workspace may belong to another user than the server: whoever may call may read it.
pygit2.option(Option.SET_OWNER_VALIDATION, 0)

log = logging.getLogger("toolserver.git")

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

    def __init__(self, git: pygit2.Repository, root: bytes) -> None:
        self.git = git
        self.root = root

    @classmethod
    def open(cls, root: bytes) -> Repository | None:
        """Open the repository at this very directory; None where there is none that the library can read.

        A bare one has no work tree, and one whose configuration puts its work tree elsewhere is not this tree's.
        """
        path = os.fsdecode(root)
        if not os.path.lexists(os.path.join(path, ".git")):
            return None
        try:
            git = pygit2.Repository(path, RepositoryOpenFlag.NO_SEARCH)
        except (pygit2.GitError, KeyError, ValueError, OSError) as error:
            if path not in _told:
                _told.add(path)
                log.warning("the repository of %s cannot be read: %s", path, error)
            return None
        if git.is_bare or git.workdir is None or os.path.realpath(git.workdir) != os.path.realpath(path):
            return None
        return cls(git, root)

    # ------------------------------------------------------------------------------------------------------- what is

    @cached_property
    def head(self) -> pygit2.Commit | None:
        """The commit that is checked out; None on an unborn branch."""
        try:
            target = self.git.head.peel(pygit2.Commit)
        except (pygit2.GitError, KeyError, ValueError):
            return None
        assert isinstance(target, pygit2.Commit)
        return target

    @cached_property
    def index_file(self) -> IndexFile:
        """The index file as it is now; an empty one where there is none. Raises OSError."""
        try:
            with open(os.path.join(os.fsencode(self.git.path), b"index"), "rb") as file:
                status = os.fstat(file.fileno())
                signature = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                return IndexFile(file.read(), status.st_mtime_ns, signature)
        except FileNotFoundError:
            return IndexFile(b"", 0, ())

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean of the configuration."""
        try:
            return self.git.config.get_bool(name)
        except (KeyError, ValueError, pygit2.GitError):
            return default

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
        try:
            value = self.git.get_attr(path, name)
        except (KeyError, ValueError, pygit2.GitError):
            return None
        assert value is None or isinstance(value, bool | str)
        return value

    def _has_crlf(self, blob: pygit2.Oid | None) -> bool:
        if blob is None:
            return False
        found = self.git.get(blob)
        return isinstance(found, pygit2.Blob) and b"\r\n" in found.data and not _is_binary(found.data)

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
