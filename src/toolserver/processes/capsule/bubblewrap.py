"""The command line of bubblewrap (specification, section 9)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from toolserver.processes.capsule.mounts import Kind, Layout, Mount
from toolserver.processes.capsule.view import Settings, View
from toolserver.processes.working_directory import WorkingDirectory

STATUS_FD = 8
"""Where bubblewrap writes the pid of the first process inside, and the exit code of a command that was executed."""
BLANK_FDS = (3, 4, 5, 6)
"""Descriptors of nothing, each the content of a blank file."""

_OPTIONS = {
    Kind.TREE: b"--bind",  # of this one alone: a sweep of old capsules tells the tree by it
    Kind.BIND: b"--bind-try",
    Kind.READ_ONLY: b"--ro-bind-try",
    Kind.LINK: b"--symlink",
    Kind.COVER: b"--tmpfs",
    Kind.PROC: b"--proc",
    Kind.DEV: b"--dev",
    Kind.TMP: b"--tmpfs",
}


class Unavailable(Exception):
    """Bubblewrap cannot work here. The text says why."""


class Capsule:
    """Makes the command line of bubblewrap. Raises Unavailable where it is not installed."""

    def __init__(self, settings: Settings) -> None:
        found = shutil.which("bwrap")
        if found is None:
            raise Unavailable("bubblewrap is not installed (no bwrap on PATH)")
        self.program = os.fsencode(found)
        self.view = View(settings)
        self._first = [self.program, b"--unshare-all", b"--die-with-parent", b"--cap-drop", b"ALL"]
        if not settings.fenced:
            self._first.append(b"--share-net")

    def argv(self, layout: Layout, directory: WorkingDirectory, *, terminal: bool, status: bool = True) -> list[bytes]:
        """Return bubblewrap's argv up to where the command's own begins.

        It expects the descriptors of `blank_descriptors` to be open and empty, with `status` also STATUS_FD.
        """
        argv = [*self._first, *options(layout)]
        if status:
            argv += [b"--json-status-fd", b"%d" % STATUS_FD]
        argv += [b"--chdir", directory.path]
        # A terminal becomes the controlling one of a session that is made inside; else bubblewrap makes the session.
        return [*argv, b"--"] if terminal else [*argv, b"--new-session", b"--"]


def blank_descriptors(layout: Layout) -> tuple[int, ...]:
    """Return the descriptors that bubblewrap reads the blank files of a layout from."""
    return BLANK_FDS[: sum(mount.kind is Kind.BLANK for mount in layout.mounts)]


def options(layout: Layout) -> list[bytes]:
    """Return the options that mount a layout. Covers are made read-only last, since places may lie below them."""
    blank = iter(BLANK_FDS)
    words: list[bytes] = []
    for mount in layout.mounts:
        words += _option(mount, blank)
    for mount in layout.mounts:
        if mount.kind is Kind.COVER:
            words += [b"--remount-ro", mount.place]
    return words


def _option(mount: Mount, blank: Iterator[int]) -> list[bytes]:
    if mount.kind is Kind.BLANK:
        return [b"--ro-bind-data", b"%d" % next(blank), mount.place]
    option = _OPTIONS[mount.kind]
    return [option, mount.source, mount.place] if mount.source else [option, mount.place]
