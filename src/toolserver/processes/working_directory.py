"""The directory that a command starts in."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkingDirectory:
    """The tree's name and root, `cwd` without links and relative to the root, and `cwd` open as `fd`."""

    tree: str
    root: bytes
    cwd: bytes
    fd: int

    @property
    def path(self) -> bytes:
        """The absolute path of the directory."""
        return os.path.join(self.root, self.cwd) if self.cwd else self.root
