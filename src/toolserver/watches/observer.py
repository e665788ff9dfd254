"""Observes paths below a tree's root through inotify and tells what was created, modified and removed.

Every directory below an asked path has a watch of its own, and its names are remembered: that is how a directory that
is renamed or removed can tell of all below it, how a file made in the same instant as its parents is found by looking
(and told once), and how a queue that overflowed is made good. Directories above an asked path are watched for its next
component alone, so that a path that goes and comes back is still observed.

An observer belongs to one thread at a time and blocks: run `start` and `collect` off the event loop.
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass, field

from toolserver._fast import inotify
from toolserver._fast.ignore import Rules
from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver.watches.interest import EVERYTHING, Interest, Want, rules_in

MASK = (
    inotify.CREATE
    | inotify.DELETE
    | inotify.MODIFY
    | inotify.ATTRIB
    | inotify.MOVED_FROM
    | inotify.MOVED_TO
    | inotify.ONLYDIR
    | inotify.EXCL_UNLINK
)
AT_ONCE = 4096
"""Changes that one `collect` answers before it gives its caller a turn."""
CLOCK_STEP_NS = 20_000_000
"""How coarse the clock is that stamps files, with a margin; the kernel's tick is 1 to 10 ms."""
Change = tuple[bytes, str]
"""A root-relative path, and create, modify or remove."""


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
        return min(self.wall_ns, time.time_ns() - passed)


class WatchLimit(Exception):
    """The kernel allows no further watches: `fs.inotify.max_user_watches` (or `max_user_instances`) is used up."""


@dataclass(slots=True, eq=False)
class Node:
    """One watched directory: its path, its watch, what is wanted in it, the names it had when last heard of."""

    path: bytes
    wd: int
    inode: tuple[int, int]
    want: Want
    rules: Rules | None
    """The ignore rules that hold in it; None below an ignored directory that was named: no rule holds there."""
    files: set[bytes] = field(default_factory=set)
    dirs: dict[bytes, Node] = field(default_factory=dict)

    def child(self, name: bytes) -> bytes:
        return self.path + b"/" + name if self.path else name


class Observer:
    """Observes what `interest` is in, of the tree that `root` is open on; it closes `root` at its end."""

    def __init__(self, root: int, interest: Interest) -> None:
        self._root = root
        self._interest = interest
        self._nodes: dict[int, Node] = {}
        self._top: Node | None = None
        self._drained = _Moment(0, 0)
        self._full = False
        self._kept_back: list[Change] = []
        try:
            self._inotify = inotify.Inotify()
        except OSError as error:
            os.close(root)
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise WatchLimit("fs.inotify.max_user_instances") from error
            raise

    def fileno(self) -> int:
        """Return the descriptor that is readable when `collect` has something."""
        return self._inotify.fileno()

    def close(self) -> None:
        """End it; again is no error."""
        if self._root >= 0:
            self._inotify.close()
            os.close(self._root)
            self._root = -1

    def start(self) -> None:
        """Begin to observe. What changes after this returns is told. Raises WatchLimit and OSError."""
        self._drained = _Moment.now()
        self._top = self._enter(b"", self._interest.top, self._interest.base)
        if self._top is None:
            raise FileNotFoundError(errno.ENOENT, "the working directory is gone")
        self._look([self._top], None)
        self._check_full()

    def collect(self) -> list[Change]:
        """Return the changes that wait, in order; those of one path are not merged.

        Raises WatchLimit when new directories can no longer be watched; `rescan` then answers what has changed.
        """
        out: list[Change] = []
        while len(out) < AT_ONCE:
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

    def _check_full(self) -> None:
        if self._full:
            raise WatchLimit("fs.inotify.max_user_watches")

    # ---------------------------------------------------------------------------------------------------- one event

    def _take(self, wd: int, mask: int, name: bytes, out: list[Change]) -> None:
        if mask & inotify.OVERFLOW:
            self._compare(out)
            return
        node = self._nodes.get(wd)
        if node is None:
            return
        if mask & inotify.IGNORED:
            del self._nodes[wd]
            node.wd = -1
            return
        if not name:
            return
        is_dir = bool(mask & inotify.ISDIR)
        if node.want.all and not is_dir and name in (b".gitignore", b".ignore"):
            self._new_rules(node)
        want = self._wanted(node, name, is_dir)
        if want is None:
            return
        if mask & (inotify.CREATE | inotify.MOVED_TO):
            if is_dir:
                self._new_directory(node, name, want, out)
            else:
                self._new_file(node, name, bool(mask & inotify.MOVED_TO), want, out)
        elif mask & (inotify.DELETE | inotify.MOVED_FROM):
            self._gone(node, name, want, out)
        elif not is_dir and want.all:
            if name in node.files:
                out.append((node.child(name), "modify"))
            elif (
                self._status(node.child(name)) is not None
            ):  # else a file without a name (O_TMPFILE), shown as `#INODE`
                self._new_file(node, name, False, want, out)

    def _new_file(self, node: Node, name: bytes, moved: bool, want: Want, out: list[Change]) -> None:
        if name in node.dirs:
            self._drop(node, name, want, out)
        if not want.all:
            return
        if name not in node.files:
            node.files.add(name)
            out.append((node.child(name), "create"))
        elif moved:
            out.append((node.child(name), "modify"))

    def _new_directory(self, node: Node, name: bytes, want: Want, out: list[Change]) -> None:
        if name in node.files:
            node.files.discard(name)
            out.append((node.child(name), "remove"))
        known = node.dirs.get(name)
        if known is not None:
            if known.wd >= 0 and self._inode(known.path) == known.inode:
                return  # found by looking before its event came
            self._drop(node, name, want, out)
        entered = self._enter(node.child(name), want, self._rules_below(node, name))
        if entered is not None:
            node.dirs[name] = entered
            if want.all:
                out.append((entered.path, "create"))
            self._look([entered], out)

    def _gone(self, node: Node, name: bytes, want: Want, out: list[Change]) -> None:
        if name in node.files:
            node.files.discard(name)
            out.append((node.child(name), "remove"))
        elif name in node.dirs:
            self._drop(node, name, want, out)

    # ------------------------------------------------------------------------------------------- what is looked at

    def _wanted(self, node: Node, name: bytes, is_dir: bool) -> Want | None:
        """Return what is wanted of an entry; None: it raises nothing."""
        return self._interest.below(node.want, node.rules, node.path, name, is_dir)

    def _rules_below(self, node: Node, name: bytes) -> Rules | None:
        """Return the rules above a directory's own; None below an ignored one, where no rule holds."""
        return None if self._interest.ignored(node.rules, node.path, name) else node.rules

    def _enter(self, path: bytes, want: Want, rules: Rules | None) -> Node | None:
        """Put a watch on a directory and answer its node, not yet looked into; None where it cannot be opened (now)."""
        try:
            fd = open_beneath(self._root, path, os.O_RDONLY | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        except OSError:
            return None
        try:
            status = os.fstat(fd)
            wd = -1
            try:
                wd = self._inotify.add(fd, MASK)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    return None
                self._full = True
            rules = rules_in(rules, path, fd)
        finally:
            os.close(fd)
        node = Node(path, wd, (status.st_dev, status.st_ino), want, rules)
        if wd >= 0:
            self._nodes[wd] = node
        return node

    def _look(self, todo: list[Node], out: list[Change] | None) -> None:
        """Look into directories and all below; what is found is told as created where `out` is given."""
        while todo:
            node = todo.pop()
            for name, is_dir in self._entries(node.path):
                want = self._wanted(node, name, is_dir)
                if want is None or name in node.dirs or name in node.files:
                    continue
                if is_dir:
                    entered = self._enter(node.child(name), want, self._rules_below(node, name))
                    if entered is None:
                        continue
                    node.dirs[name] = entered
                    todo.append(entered)
                elif want.all:
                    node.files.add(name)
                if out is not None and want.all:
                    out.append((node.child(name), "create"))

    def _entries(self, path: bytes) -> list[tuple[bytes, bool]]:
        try:
            fd = open_beneath(self._root, path, os.O_RDONLY | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        except OSError:
            return []
        try:
            with os.scandir(fd) as found:
                return [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in found]
        except OSError:
            return []
        finally:
            os.close(fd)

    def _inode(self, path: bytes) -> tuple[int, int] | None:
        status = self._status(path)
        return None if status is None else (status.st_dev, status.st_ino)

    def _status(self, path: bytes) -> os.stat_result | None:
        try:
            fd = open_beneath(self._root, path, os.O_PATH | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def _drop(self, node: Node, name: bytes, want: Want, out: list[Change] | None) -> None:
        """Forget a directory and all below; tell it as removed, the deepest first, where `out` is given."""
        told: list[Change] = []
        todo = [(node.dirs.pop(name), want)]
        while todo:
            gone, wanted = todo.pop()
            if wanted.all:
                told.append((gone.path, "remove"))
            told += ((gone.child(file), "remove") for file in sorted(gone.files))
            todo += ((below, below.want) for below in gone.dirs.values())
            if gone.wd >= 0:
                self._nodes.pop(gone.wd, None)
                self._inotify.remove(gone.wd)
        if out is not None:
            out += reversed(told)

    # ------------------------------------------------------------------------------------------------ looking again

    def _new_rules(self, node: Node) -> None:
        """Apply an ignore file that changed: what is hidden now is forgotten, what is visible now is looked at."""
        fresh = self._enter(node.path, node.want, self._above(node))
        if fresh is None:
            return
        fresh.files, fresh.dirs = node.files, node.dirs
        node.rules = fresh.rules
        if fresh.wd >= 0:
            self._nodes[fresh.wd] = node
        todo = [node]
        while todo:
            at = todo.pop()
            for name in list(at.dirs):
                if self._wanted(at, name, True) is None:
                    self._drop(at, name, EVERYTHING, None)
            for below in at.dirs.values():
                again = self._enter(below.path, below.want, self._rules_below(at, os.path.basename(below.path)))
                if again is not None:
                    below.rules = again.rules
                    if again.wd >= 0:
                        self._nodes[again.wd] = below
                todo.append(below)
            self._look([at], None)

    def _above(self, node: Node) -> Rules | None:
        """Return the rules that hold in a directory before its own files: its parent's, the base at the top."""
        if not node.path or self._top is None:
            return self._interest.base
        at = self._top
        *above, last = node.path.split(b"/")
        for name in above:
            at = at.dirs[name]
        return self._rules_below(at, last)

    def rescan(self) -> list[Change]:
        """Return what has changed since the last `collect`, found by looking at everything, and what it kept back."""
        out, self._kept_back = self._kept_back, []
        self._compare(out)
        return out

    def _compare(self, out: list[Change]) -> None:
        """Look at everything again: names are compared, a file changed since the queue was last empty is modified."""
        since, self._drained = self._drained.earliest_ns() - CLOCK_STEP_NS, _Moment.now()
        todo = [self._top] if self._top else []
        while todo:
            node = todo.pop()
            found = dict(self._entries(node.path))
            for name in [one for one in node.files if found.get(one) is not False]:
                self._gone(node, name, EVERYTHING, out)
            for name in [one for one in node.dirs if not found.get(one)]:
                self._drop(node, name, node.dirs[name].want, out)
            for name, is_dir in found.items():
                want = self._wanted(node, name, is_dir)
                if want is None:
                    continue
                if is_dir:
                    known = node.dirs.get(name)
                    self._new_directory(node, name, want, out)
                    if known is not None and node.dirs.get(name) is known:
                        todo.append(known)
                elif name in node.files:
                    status = self._status(node.child(name))
                    if status is not None and status.st_ctime_ns >= since:
                        out.append((node.child(name), "modify"))
                else:
                    self._new_file(node, name, False, want, out)
