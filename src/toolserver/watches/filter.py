"""What a watch of paths covers, and what raises nothing although it lies below (specification, section 8)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from toolserver._fast.git_index import Tracked
from toolserver._fast.ignore import Rules
from toolserver.git.rule_files import GitRules
from toolserver.watches.events import is_temporary
from toolserver.workspace.names import GIT, KD


@dataclass(slots=True)
class Scope:
    """What is watched of one directory or file: all of it (`all`), or only the entries in `names`."""

    all: bool = False
    names: dict[bytes, Scope] = field(default_factory=dict)


ALL = Scope(True)


class WatchFilter:
    """Tells which entries a watch of `targets` (root-relative, link-free paths) covers.

    `base` holds the ignore rules of the tree's top and `tracked` the paths of its index; `hidden_top` names
    directories of the root that are not looked into unless named. `git` reads `base` and `tracked` anew, for the tree
    that a descriptor is open on.
    """

    def __init__(
        self,
        targets: Iterable[bytes],
        base: Rules,
        tracked: Tracked,
        hidden_top: frozenset[bytes] = frozenset(),
        git: Callable[[int], GitRules] | None = None,
    ) -> None:
        self._git = git
        self.targets = tuple(targets)
        self.base = base
        self._tracked = tracked
        self._hidden_top = hidden_top
        self.top = Scope()
        """The scope of the root."""
        for target in self.targets:
            scope = self.top
            for name in target.split(b"/") if target else ():
                scope = scope.names.setdefault(name, Scope())
            scope.all = True

    def read_git(self, root: int) -> bool:
        """Read git's rules and index anew; return whether they differ."""
        if self._git is None:
            return False
        try:
            now = self._git(root)
        except OSError:  # the server lacks a descriptor or memory: the rules stay
            return False
        same = now.base is self.base and now.tracked is self._tracked
        self.base, self._tracked = now.base, now.tracked
        return not same

    def scope(self, parent: Scope, rules: Rules | None, path: bytes, name: bytes, is_dir: bool) -> Scope | None:
        """Return the scope of an entry of the directory `path`, whose own scope is `parent`; None: not watched.

        `rules` are those that hold in that directory; None where no rule holds.
        """
        named = parent.names.get(name)
        if is_dir and name == KD:
            return None
        if not parent.all:
            return named
        if is_dir:
            if name == GIT or (not path and name in self._hidden_top) or self.ignored(rules, path, name):
                return named
        elif is_temporary(os.fsdecode(name)):
            return named
        return Scope(True, named.names) if named else ALL

    def ignored(self, rules: Rules | None, path: bytes, name: bytes) -> bool:
        """Tell whether a directory is ignored and holds nothing tracked."""
        return rules is not None and rules.ignored(path, name, True) and not self._tracked.below(path, name)
