"""What a watch last saw of the directories that it covers, and what has changed on the disk since.

A snapshot knows the names in each directory. That is how a directory that is renamed or removed is reported with all
below it, how a file made in the same instant as its parents is found by looking, and reported once, and how a queue of
events that overflowed is made good. `Observer` keeps one up to date by single events, `Poller` by comparing it.

A change of an ignore file is no change of the entries that it hides or shows: nothing is reported for them. What
happens in a directory from the moment it is shown is reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from toolserver._fast.ignore import Rules
from toolserver._fast.inotify import birth_ns
from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver.watches.directory import Directory, Listing, Stamp, list_directory
from toolserver.watches.events import CREATE, MODIFY, REMOVE, Change
from toolserver.watches.filter import Scope, WatchFilter
from toolserver.watches.rule_files import RuleFiles, read_rule_files
from toolserver.workspace.names import IGNORE_FILES
from toolserver.workspace.root import identity

Entered = tuple[Directory, Listing]


class Snapshot:
    """A snapshot of what `watched` covers of the tree that `root` is open on; it closes `root` at its end.

    `entered` is called with each directory that is added, open as a descriptor, before its names are read, and returns
    whether it is kept; `left` with each that is dropped. With `stamps`, files are compared by their stamps and not by
    the time of their last change. It belongs to one thread at a time.
    """

    def __init__(
        self,
        root: int,
        watched: WatchFilter,
        entered: Callable[[Directory, int], bool] = lambda _directory, _fd: True,
        left: Callable[[Directory], None] = lambda _directory: None,
        *,
        stamps: bool = False,
    ) -> None:
        self._root = root
        self._filter = watched
        self._entered = entered
        self._left = left
        self._stamps = stamps
        self._top: Directory | None = None
        self.newest_ns = 0
        """The latest change of any entry that was looked at, by the clock of the file system; with `stamps` only."""

    def close(self) -> None:
        """End it; again is no error."""
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def start(self) -> bool:
        """Look at everything for the first time. Return whether the root is there."""
        entered = self._enter(b"", self._filter.top, self._filter.base, self._stamps)
        if entered is None:
            return False
        self._top = entered[0]
        self._look(entered, None)
        return True

    # -------------------------------------------------------------------------------------------------- single changes

    def scope(self, at: Directory, name: bytes, is_dir: bool) -> Scope | None:
        """Return the scope of an entry; None: it raises nothing."""
        return self._filter.scope(at.scope, at.rules, at.path, name, is_dir)

    def add_file(self, at: Directory, name: bytes, scope: Scope, out: list[Change], *, replaced: bool = False) -> None:
        """Take in a file that appeared; one that is known was modified where it is `replaced`."""
        if name in at.dirs:
            self._drop(at, name, out)
        if not scope.all:
            return
        if name not in at.files:
            at.files[name] = None
            out.append((at.child(name), CREATE, False))
        elif replaced:
            out.append((at.child(name), MODIFY, False))

    def add_directory(self, at: Directory, name: bytes, scope: Scope, out: list[Change]) -> None:
        """Take in a directory that appeared, and all below it."""
        self._remove_file(at, name, out)
        known = at.dirs.get(name)
        if known is not None:
            if known.wd >= 0 and self._identity(known.path) == known.identity:
                return  # found by looking before its event came
            self._drop(at, name, out)
        self._add_directory(at, name, scope, out)

    def _add_directory(self, at: Directory, name: bytes, scope: Scope, out: list[Change]) -> None:
        entered = self._enter(at.child(name), scope, self._rules_below(at, name), self._stamps)
        if entered is not None:
            at.dirs[name] = entered[0]
            if scope.all:
                out.append((at.child(name), CREATE, True))
            self._look(entered, out)

    def remove(self, at: Directory, name: bytes, is_dir: bool, out: list[Change]) -> None:
        """Take out an entry that disappeared, a directory with all below it."""
        if not is_dir:
            self._remove_file(at, name, out)
        elif name in at.dirs:
            self._drop(at, name, out)

    def status(self, path: bytes) -> os.stat_result | None:
        """Return the status of an entry, not followed; None where there is none."""
        try:
            fd = open_beneath(self._root, path, os.O_PATH | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def _identity(self, path: bytes) -> tuple[int, int] | None:
        status = self.status(path)
        return None if status is None else identity(status)

    def _remove_file(self, at: Directory, name: bytes, out: list[Change]) -> None:
        if name in at.files:
            del at.files[name]
            out.append((at.child(name), REMOVE, False))

    # --------------------------------------------------------------------------------------------------------- looking

    def _rules_below(self, at: Directory, name: bytes) -> Rules | None:
        """Return the rules before a directory's own files; None below an ignored one, where no rule holds."""
        return None if self._filter.ignored(at.rules, at.path, name) else at.rules

    def _enter(self, path: bytes, scope: Scope, above: Rules | None, stat: bool) -> Entered | None:
        """Open a directory and read its names and rules; None where it cannot be opened (any more)."""
        fd = self.open(path)
        if fd < 0:
            return None
        try:
            found = Directory(path, identity(os.fstat(fd)), scope, above)
            if not self._entered(found, fd):
                return None
            listing = list_directory(fd, stat) or {}
            found.rule_files = read_rule_files(fd, listing)
        finally:
            os.close(fd)
        found.apply(above)
        return found, listing

    def open(self, path: bytes) -> int:
        """Open a directory; -1 where that is not possible (any more)."""
        try:
            return open_beneath(self._root, path, os.O_RDONLY | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        except OSError:
            return -1

    def _look(self, entered: Entered, out: list[Change] | None, since_ns: int | None = None) -> None:
        """Take in what lies in a directory and all below it.

        It is reported as created where `out` is given; with `since_ns`, only what has changed since then.
        """
        todo = [(entered, since_ns)]
        while todo:
            (at, listing), since = todo.pop()
            for name, (is_dir, status) in listing.items():
                scope = self.scope(at, name, is_dir)
                if scope is None:
                    if is_dir and at.scope.all:
                        at.hidden.add(name)
                    continue
                if name in at.dirs or name in at.files:
                    continue
                kind = CREATE if since is None else self._kind_since(at, name, status, since)
                if is_dir:
                    stat = self._stamps or since_ns is not None
                    below = self._enter(at.child(name), scope, self._rules_below(at, name), stat)
                    if below is None:
                        continue
                    at.dirs[name] = below[0]
                    todo.append((below, None if kind == CREATE else since))
                elif scope.all:
                    at.files[name] = self._stamp(status)
                if out is not None and scope.all and (kind == CREATE or (kind == MODIFY and not is_dir)):
                    out.append((at.child(name), kind, is_dir))

    def _kind_since(self, at: Directory, name: bytes, status: os.stat_result | None, since_ns: int) -> str | None:
        """Return what happened to an entry since a moment on the clock of its file system: the best of its times."""
        if status is None or status.st_ctime_ns < since_ns:
            return None
        if status.st_mtime_ns < since_ns:
            return CREATE  # moved to here, or copied with its time
        fd = self.open(at.path)
        if fd < 0:
            return None
        try:
            return CREATE if birth_ns(fd, name) >= since_ns else MODIFY
        finally:
            os.close(fd)

    def _stamp(self, status: os.stat_result | None) -> Stamp | None:
        if status is None or not self._stamps:
            return None
        self.newest_ns = max(self.newest_ns, status.st_ctime_ns)
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _drop(self, at: Directory, name: bytes, out: list[Change] | None) -> None:
        """Forget a directory and all below; report it as removed, the deepest first, where `out` is given."""
        removed: list[Change] = []
        todo = [at.dirs.pop(name)]
        while todo:
            gone = todo.pop()
            if gone.scope.all:
                removed.append((gone.path, REMOVE, True))
            removed += ((gone.child(file), REMOVE, False) for file in sorted(gone.files, reverse=True))
            todo += gone.dirs.values()
            self._left(gone)
        if out is not None:
            out += reversed(removed)

    # ----------------------------------------------------------------------------------------------------------- rules

    def read_rules(self, at: Directory, since_ns: int, out: list[Change]) -> None:
        """Read a directory's ignore files again and apply them if they differ.

        `since_ns` is the moment from which on changes are reported of what a removed file hid.
        """
        fd = self.open(at.path)
        if fd < 0:
            return
        try:
            self._new_rules(at, fd, read_rule_files(fd, IGNORE_FILES, at.rule_files), since_ns, out)
        finally:
            os.close(fd)

    def read_git(self, since_ns: int, out: list[Change]) -> None:
        """Read git's own rules and index again and apply them if they differ; `since_ns` as in `read_rules`."""
        if self._top is not None and self._filter.read_git(self._root):
            self._top.apply(self._filter.base)
            self._apply_rules(self._top, since_ns, since_ns, out)

    def _new_rules(self, at: Directory, fd: int, files: RuleFiles, since_ns: int, out: list[Change]) -> None:
        changed = [name for name, old, new in zip(IGNORE_FILES, at.rule_files, files, strict=True) if old != new]
        if not changed:
            return
        shown_ns = since_ns
        for name in changed:
            try:
                shown_ns = max(shown_ns, os.stat(name, dir_fd=fd, follow_symlinks=False).st_ctime_ns)
            except OSError:
                continue  # removed: from when on is not known
        at.rule_files = files
        at.apply(at.above)
        self._apply_rules(at, since_ns, shown_ns, out)

    def _apply_rules(self, start: Directory, since_ns: int, shown_ns: int, out: list[Change]) -> None:
        """Forget what is hidden now in a directory and below, take in what is shown now, since `shown_ns`."""
        todo = [start]
        while todo:
            at = todo.pop()
            shown = [name for name in at.hidden if self.scope(at, name, True) is not None]
            for name, known in list(at.dirs.items()):
                scope = self.scope(at, name, True)
                if scope is None or scope.all != known.scope.all:
                    self._hide(at, name, since_ns, out)
                    shown += [name] if scope is not None else []
                else:
                    known.scope = scope
                    known.apply(self._rules_below(at, name))
                    todo.append(known)
            for name in shown:
                self._show(at, name, shown_ns, out)

    def _hide(self, at: Directory, name: bytes, since_ns: int, out: list[Change]) -> None:
        """Forget a directory that is ignored now, with what is not reported yet of the time before."""
        known = at.dirs[name]
        gone = self._identity(known.path) != known.identity
        if not gone:
            self._compare([known], since_ns, out, rules=False)
        self._drop(at, name, out if gone else None)
        at.hidden.add(name)

    def _show(self, at: Directory, name: bytes, since_ns: int, out: list[Change]) -> None:
        """Take in a directory that was ignored, and report what has happened in it since the rules changed."""
        at.hidden.discard(name)
        scope = self.scope(at, name, True)
        entered = scope and self._enter(at.child(name), scope, self._rules_below(at, name), stat=True)
        if entered:
            at.dirs[name] = entered[0]
            self._look(entered, out, since_ns)

    # ------------------------------------------------------------------------------------------------------- comparing

    def compare(self, since_ns: int, out: list[Change]) -> None:
        """Look at everything again: names are compared; a file that changed since `since_ns` is modified."""
        if self._top is not None:
            self._compare([self._top], since_ns, out, rules=True)

    def _compare(self, todo: list[Directory], since_ns: int, out: list[Change], *, rules: bool) -> None:
        while todo:
            at = todo.pop()
            fd = self.open(at.path)
            if fd < 0:
                continue  # gone, as its parent will tell, or not readable now
            known = dict(at.dirs)
            try:
                found = list_directory(fd, stat=True) if self._entered(at, fd) else None
                if found is None:
                    continue
                if rules:
                    self._new_rules(at, fd, read_rule_files(fd, found, at.rule_files), since_ns, out)
            finally:
                os.close(fd)
            self._compare_names(at, found, since_ns, out)
            todo += (below for name, below in known.items() if at.dirs.get(name) is below)

    def _compare_names(self, at: Directory, found: Listing, since_ns: int, out: list[Change]) -> None:
        directories = {name: status for name, (is_dir, status) in found.items() if is_dir}
        for name in [one for one in at.files if one not in found or one in directories]:
            self._remove_file(at, name, out)
        for name, known in list(at.dirs.items()):
            status = directories.get(name)
            if status is None or identity(status) != known.identity:
                self._drop(at, name, out)
        at.hidden.intersection_update(directories)
        for name, (is_dir, status) in found.items():
            scope = self.scope(at, name, is_dir)
            if scope is None:
                if is_dir and at.scope.all:
                    at.hidden.add(name)
            elif is_dir:
                if name not in at.dirs:
                    self._add_directory(at, name, scope, out)
            elif name not in at.files:
                self.add_file(at, name, scope, out)
            elif self._modified(at.files[name], status, since_ns):
                out.append((at.child(name), MODIFY, False))
            if name in at.files:
                at.files[name] = self._stamp(status)

    def _modified(self, before: Stamp | None, status: os.stat_result | None, since_ns: int) -> bool:
        if self._stamps:
            return before != self._stamp(status)
        return status is not None and status.st_ctime_ns >= since_ns
