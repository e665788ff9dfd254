"""What the same search costs in pure Python: pathspec, re and os.scandir."""

from __future__ import annotations

import fnmatch
import os
import pathlib
import re
from collections.abc import Iterator

from pathspec import GitIgnoreSpec

Rules = tuple[tuple[str, GitIgnoreSpec], ...]


def walk(root: pathlib.Path) -> Iterator[str]:
    """Yield the files below `root` that no `.gitignore` hides."""
    todo: list[tuple[str, Rules]] = [("", ())]
    while todo:
        folder, rules = todo.pop()
        with os.scandir(root / folder) as found:
            entries = list(found)
        if any(entry.name == ".gitignore" for entry in entries):
            lines = (root / folder / ".gitignore").read_text(errors="replace").splitlines()
            rules = (*rules, (folder, GitIgnoreSpec.from_lines(lines)))
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            path = folder + entry.name + ("/" if is_folder else "")
            if entry.name == ".git" or any(spec.match_file(path[len(base) :]) for base, spec in rules):
                continue
            if is_folder:
                todo.append((path, rules))
            else:
                yield path


def baseline_grep(root: pathlib.Path, pattern: str) -> list[tuple[str, int]]:
    """Return path and line number of every matching line."""
    wanted = re.compile(pattern.encode())
    out = []
    for path in walk(root):
        try:
            data = (root / path).read_bytes()
        except OSError:
            continue
        if b"\0" in data[:8192] or not wanted.search(data):
            continue
        out += [(path, number) for number, line in enumerate(data.split(b"\n"), 1) if wanted.search(line)]
    return out


def baseline_glob(root: pathlib.Path, pattern: str) -> list[str]:
    """Return the files whose name matches, newest first."""
    found = [path for path in walk(root) if fnmatch.fnmatchcase(os.path.basename(path), pattern)]
    return sorted(found, key=lambda path: -os.lstat(root / path).st_mtime_ns)[:5000]
