"""A directory as a watch last saw it, and its entries as they are now."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from toolserver._fast.ignore import Rules
from toolserver.watches.filter import Scope
from toolserver.watches.rule_files import NO_FILES, RuleFiles

Stamp = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime of a file."""
Listing = dict[bytes, tuple[bool, os.stat_result | None]]
"""The entries of a directory: whether each is a directory, and its status where it was asked for."""


@dataclass(slots=True, eq=False)
class Directory:
    """A directory in a snapshot, with the names it had when last looked at."""

    path: bytes
    identity: tuple[int, int]
    scope: Scope
    above: Rules | None
    """The ignore rules before its own files; None below an ignored directory that was named: no rule holds there."""
    rule_files: RuleFiles = NO_FILES
    files: dict[bytes, Stamp | None] = field(default_factory=dict)
    dirs: dict[bytes, Directory] = field(default_factory=dict)
    hidden: set[bytes] = field(default_factory=set)
    """Directories that are not watched now, and may be once the rules change."""
    rules: Rules | None = None
    """The ignore rules that hold in it."""
    wd: int = -1
    """The number of its inotify watch; -1: none."""

    def child(self, name: bytes) -> bytes:
        return self.path + b"/" + name if self.path else name

    def apply(self, above: Rules | None) -> None:
        """Work out the rules that hold in it from those above and its own files."""
        self.above = above
        self.rules = None if above is None else above.push(self.path, *self.rule_files)


def list_directory(fd: int, stat: bool) -> Listing | None:
    """List an open directory; with `stat`, with each entry's status. None where it cannot be read."""
    listing: Listing = {}
    try:
        with os.scandir(fd) as found:
            for entry in found:
                is_dir = entry.is_dir(follow_symlinks=False)
                try:
                    listing[os.fsencode(entry.name)] = is_dir, entry.stat(follow_symlinks=False) if stat else None
                except OSError:
                    continue  # removed since
    except OSError:
        return None
    return listing
