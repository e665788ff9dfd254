"""The workspace directory and its trees (specification, section 2)."""

from __future__ import annotations

import os
import re

from toolserver._fast.paths import NO_SYMLINKS, collapse, open_beneath
from toolserver.errors import BadArgument
from toolserver.workspace.paths import Tree

MAIN = "main"
TREES = ".agents"
_NAME = re.compile(r"[a-z0-9-]{1,32}")


class Workspace:
    """The root that a server serves. Raises NotADirectoryError or FileNotFoundError where there is none."""

    def __init__(self, given: str) -> None:
        self.root = os.path.realpath(os.fsencode(given), strict=True)
        """Absolute, all links resolved."""
        as_given = b"/" + (collapse(os.path.abspath(os.fsencode(given))) or b"")
        self.spellings = tuple(dict.fromkeys((self.root, as_given)))
        self._fd = self._open_root()
        self._served: set[str] = set()

    def _open_root(self) -> int:
        return os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._fd)

    @property
    def trees(self) -> list[str]:
        """The trees served so far: main first, the others by name."""
        return [MAIN, *sorted(self._served)]

    def tree(self, name: str) -> Tree:
        """Open a tree for one call. Raises BadArgument for a name that is not valid or has no directory."""
        if name == MAIN:
            if os.fstat(self._fd).st_nlink == 0:  # removed, and perhaps made anew since
                os.close(self._fd)
                self._fd = self._open_root()
            return Tree(MAIN, self.root, os.dup(self._fd), self.spellings)
        if not _NAME.fullmatch(name):
            raise BadArgument(f"tree: expected a string of 1 to 32 of a-z, 0-9 and -, not {name[:64]!r}")
        below = f"{TREES}/{name}".encode()
        try:
            fd = open_beneath(self._fd, below, os.O_PATH | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        except OSError as error:
            raise BadArgument(f"tree: there is no working directory {name}") from error
        self._served.add(name)
        roots = tuple(os.path.join(root, below) for root in self.spellings)
        return Tree(name, roots[0], fd, roots)
