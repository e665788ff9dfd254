"""Observes a tree through inotify and reports what was created, modified and removed.

Every directory that is covered has a watch of its own. Directories above a watched path are watched for its next
component alone, so that a path that goes and comes back is still observed.

An observer belongs to one thread at a time and blocks: run `start`, `collect` and `rescan` off the event loop.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import dataclass

from toolserver._fast import inotify
from toolserver.watches.directory import Directory
from toolserver.watches.events import MODIFY, Change
from toolserver.watches.filter import WatchFilter
from toolserver.watches.snapshot import Snapshot
from toolserver.workspace.names import GIT, IGNORE_FILES

MASK = (
    inotify.CREATE
    | inotify.DELETE
    | inotify.MODIFY
    | inotify.ATTRIB
    | inotify.CLOSE_WRITE
    | inotify.MOVED_FROM
    | inotify.MOVED_TO
    | inotify.ONLYDIR
    | inotify.EXCL_UNLINK
)
GIT_FILES = (GIT, b"info", b"index", b"config", b"exclude")
"""Names in the root, `.git` and `.git/info` whose change may change what is ignored."""
MAX_COLLECTED = 4096
"""Changes after which `collect` returns although more may wait."""
CLOCK_STEP_NS = 20_000_000
"""How coarse the clock is that stamps files, with a margin; the kernel's tick is 1 to 10 ms."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """A moment on the clock that files are stamped by, and on one that is never set."""

    wall_ns: int
    steady_ns: int

    @classmethod
    def now(cls) -> _Moment:
        return cls(time.time_ns(), time.monotonic_ns())

    def earliest_ns(self) -> int:
        """Return the earliest stamp of what was done since: the clock may have been put back meanwhile."""
        passed = time.monotonic_ns() - self.steady_ns
        return min(self.wall_ns, time.time_ns() - passed) - CLOCK_STEP_NS


class WatchLimit(Exception):
    """The kernel allows no further watches: `fs.inotify.max_user_watches` (or `max_user_instances`) is used up."""


class Observer:
    """Observes what `watched` covers of the tree that `root` is open on; it closes `root` at its end."""

    def __init__(self, root: int, watched: WatchFilter) -> None:
        self._snapshot = Snapshot(root, watched, self._enter, self._leave)
        self._directories: dict[int, Directory] = {}
        self._repository: set[int] = set()
        """The watches on the repository's own directories."""
        self._drained = _Moment(0, 0)
        self._full = False
        self._kept_back: list[Change] = []
        try:
            self._inotify = inotify.Inotify()
        except OSError as error:
            self._snapshot.close()
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise WatchLimit("fs.inotify.max_user_instances") from error
            raise

    def fileno(self) -> int:
        """Return the descriptor that is readable when `collect` has something."""
        return self._inotify.fileno()

    def close(self) -> None:
        """End it; again is no error."""
        self._inotify.close()
        self._snapshot.close()

    def start(self) -> None:
        """Start to observe. What changes after this returns is reported. Raises WatchLimit and OSError."""
        self._drained = _Moment.now()
        if not self._snapshot.start():
            raise FileNotFoundError(errno.ENOENT, "the working directory is gone")
        self._watch_repository()
        self._check_full()

    def collect(self) -> list[Change]:
        """Return the changes that wait, in order; those of one path are not merged.

        Raises WatchLimit when new directories can no longer be watched; `rescan` then returns what has changed.
        """
        out: list[Change] = []
        while len(out) < MAX_COLLECTED:
            before = _Moment.now()
            events = self._inotify.read()
            if not events:
                self._drained = before
                break
            for wd, mask, name in events:
                self._take(wd, mask, name, out)
        if self._full:
            self._kept_back = out
            self._check_full()
        return out

    def rescan(self) -> list[Change]:
        """Return what has changed since the last `collect`, found by looking at everything, and what it kept back."""
        out, self._kept_back = self._kept_back, []
        self._compare(out)
        return out

    def _compare(self, out: list[Change]) -> None:
        since, self._drained = self._drained.earliest_ns(), _Moment.now()
        self._snapshot.compare(since, out)

    # --------------------------------------------------------------------------------------------------------- watches

    def _enter(self, directory: Directory, fd: int) -> bool:
        """Put a watch on a directory, or find that it has one."""
        try:
            wd = self._inotify.add(fd, MASK)
        except OSError as error:
            self._full = self._full or error.errno == errno.ENOSPC
            return error.errno == errno.ENOSPC
        other = self._directories.get(wd)
        if other is not None and other is not directory:
            other.wd = -1  # moved to here; the event that removes the old path is still to come
        self._directories[wd] = directory
        directory.wd = wd
        return True

    def _leave(self, directory: Directory) -> None:
        if directory.wd >= 0:
            self._directories.pop(directory.wd, None)
            self._inotify.remove(directory.wd)

    def _watch_repository(self) -> None:
        """Put watches on the directories where the index and the rules of the repository at the root lie."""
        for path in (GIT, GIT + b"/info"):
            fd = self._snapshot.open(path)
            if fd >= 0:
                with contextlib.suppress(OSError):
                    self._repository.add(self._inotify.add(fd, MASK))
                os.close(fd)

    def _check_full(self) -> None:
        if self._full:
            raise WatchLimit("fs.inotify.max_user_watches")

    # ---------------------------------------------------------------------------------------------------------- events

    def _take(self, wd: int, mask: int, name: bytes, out: list[Change]) -> None:
        if mask & inotify.OVERFLOW:
            self._compare(out)
            return
        at = self._directories.get(wd)
        if wd in self._repository or (at is not None and not at.path and name == GIT):
            self._take_git(wd, mask, name, out)
        if at is None:
            return
        if mask & inotify.IGNORED:
            del self._directories[wd]
            at.wd = -1
            return
        if not name:
            return
        is_dir = bool(mask & inotify.ISDIR)
        if name in IGNORE_FILES and not mask & inotify.MODIFY:  # not while it is being written
            self._snapshot.read_rules(at, self._drained.earliest_ns(), out)
        if is_dir:
            self._take_directory(at, mask, name, out)
        else:
            self._take_file(at, mask, name, out)

    def _take_git(self, wd: int, mask: int, name: bytes, out: list[Change]) -> None:
        """Take an event of the repository's own directories, or of the one that holds them."""
        if mask & inotify.IGNORED:
            self._repository.discard(wd)
        elif name in GIT_FILES and not mask & inotify.MODIFY:
            self._watch_repository()
            self._snapshot.read_git(self._drained.earliest_ns(), out)

    def _take_directory(self, at: Directory, mask: int, name: bytes, out: list[Change]) -> None:
        scope = self._snapshot.scope(at, name, True)
        if mask & (inotify.CREATE | inotify.MOVED_TO):
            if scope is not None:
                self._snapshot.add_directory(at, name, scope, out)
            elif at.scope.all:
                at.hidden.add(name)
        elif mask & (inotify.DELETE | inotify.MOVED_FROM):
            at.hidden.discard(name)
            if scope is not None:
                self._snapshot.remove(at, name, True, out)

    def _take_file(self, at: Directory, mask: int, name: bytes, out: list[Change]) -> None:
        scope = self._snapshot.scope(at, name, False)
        if scope is None:
            return
        if mask & (inotify.CREATE | inotify.MOVED_TO):
            self._snapshot.add_file(at, name, scope, out, replaced=bool(mask & inotify.MOVED_TO))
        elif mask & (inotify.DELETE | inotify.MOVED_FROM):
            self._snapshot.remove(at, name, False, out)
        elif mask & (inotify.MODIFY | inotify.ATTRIB) and scope.all:
            if name in at.files:
                out.append((at.child(name), MODIFY, False))
            elif (
                self._snapshot.status(at.child(name)) is not None
            ):  # else a file without a name (O_TMPFILE), reported as `#INODE`
                self._snapshot.add_file(at, name, scope, out)
