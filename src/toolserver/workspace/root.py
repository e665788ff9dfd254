"""The workspace directory and its trees (specification, section 2)."""

from __future__ import annotations

import errno
import os
import re

from toolserver._fast.paths import collapse
from toolserver.errors import BadArgument
from toolserver.workspace.names import AGENTS, MAIN
from toolserver.workspace.paths import Tree, failure

_NAME = re.compile(r"[a-z0-9-]{1,32}")
_NO_DIRECTORY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES)


class RootDirectory:
    """The descriptor of the root, closed when the last call that works in it is over."""

    __slots__ = ("fd", "identity")

    def __init__(self, root: bytes) -> None:
        """`root` is a link-free path. OSError: it is none any more, or there is no such directory."""
        self.fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if os.readlink(b"/proc/self/fd/%d" % self.fd) != root:
            raise NotADirectoryError(errno.ENOTDIR, "a link is on the way", root)
        self.identity = identity(os.fstat(self.fd))

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)


def identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class Workspace:
    """The root that a server serves. Raises OSError where there is no such directory."""

    def __init__(self, given: str) -> None:
        self.root = os.path.realpath(os.fsencode(given), strict=True)
        """Absolute, all links resolved."""
        as_given = b"/" + (collapse(os.path.abspath(os.fsencode(given))) or b"")
        self.spellings = tuple(dict.fromkeys((self.root, as_given)))
        self._directory = RootDirectory(self.root)
        self._served: set[str] = set()

    @property
    def trees(self) -> list[str]:
        """The trees served so far: main first, the others by name."""
        return [MAIN, *sorted(self._served)]

    def tree(self, name: str) -> Tree:
        """Open a tree for one call. Raises BadArgument for a name that is not valid or has no directory."""
        root = self._root()
        if name == MAIN:
            return Tree(MAIN, self.root, root.fd, self.spellings, root)
        if not _NAME.fullmatch(name):
            raise BadArgument(f"tree: expected a string of 1 to 32 of a-z, 0-9 and -, not {name[:64]!r}")
        below = os.path.join(AGENTS, name.encode())
        try:
            fd = Tree(MAIN, self.root, root.fd, self.spellings, root).open_real(below, os.O_PATH | os.O_DIRECTORY)
        except OSError as error:
            if error.errno not in _NO_DIRECTORY:
                raise failure(name, error) from error
            raise BadArgument(f"tree: there is no working directory {name}") from error
        self._served.add(name)
        roots = tuple(os.path.join(spelling, below) for spelling in self.spellings)
        return Tree(name, roots[0], fd, roots)

    def _root(self) -> RootDirectory:
        """Return the directory that stands at the root's path now: it may have been removed and made anew."""
        try:
            if identity(os.lstat(self.root)) != self._directory.identity:
                self._directory = RootDirectory(self.root)
        except OSError as error:
            raise BadArgument("tree: the workspace's directory is not there now") from error
        return self._directory
