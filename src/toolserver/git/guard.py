"""Looks at a repository's own files before the library opens them.

The library opens files by name, waits on a FIFO for as long as nobody writes to it, and follows every include of a
configuration, all that with the GIL held: one such file would stop the whole server.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from toolserver.git import config
from toolserver.workspace import bounded

MOST_ENTRIES = 100_000
"""Names that are looked at; a repository with more loose references is not opened."""
MOST_INCLUDES = 100
"""Files that a configuration may include, each counted as often as it is."""
LARGEST_CONFIG = 4 * 1024 * 1024
LARGEST_ATTRIBUTES = 4 * 1024 * 1024
"""Bytes of a file of attributes that is read."""
MOST_ALTERNATES = 20
_SMALL = 1 << 20


class Unsafe(Exception):
    """Why a repository is not opened."""


def check(root: bytes) -> list[bytes]:
    """Return the directories of objects of the repository of `root`.

    Raises Unsafe where something that the library may open there is no file to be read.
    """
    directory = os.path.join(root, b".git")
    if stat.S_ISFIFO(_mode(directory)):
        raise Unsafe(".git is a FIFO")
    if not os.path.isdir(directory):
        named = _text(directory)
        if not named.startswith(b"gitdir:"):
            return []
        directory = os.path.join(root, named.removeprefix(b"gitdir:").strip())
    common = directory
    left = iter(range(MOST_ENTRIES))
    _look(directory, left)
    if shared := _text(os.path.join(directory, b"commondir")).strip():
        common = os.path.join(directory, shared)
        _look(common, left)
    for above in {directory, common}:
        for name in (b"refs", b"logs", b"info", b"reftable"):
            _look(os.path.join(above, name), left, deep=True)
    objects: list[bytes] = []
    _look_at_objects(os.path.join(common, b"objects"), left, objects)
    includes = iter(range(MOST_INCLUDES))
    for path in (os.path.join(common, b"config"), os.path.join(directory, b"config.worktree")):
        _look_at_config(path, includes, 0)
    return objects


def attributes_are_safe(path: bytes) -> bool:
    """Whether a file of attributes may be read, or is not there. Git follows no link to one in a work tree."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return True
    return stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_ATTRIBUTES


def is_special(path: bytes) -> bool:
    """Whether a path is something that opening may wait on or that never ends."""
    mode = _mode(path)
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _mode(path: bytes) -> int:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return 0


def _text(path: bytes) -> bytes:
    try:
        return bounded.read_regular(path, _SMALL)
    except (OSError, ValueError):
        return b""


def _look(directory: bytes, left: Iterator[int], *, deep: bool = False) -> None:
    """Look at the entries of a directory, and at those below it where it is `deep`."""
    todo = [directory]
    while todo:
        try:
            names = os.listdir(todo[-1])
        except (OSError, ValueError):
            names = []
        above = todo.pop()
        for name in names:
            if next(left, None) is None:
                raise Unsafe(f"it has more than {MOST_ENTRIES} loose files")
            path = os.path.join(above, name)
            if is_special(path):
                raise Unsafe(f"{os.fsdecode(path)} is a special file")
            if deep and stat.S_ISDIR(_mode(path)):
                todo.append(path)


def _look_at_objects(objects: bytes, left: Iterator[int], found: list[bytes]) -> None:
    """Look at a directory of objects and at those that it names as alternates; add them to `found`."""
    if len(found) > MOST_ALTERNATES:
        raise Unsafe(f"it has more than {MOST_ALTERNATES} alternates")
    found.append(objects)
    _look(os.path.join(objects, b"pack"), left)
    _look(os.path.join(objects, b"info"), left, deep=True)
    for line in _text(os.path.join(objects, b"info", b"alternates")).splitlines():
        if line and not line.startswith(b"#"):
            _look_at_objects(os.path.join(objects, line), left, found)


def _look_at_config(path: bytes, includes: Iterator[int], depth: int) -> None:
    """Look at a configuration file and at all that it includes, whether a condition holds or not."""
    if is_special(path):
        raise Unsafe(f"{os.fsdecode(path)} is a special file")
    try:
        if os.stat(path).st_size > LARGEST_CONFIG:
            raise Unsafe(f"{os.fsdecode(path)} is too large")
    except (OSError, ValueError):
        return
    if depth > config.MAX_DEPTH:
        return
    for entry in config.parse(bounded.read_regular(path, LARGEST_CONFIG)):
        named = None if entry.value is None else config.expand(entry.value, os.environb.get(b"HOME"))
        if named is None:
            continue
        inner = os.path.join(os.path.dirname(path), named)
        if (entry.section, entry.key) == (b"core", b"attributesfile") and is_special(inner):
            raise Unsafe(f"{os.fsdecode(inner)} is a special file")
        if entry.section in (b"include", b"includeif") and entry.key == b"path":
            if next(includes, None) is None:
                raise Unsafe(f"its configuration includes more than {MOST_INCLUDES} files")
            _look_at_config(inner, includes, depth + 1)
