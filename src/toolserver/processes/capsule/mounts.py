"""The mounts of a capsule: what is visible inside, and where each place comes from."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

MAX_LINKS = 40
"""How many symbolic links the kernel follows in one path."""


class Kind(Enum):
    """What is mounted."""

    TREE = auto()
    """The tree of the command, read-write."""
    BIND = auto()
    """A place of the host, read-write."""
    READ_ONLY = auto()
    """A place of the host, read-only."""
    LINK = auto()
    """A symbolic link; `source` is its target."""
    COVER = auto()
    """An empty, read-only directory."""
    BLANK = auto()
    """An empty, read-only file."""
    PROC = auto()
    DEV = auto()
    TMP = auto()


@dataclass(frozen=True, slots=True)
class Mount:
    """One place inside. `source` is a path of the host, empty where there is none."""

    kind: Kind
    place: bytes
    source: bytes = b""

    @property
    def of_host(self) -> bool:
        return self.kind in (Kind.TREE, Kind.BIND, Kind.READ_ONLY)


def bind(kind: Kind, path: bytes) -> Mount:
    """Return a place of the host that is at the same path inside."""
    return Mount(kind, path, path)


def _below(mount: Mount, path: bytes) -> bytes:
    """Return the host's path of one in a place of the host."""
    return os.path.join(mount.source, path[len(mount.place) :].lstrip(b"/")).rstrip(b"/") or b"/"


def _names(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name]


@dataclass(slots=True)
class Layout:
    """The mounts of one capsule, a place above another first; of two at the same place the later one counts."""

    mounts: list[Mount]
    _places: dict[bytes, Mount] = field(default_factory=dict)
    _above: set[bytes] = field(default_factory=set)
    """Directories that exist inside because something is mounted below them."""

    def __init__(self, mounts: Iterable[Mount]) -> None:
        self._places = {mount.place: mount for mount in mounts}
        self.mounts = sorted(self._places.values(), key=lambda mount: _names(mount.place))
        self._above = set()
        self.mounts = [mount for mount in self.mounts if not self._is_there(mount)]
        for mount in self.mounts:
            above = os.path.dirname(mount.place)
            while above not in self._above:
                self._above.add(above)
                above = os.path.dirname(above)

    def _is_there(self, mount: Mount) -> bool:
        """Whether a mount adds nothing to the place above it; bubblewrap fails over links that are there already."""
        above = self._mount(os.path.dirname(mount.place)) if mount.place != b"/" else None
        if above is None or not above.of_host:
            return False
        same = mount.kind is above.kind is Kind.READ_ONLY and mount.source == _below(above, mount.place)
        if same or mount.kind is Kind.LINK:
            del self._places[mount.place]
        return same or mount.kind is Kind.LINK

    def on_host(self, path: bytes) -> bytes | None:
        """Return where an absolute path of the capsule leads on the host; None: into the capsule's own /proc.

        Raises OSError where nothing is at the path inside.
        """
        at, host, links = b"/", self._host(b"/"), 0
        todo = _names(path)[::-1]
        while todo:
            name = todo.pop()
            if name == b".":
                continue
            if name == b"..":
                at = os.path.dirname(at)
                host = self._host(at)
                continue
            below = os.path.join(at, name)
            target = self._target(below)
            if target is None:
                at = below
                mount = self._mount(at)
                if mount is not None and mount.kind is Kind.PROC:
                    return None
                host = self._host(at)
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            todo += _names(target)[::-1]
            if target.startswith(b"/"):
                at, host = b"/", self._host(b"/")
        return host

    def _mount(self, path: bytes) -> Mount | None:
        """Return the mount that a path without links lies in."""
        while path not in self._places:
            if path == b"/":
                return None
            path = os.path.dirname(path)
        return self._places[path]

    def _host(self, path: bytes) -> bytes:
        """Return the host's path of one inside; empty for a directory that only the capsule has."""
        mount = self._mount(path)
        if mount is None or not mount.of_host:
            return b""
        return _below(mount, path)

    def _target(self, path: bytes) -> bytes | None:
        """Return the target of a symbolic link inside, None for anything else. Raises OSError: nothing is there."""
        mount = self._mount(path)
        if mount is not None and mount.place == path:
            return mount.source if mount.kind is Kind.LINK else None
        host = self._host(path)
        if host:
            try:
                return os.readlink(host) if stat.S_ISLNK(os.lstat(host).st_mode) else None
            except FileNotFoundError:
                if path not in self._above:
                    raise
                return None
        if path in self._above or (mount is not None and mount.kind in (Kind.PROC, Kind.DEV)):
            return None
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
