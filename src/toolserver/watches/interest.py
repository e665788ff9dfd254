"""What a watch of paths asks for, and what raises nothing although it lies below (specification, section 8)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from toolserver._fast.git_index import Tracked
from toolserver._fast.ignore import Rules
from toolserver.watches.events import is_temporary

NEVER = b".kd"
"""Directories of this name raise nothing, named or not: the server's own state."""
NOT_UNNAMED = b".git"


@dataclass(slots=True)
class Want:
    """What is asked for at one place: everything below it (`all`), and places below that were named."""

    all: bool = False
    names: dict[bytes, Want] = field(default_factory=dict)


EVERYTHING = Want(True)


class Interest:
    """Tells which entries a watch of `targets` (root-relative, link-free paths) is interested in.

    `base` and `tracked` are the ignore rules of the tree's top and its index; `hidden_top` names directories of the
    root that are not looked into unless named.
    """

    def __init__(
        self, targets: Iterable[bytes], base: Rules, tracked: Tracked, hidden_top: frozenset[bytes] = frozenset()
    ) -> None:
        self.base = base
        self._tracked = tracked
        self._hidden_top = hidden_top
        self.top = Want()
        """What is wanted of the root."""
        for target in targets:
            want = self.top
            for name in target.split(b"/") if target else ():
                want = want.names.setdefault(name, Want())
            want.all = True

    def below(self, want: Want, rules: Rules | None, path: bytes, name: bytes, is_dir: bool) -> Want | None:
        """Return what is wanted of an entry of the directory `path`, of which `want` is wanted; None: nothing.

        `rules` are those that hold in that directory; None where no rule holds.
        """
        named = want.names.get(name)
        if is_dir and name == NEVER:
            return None
        if not want.all:
            return named
        if is_dir:
            if name == NOT_UNNAMED or (not path and name in self._hidden_top) or self.ignored(rules, path, name):
                return named
        elif is_temporary(os.fsdecode(name)):
            return named
        return Want(True, named.names) if named else EVERYTHING

    def ignored(self, rules: Rules | None, path: bytes, name: bytes) -> bool:
        """Tell whether a directory is ignored and holds nothing tracked."""
        return rules is not None and rules.ignored(path, name, True) and not self._tracked.below(path, name)


def rules_in(rules: Rules | None, path: bytes, directory: int) -> Rules | None:
    """Return the rules that hold in a directory, open as `directory`: those above and its own two files'."""
    if rules is None:
        return None
    return rules.push(path, _small_file(directory, b".gitignore"), _small_file(directory, b".ignore"))


def _small_file(directory: int, name: bytes, most: int = 1 << 20) -> bytes | None:
    """Return the contents of a rule file; None where it is no regular file or larger than any real one."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None
    with open(fd, "rb") as file:
        try:
            data = file.read(most + 1)
        except OSError:
            return None
    return data if len(data) <= most else None
