"""What a command sees: the system, its tree, what was added; and what is covered (specification, section 9)."""

from __future__ import annotations

import contextlib
import glob
import os
import stat
from dataclasses import dataclass

from toolserver.processes.capsule.kernel import firmware_cover, kernel_mounts
from toolserver.processes.capsule.mounts import Kind, Layout, Mount, bind
from toolserver.processes.capsule.secrets import Secrets, Uncoverable, places_of
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.state.kd import open_kd
from toolserver.workspace.names import AGENTS, KD, MAIN

SYSTEM = (b"/usr", b"/bin", b"/sbin", b"/nix")
ETC = (
    "passwd group hosts resolv.conf nsswitch.conf localtime ssl ca-certificates pki alternatives "
    "ld.so.cache ld.so.conf ld.so.conf.d ld.so.preload"
)
HOME = KD + b"/home"
_KEPT = 64
"""Layouts that are kept; one is a few kilobytes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is seen beside the tree, and what never is."""

    bind_ro: tuple[bytes, ...] = ()
    """More places, absolute, read-only."""
    token_file: bytes | None = None
    state: bytes | None = None
    """The directory that holds the state of this user's servers."""
    fenced: bool = False
    """Whether the network is unshared."""


class View:
    """Works out the mounts of a command."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._secrets = Secrets(settings.token_file, settings.state)
        system = _system_mounts()
        self._system_places = places_of(system, system=True)
        self._before = [*system, *(bind(Kind.READ_ONLY, place) for place in settings.bind_ro)]
        self._after = [
            Mount(Kind.PROC, b"/proc"),
            Mount(Kind.DEV, b"/dev"),
            Mount(Kind.TMP, b"/tmp"),
            *kernel_mounts(os.geteuid()),
            *firmware_cover(settings.bind_ro),
        ]
        self._kept: dict[tuple[object, ...], Layout] = {}

    def layout(self, directory: WorkingDirectory) -> Layout:
        """Return what a command sees that starts in a directory. Makes `.kd/home`, and `.agents` in main.

        Raises Uncoverable.
        """
        tree = bind(Kind.TREE, directory.root)
        agents = os.path.join(directory.root, AGENTS) if directory.tree == MAIN else b""
        if agents and not _made(agents):
            agents = b""
        home = home_of(directory)
        pins, covers = self._covers(tree)
        if agents and covers:
            pins, covers = ([one for one in some if not _below(one.place, agents)] for some in (pins, covers))
        key = (directory.root, agents, home, tuple(pins), tuple(covers))
        layout = self._kept.get(key)
        if layout is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            own = _tree_mounts(tree, agents, home)
            layout = self._kept[key] = Layout([*pins, *self._before, *self._after, *own, *covers])
        return layout

    def check(self, root: bytes) -> None:
        """Raise Uncoverable where main, or a tree that there may be, would show a secret."""
        agents = os.path.join(root, AGENTS)
        for cover in self._covers(bind(Kind.TREE, root))[1]:
            if cover.place == agents or os.path.dirname(cover.place) == agents:
                shown = os.fsdecode(cover.place)
                raise Uncoverable(
                    f"the token file or the server's state directory lies in {shown}, a working directory"
                )

    def _covers(self, tree: Mount) -> tuple[list[Mount], list[Mount]]:
        added = (bind(Kind.READ_ONLY, place) for place in self._settings.bind_ro)
        return self._secrets.covers([*self._system_places, *places_of([tree, *added])])


def _tree_mounts(tree: Mount, agents: bytes, home: bytes) -> list[Mount]:
    mounts = [tree]
    if home.startswith(tree.place):
        mounts += [bind(Kind.READ_ONLY, os.path.join(tree.place, KD)), bind(Kind.BIND, home)]
    return [*mounts, Mount(Kind.COVER, agents)] if agents else mounts


def _below(path: bytes, folder: bytes) -> bool:
    return (path + b"/").startswith(folder + b"/")


def _system_mounts() -> list[Mount]:
    mounts = []
    for place in (*SYSTEM, *sorted(map(os.fsencode, glob.glob("/lib*")))):
        if os.path.islink(place):
            mounts.append(Mount(Kind.LINK, place, os.readlink(place)))
        else:
            mounts.append(bind(Kind.READ_ONLY, place))
    return mounts + [bind(Kind.READ_ONLY, b"/etc/" + name.encode()) for name in ETC.split()]


def home_of(directory: WorkingDirectory) -> bytes:
    """Return HOME of a tree's commands: `.kd/home`, made where it is missing; `/tmp` where `.kd` is a link."""
    try:
        root = os.open(directory.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.close(open_kd(root, HOME))
        finally:
            os.close(root)
    except OSError:
        return b"/tmp"
    return os.path.join(directory.root, HOME)


def _made(path: bytes) -> bool:
    """Whether a directory is there, made if nothing was: trees made later must not be seen either."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        with contextlib.suppress(OSError):
            os.mkdir(path)
            return True
    return False
