"""Observes a tree by comparing it again and again, where inotify cannot serve.

That is so on file systems whose changes are made elsewhere (network and FUSE mounts) and where the kernel allows no
further watches.
"""

from __future__ import annotations

import errno
import os
import time

from toolserver.watches.events import Change
from toolserver.watches.filter import WatchFilter
from toolserver.watches.snapshot import Snapshot

PAUSE = 0.5
"""Seconds between two looks, at least."""
IDLE_SHARE = 3
"""The pause is this many times as long as a look takes, where that is longer."""

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
    """Compares what `watched` covers of the tree that `root` is open on; it closes `root` at its end.

    It belongs to one thread at a time and blocks: run `start` and `look` off the event loop.
    """

    def __init__(self, root: int, watched: WatchFilter) -> None:
        self._snapshot = Snapshot(root, watched, stamps=True)
        self.pause = PAUSE
        """Seconds to wait before the next look."""

    def close(self) -> None:
        """End it; again is no error."""
        self._snapshot.close()

    def start(self) -> None:
        """Look for the first time. What changes after this returns is reported. Raises OSError."""
        if not self._snapshot.start():
            raise FileNotFoundError(errno.ENOENT, "the working directory is gone")

    def look(self) -> list[Change]:
        """Return what has changed since the last look."""
        begun = time.monotonic()
        out: list[Change] = []
        self._snapshot.compare(self._snapshot.newest_ns + 1, out)
        self.pause = max(PAUSE, IDLE_SHARE * (time.monotonic() - begun))
        return out
