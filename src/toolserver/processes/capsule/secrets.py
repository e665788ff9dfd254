"""Where the server's own secrets would be visible inside: the token file and the state directory.

Paths are followed as the kernel does, and directories are compared by device and inode, so that no spelling, link or
second mount of a directory counts. What is covered is the directory that a name is looked up in: a cover of the token
file itself would go when the file is replaced by rename.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolserver.processes.capsule.mounts import MAX_LINKS, Kind, Mount, bind

Identity = tuple[int, int]
"""Device and inode."""


class Uncoverable(Exception):
    """A secret would be seen by commands. The text says which and where."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory without links in its path, with the identity of each directory from `/` down to it."""

    names: tuple[bytes, ...]
    identities: tuple[Identity, ...]

    @property
    def path(self) -> bytes:
        return b"/" + b"/".join(self.names)


@dataclass(frozen=True, slots=True)
class Lookup:
    """How a path is opened: the directories that hold its links and its last name, and what was found."""

    holders: tuple[Directory, ...]
    found: os.stat_result | None
    last: Directory | None
    """What was found, if it is a directory."""


def identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def look_up(path: bytes) -> Lookup:
    """Follow a path. One that cannot be followed to its end counts as far as it goes."""
    names: list[bytes] = []
    identities = [identity(os.stat(b"/"))]
    holders: list[Directory] = []
    todo = [name for name in path.split(b"/") if name][::-1]
    found: os.stat_result | None = None
    links = 0
    while todo:
        name = todo.pop()
        if name == b".":
            continue
        if name == b"..":
            if names:
                names.pop()
                identities.pop()
            continue
        here = Directory(tuple(names), tuple(identities))
        below = b"/" + b"/".join([*names, name])
        try:
            found = os.lstat(below)
            target = os.readlink(below) if stat.S_ISLNK(found.st_mode) else None
        except OSError:
            return Lookup((*holders, here), None, None)
        if target is not None:
            links += 1
            holders.append(here)
            if links > MAX_LINKS:
                return Lookup(tuple(holders), None, None)
            todo += [part for part in target.split(b"/") if part][::-1]
            if target.startswith(b"/"):
                names, identities = [], identities[:1]
            found = None
        elif stat.S_ISDIR(found.st_mode):
            names.append(name)
            identities.append(identity(found))
        else:
            return Lookup((*holders, here), found, None)
    last = Directory(tuple(names), tuple(identities))
    return Lookup(tuple(holders), found, last)


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the host that is visible inside."""

    path: bytes
    identity: Identity
    writable: bool = False
    system: bool = False
    """One that programs need, so that nothing in it can be covered."""


def places_of(mounts: Iterable[Mount], *, system: bool = False) -> list[Place]:
    """Return the places of the host among some mounts that are there."""
    found = []
    for mount in mounts:
        if mount.of_host:
            with contextlib.suppress(OSError):
                there = identity(os.stat(mount.source))
                found.append(Place(mount.place, there, mount.kind is not Kind.READ_ONLY, system))
    return found


@dataclass(frozen=True, slots=True)
class _Hidden:
    """A directory to cover: the place that shows it, and its path below that."""

    place: Place
    names: tuple[bytes, ...]

    @property
    def path(self) -> bytes:
        return os.path.join(self.place.path, *self.names)


class Secrets:
    """The token file and the state directory of a server."""

    def __init__(self, token_file: bytes | None, state: bytes | None) -> None:
        self._token = token_file
        self._state = state

    def covers(self, places: Iterable[Place]) -> tuple[list[Mount], list[Mount]]:
        """Return what covers the secrets where places show them, and before it what keeps the covers where they are.

        A state directory that would be shown is made. In a place that is writable each directory on the way to a cover
        is mounted on itself, since a mount point cannot be moved: else a command could put a directory of its own
        there. Raises Uncoverable.
        """
        by_identity: dict[Identity, list[Place]] = {}
        for place in places:
            by_identity.setdefault(place.identity, []).append(place)
        hidden: list[_Hidden] = []
        if self._token is not None:
            lookup = look_up(self._token)
            if lookup.found is not None and (same := by_identity.get(identity(lookup.found))):
                raise Uncoverable(f"{_shown(same[0].path)} is the token file, which commands must not see")
            hidden += _hidden("the token file", self._token, lookup.holders, by_identity)
        if self._state is not None:
            hidden += self._state_hidden(self._state, by_identity)
        return _mounts(hidden)

    @staticmethod
    def _state_hidden(state: bytes, by_identity: Mapping[Identity, list[Place]]) -> list[_Hidden]:
        what = "the server's state directory"
        lookup = look_up(state)
        if lookup.last is None:
            if not _hidden(what, state, lookup.holders, by_identity, missing=True):
                return []
            with contextlib.suppress(OSError):
                os.makedirs(state, mode=0o700, exist_ok=True)
            lookup = look_up(state)
        if lookup.last is None:
            raise Uncoverable(f"{what} {_shown(state)} would be seen by commands and cannot be made")
        return _hidden(what, state, (*lookup.holders, lookup.last), by_identity)


def _hidden(
    what: str,
    path: bytes,
    holders: Iterable[Directory],
    by_identity: Mapping[Identity, list[Place]],
    *,
    missing: bool = False,
) -> list[_Hidden]:
    """Return what has to be covered of some directories. Raises Uncoverable, unless it is only asked what is seen."""
    found = []
    for holder in holders:
        for depth, one in enumerate(holder.identities):
            for place in by_identity.get(one, ()):
                if not missing and (depth == len(holder.names) or place.system):
                    raise Uncoverable(
                        f"{what} {_shown(path)}, or a link on the way to it, lies in {_shown(place.path)}, "
                        "which commands see, and cannot be kept covered there"
                    )
                found.append(_Hidden(place, holder.names[depth:]))
    return found


def _mounts(hidden: list[_Hidden]) -> tuple[list[Mount], list[Mount]]:
    """Return the mounts that hold covers in place, and the covers, without those below another."""
    paths = {one.path for one in hidden}

    def inside(path: bytes) -> bool:
        return any(path.startswith(other + b"/") for other in paths)

    pins = [
        bind(Kind.BIND, path)
        for one in hidden
        if one.place.writable
        for path in (os.path.join(one.place.path, *one.names[:depth]) for depth in range(1, len(one.names)))
        if path not in paths and not inside(path)
    ]
    return pins, [Mount(Kind.COVER, path) for path in sorted(paths) if not inside(path)]


def _shown(path: bytes) -> str:
    return os.fsdecode(path)
