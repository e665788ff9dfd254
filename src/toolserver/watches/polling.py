"""Observes paths by looking at them again and again, where inotify cannot serve; `watchfiles` does the looking.

That is so on file systems whose changes are made elsewhere (network and FUSE mounts) and where the kernel allows no
further watches. It costs processor time as long as it runs, and names that are not UTF-8 cannot be told.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

from watchfiles import Change as Seen
from watchfiles import awatch

from toolserver._fast.ignore import Rules
from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver.watches.interest import Interest, rules_in
from toolserver.watches.observer import Change

PAUSE_MS = 500
"""Milliseconds between two looks."""
KINDS = {Seen.added: "create", Seen.modified: "modify", Seen.deleted: "remove"}

_UNREPORTED = {
    0x6969,  # NFS
    0xFF534D42,  # CIFS
    0xFE534D42,  # SMB2
    0x01021997,  # 9p
    0x65735546,  # FUSE, virtiofs
    0x00C36400,  # Ceph
    0x5346414F,  # AFS
    0x6B414653,  # kAFS
    0x47504653,  # GPFS
    0x0BD00BD0,  # Lustre
    0x19830326,  # FhGFS, BeeGFS
}
"""Magic numbers (statfs(2)) of file systems that do not report what other machines change."""


def reports(file_system: int) -> bool:
    """Tell whether a file system of this magic number reports every change to inotify."""
    return file_system & 0xFFFFFFFF not in _UNREPORTED


class Poller:
    """Looks at `targets` of the tree that `root` is open on, at the path `where`; it closes `root` at its end."""

    def __init__(self, root: int, where: bytes, targets: list[bytes], interest: Interest) -> None:
        self._root = root
        self._where = where
        self._targets = targets
        self._interest = interest
        self._stop = asyncio.Event()

    def close(self) -> None:
        """End it; again is no error."""
        self._stop.set()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    async def changes(self) -> AsyncIterator[list[Change]]:
        """Yield what changed, a batch at a time."""
        paths = [os.fsdecode(os.path.join(self._where, target)) for target in self._targets]
        async for batch in awatch(
            *paths,
            watch_filter=None,
            force_polling=True,
            poll_delay_ms=PAUSE_MS,
            stop_event=self._stop,
            ignore_permission_denied=True,
        ):
            told = []
            for kind, path in sorted(batch):
                relative = os.path.relpath(os.fsencode(path), self._where)
                if self._wanted(b"" if relative == b"." else relative, KINDS[kind]):
                    told.append((relative, KINDS[kind]))
            if told and not self._stop.is_set():
                yield told

    def _wanted(self, path: bytes, kind: str) -> bool:
        """Tell whether the interest is in a path, judged from the root down."""
        want, rules, at = self._interest.top, self._rules(self._interest.base, b""), b""
        *above, last = path.split(b"/")
        for name in above:
            below = self._interest.below(want, rules, at, name, True)
            if below is None:
                return False
            ignored = self._interest.ignored(rules, at, name)
            at = at + b"/" + name if at else name
            want, rules = below, self._rules(None if ignored else rules, at)
        is_dir = self._is_dir(path)
        if is_dir and kind == "modify":
            return False
        found = self._interest.below(want, rules, at, last, is_dir)
        return found is not None and found.all

    def _rules(self, above: Rules | None, path: bytes) -> Rules | None:
        try:
            fd = open_beneath(self._root, path, os.O_RDONLY | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        except OSError:
            return above
        try:
            return rules_in(above, path, fd)
        finally:
            os.close(fd)

    def _is_dir(self, path: bytes) -> bool:
        try:
            os.close(open_beneath(self._root, path, os.O_PATH | os.O_DIRECTORY, resolve=NO_SYMLINKS))
        except OSError:
            return False
        return True
