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
FIRST_MS = 200
"""Milliseconds without a change after which `watchfiles` says that it is at work."""
KINDS = {Seen.added: "create", Seen.modified: "modify", Seen.deleted: "remove"}

_UNREPORTED = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "virtiofs",
        "ceph",
        "afs",
        "lustre",
        "beegfs",
        "gpfs",
        "ocfs2",
        "gfs2",
    }
)
"""Types of file systems that do not report what other machines change; FUSE (`fuse`, `fuse.*`) beside them."""


def reports(directory: int) -> bool:
    """Tell whether the file system of an open directory reports every change to inotify.

    It is looked up by its device in mountinfo (proc(5)); one that is not found there, as btrfs shows, does.
    """
    device = os.fstat(directory).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            before, _, after = line.partition(" - ")
            if before.split()[2] == wanted:
                kind = after.split()[0]
                return kind not in _UNREPORTED and kind.partition(".")[0] != "fuse"
    return True


class Poller:
    """Looks at `targets` of the tree that `root` is open on, at the path `where`; it closes `root` at its end."""

    def __init__(self, root: int, where: bytes, targets: list[bytes], interest: Interest) -> None:
        self._root = root
        self._where = where
        self._targets = targets
        self._interest = interest
        self._stop = asyncio.Event()
        self.looked = asyncio.Event()
        """Set once everything has been looked at: what changes from then on is told."""

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
            rust_timeout=FIRST_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        ):
            self.looked.set()
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
