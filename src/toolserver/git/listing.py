"""Directories as a console shows them: rows with what git says of each (specification, section 12)."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import Any

from toolserver._fast.git_index import Tracked
from toolserver._fast.ignore import Rules
from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver.git.rule_files import GitRules
from toolserver.git.status import Change
from toolserver.workspace.names import AGENTS, GIT, KD
from toolserver.workspace.paths import shown

ENTRIES = 5000
"""Rows of an answer, over all its levels."""
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "symlink"}
_LETTERS = {"T": "M", "U": "M", "C": "A", "?": "?", ".": ""}

Row = dict[str, Any]


class Letters:
    """The letters of files and directories, from all changes of a tree."""

    def __init__(self, changes: list[Change], tracked: Tracked) -> None:
        self._files: dict[bytes, str] = {}
        self._directories: dict[bytes, bool] = {}
        """Whether all that differs below is untracked."""
        self._tracked = tracked
        for change in changes:
            new = change.untracked
            path = change.path.rstrip(b"/")
            letter = change.worktree if change.worktree != "." else change.index
            self._files[path] = _LETTERS.get(letter, letter)
            self._mark(path, new)
            if change.renamed_from is not None:
                self._mark(change.renamed_from, new=False)

    def _mark(self, path: bytes, new: bool) -> None:
        above = path.rpartition(b"/")[0]
        while above and self._directories.get(above) != new:
            if above in self._directories and new:
                return  # something else differs there
            self._directories[above] = new
            above = above.rpartition(b"/")[0]

    def of(self, path: bytes, *, directory: bool) -> str:
        """Return the letter of a path, empty where nothing differs."""
        if not directory or path in self._files:
            return self._files.get(path, "")
        new = self._directories.get(path)
        if new is None:
            return ""
        return "?" if new and not self._tracked.below(path, b"") else "M"


@dataclass(frozen=True, slots=True)
class View:
    """What is needed to show a tree: its root's descriptor, git's rules, the letters, what is left undescended."""

    root: int
    git: GitRules
    letters: Letters
    main: bool

    def tree(self, path: bytes, depth: int) -> tuple[list[Row], bool]:
        """Return the rows of a directory, with those of directories below it up to `depth` levels, and whether some
        were left out. Raises OSError where it is no directory (any more)."""
        budget = [ENTRIES]
        top = _Level(path, *self._rules_of(path))
        rows = self._level(top, budget)
        level, truncated = [(top, rows)], top.truncated
        for _ in range(1, depth):
            following = []
            for above, listed in level:
                for row, name in zip(listed, above.names, strict=True):
                    if row["kind"] != "dir" or not self._descends(above, row, name):
                        continue
                    below = _Level(os.path.join(above.path, name), *self._below(above, name, row["ignored"]))
                    try:
                        row["entries"] = self._level(below, budget)
                    except OSError:  # it went meanwhile, or may not be read
                        row["entries"] = []
                        below.names = []
                    truncated = truncated or below.truncated
                    following.append((below, row["entries"]))
            level = following
        return rows, truncated

    def row(self, path: bytes) -> Row | None:
        """Return the row of one path, None where it is a special file. Raises OSError where there is nothing."""
        above, _, name = path.rpartition(b"/")
        if not path:
            status = os.fstat(self.root)
            return _row(b".", "dir", status, False, "")
        rules, ignored = self._rules_of(above)
        directory = open_beneath(self.root, above, os.O_PATH | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        try:
            return self._row(_Level(above, rules, ignored), directory, name)
        finally:
            os.close(directory)

    # ---------------------------------------------------------------------------------------------------------- rows

    def _level(self, level: _Level, budget: list[int]) -> list[Row]:
        fd = open_beneath(self.root, level.path, os.O_RDONLY | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        try:
            found: list[tuple[bool, bytes]] = []
            with os.scandir(fd) as entries:
                for entry in entries:
                    found.append((not entry.is_dir(follow_symlinks=False), os.fsencode(entry.name)))
            rows: list[Row] = []
            for _, name in sorted(found):
                if budget[0] == 0:
                    level.truncated = True
                    break
                try:
                    row = self._row(level, fd, name)
                except OSError:  # it went meanwhile
                    continue
                if row is not None:
                    rows.append(row)
                    level.names.append(name)
                    budget[0] -= 1
            return rows
        finally:
            os.close(fd)

    def _row(self, level: _Level, directory: int, name: bytes) -> Row | None:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        kind = _KINDS.get(stat.S_IFMT(status.st_mode))
        if kind is None:
            return None
        path = os.path.join(level.path, name)
        ignored = self._ignored(level, name, kind == "dir")
        letter = "" if ignored else self.letters.of(path, directory=kind == "dir")
        row = _row(name, kind, status, ignored, letter)
        if kind == "symlink":
            row["target"] = os.readlink(name, dir_fd=directory).decode(errors="replace")
        if "\ufffd" in row["name"]:
            row |= {key: value for key, value in shown(path).items() if key == "path_b64"}
        return row

    def _ignored(self, level: _Level, name: bytes, directory: bool) -> bool:
        if directory and name in (GIT, KD):
            return True
        if self._is_tracked(level.path, name, directory):
            return False
        return level.ignored or level.rules is None or level.rules.ignored(level.path, name, directory)

    def _is_tracked(self, path: bytes, name: bytes, directory: bool) -> bool:
        tracked = self.git.tracked
        return tracked.below(path, name) if directory else tracked.file(path, name)

    def _descends(self, level: _Level, row: Row, name: bytes) -> bool:
        if row["ignored"]:
            return False
        return not (self.main and not level.path and name == AGENTS)

    # --------------------------------------------------------------------------------------------------------- rules

    def _rules_of(self, path: bytes) -> tuple[Rules | None, bool]:
        """Return the rules that hold in a directory, and whether it is ignored itself; then there are no rules."""
        level = _Level(b"", self._with_files(self.git.base, b""), False)
        for name in path.split(b"/") if path else ():
            ignored = self._ignored(level, name, True)
            rules, ignored = self._below(level, name, ignored)
            level = _Level(os.path.join(level.path, name), rules, ignored)
        return level.rules, level.ignored

    def _below(self, level: _Level, name: bytes, ignored: bool) -> tuple[Rules | None, bool]:
        """Return the rules of a directory below, and whether what is not tracked in it is ignored."""
        hidden = ignored or level.ignored or level.rules is None
        if hidden or level.rules is None or level.rules.ignored(level.path, name, True):
            return None, True
        return self._with_files(level.rules, os.path.join(level.path, name)), False

    def _with_files(self, rules: Rules, path: bytes) -> Rules:
        try:
            fd = open_beneath(self.root, path, os.O_RDONLY | os.O_DIRECTORY, resolve=NO_SYMLINKS)
        except OSError:
            return rules
        try:
            return rules.enter(path, fd, git_only=True)
        finally:
            os.close(fd)


@dataclass(slots=True)
class _Level:
    """One directory of an answer: its rules, whether all that is not tracked in it is ignored, and its names."""

    path: bytes
    rules: Rules | None
    ignored: bool
    truncated: bool = False
    names: list[bytes] = field(default_factory=list)


def _row(name: bytes, kind: str, status: os.stat_result, ignored: bool, letter: str) -> Row:
    return {
        "name": name.decode(errors="replace"),
        "kind": kind,
        "size": 0 if kind == "dir" else status.st_size,
        "mtime": int(status.st_mtime_ns // 1_000_000_000),
        "ignored": ignored,
        "git": letter,
    }
