"""Observes a tree by comparing it again and again, where inotify cannot serve.

That is so on file systems whose changes are made elsewhere (network and FUSE mounts) and where the kernel allows no
further watches. `watchfiles` looks for changes without the GIL and says when to compare; what it does not see (changes
of mode, names that are not UTF-8) is found by comparing a little later.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable

from watchfiles import watch

from toolserver.watches.events import Change
from toolserver.watches.filter import WatchFilter
from toolserver.watches.snapshot import Snapshot

PAUSE = 0.5
"""Seconds between two looks, at least; those of `watchfiles` and, where that cannot look, of the poller itself."""
UNSEEN_PAUSE = 2.0
"""Seconds after which the poller looks although `watchfiles` has seen nothing."""
IDLE_SHARE = 3
"""The pause is this many times as long as a look takes, where that is longer."""

_logger = logging.getLogger(__name__)
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
        since = self._snapshot.newest_ns + 1
        self._snapshot.read_git(since, out)
        self._snapshot.compare(since, out)
        self.pause = max(PAUSE, IDLE_SHARE * (time.monotonic() - begun))
        return out


class Scout:
    """Calls `seen`, on a thread of its own, whenever `watchfiles` has seen a change below one of `paths`."""

    def __init__(self, paths: list[bytes], seen: Callable[[], None]) -> None:
        self._paths = [os.fsdecode(path) for path in paths]
        self._seen = seen
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchfiles", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it looks: a path that is missing, or a name that is not UTF-8, ends it."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End it, within a moment; again is no error."""
        self._stop.set()

    def _run(self) -> None:
        try:
            for _ in watch(
                *self._paths,
                watch_filter=None,
                force_polling=True,
                poll_delay_ms=round(PAUSE * 1000),
                stop_event=self._stop,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                self._seen()
        except Exception as error:  # its own kinds are not documented, and the poller goes on without it
            _logger.info("watchfiles cannot look: %s", error)
