"""The command line of bubblewrap (specification, section 9)."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import stat
from dataclasses import dataclass

from toolserver.processes.working_directory import WorkingDirectory
from toolserver.state.kd import open_kd
from toolserver.workspace.names import AGENTS, KD, MAIN

STATUS_FD = 8
"""Where bubblewrap writes the pid of the first process inside, and the exit code of a command that was executed."""
SYSTEM = (b"/usr", b"/bin", b"/sbin", b"/nix")
ETC = (
    "passwd group hosts resolv.conf nsswitch.conf localtime ssl ca-certificates pki alternatives "
    "ld.so.cache ld.so.conf ld.so.conf.d ld.so.preload"
)
HOME = KD + b"/home"
MAX_INTERPRETERS = 5
"""How many `#!` lines the kernel follows."""


class Unavailable(Exception):
    """Bubblewrap cannot work here. The text says why."""


@dataclass(frozen=True, slots=True)
class View:
    """What every command sees beside its own tree, and what none sees."""

    bind_ro: tuple[bytes, ...] = ()
    """More places, read-only."""
    token_file: bytes | None = None
    """Covered wherever it would be seen."""
    fenced: bool = False
    """Whether the network is unshared."""


class Capsule:
    """Makes the command line of bubblewrap. Raises Unavailable where it is not installed."""

    def __init__(self, view: View) -> None:
        found = shutil.which("bwrap")
        if found is None:
            raise Unavailable("bubblewrap is not installed (no bwrap on PATH)")
        self.program = os.fsencode(found)
        self._view = view
        self._fixed = self._fixed_options()

    def _fixed_options(self) -> list[bytes]:
        """Return the options that are the same for every command, but for the tree's."""
        options = [b"--unshare-all", b"--die-with-parent", b"--cap-drop", b"CAP_SYS_ADMIN"]
        if not self._view.fenced:
            options.append(b"--share-net")
        for place in (*SYSTEM, *sorted(map(os.fsencode, glob.glob("/lib*")))):
            if os.path.islink(place):
                options += [b"--symlink", os.readlink(place), place]
            else:
                options += [b"--ro-bind-try", place, place]
        for name in ETC.split():
            place = b"/etc/" + name.encode()
            options += [b"--ro-bind-try", place, place]
        options += [b"--proc", b"/proc", b"--dev", b"/dev", b"--tmpfs", b"/tmp"]
        for place in self._view.bind_ro:
            options += [b"--ro-bind-try", place, place]
        return options

    def argv(self, directory: WorkingDirectory, *, terminal: bool, status: bool = True) -> list[bytes]:
        """Return bubblewrap's argv for one tree, up to where the command's own begins. Makes `.kd/home`."""
        root = directory.root
        options = [self.program, *self._fixed, b"--bind", root, root]
        agents = os.path.join(root, AGENTS)
        if directory.tree == MAIN and _is_directory(agents):
            options += [b"--tmpfs", agents]
        folder = os.path.join(root, KD)
        home = home_of(directory)
        if home.startswith(folder):
            options += [b"--ro-bind", folder, folder, b"--bind", home, home]
        token = self._view.token_file
        if token is not None and self._shows(token, root):
            options += [b"--ro-bind-try", os.devnull.encode(), token]
        if status:
            options += [b"--json-status-fd", b"%d" % STATUS_FD]
        options += [b"--chdir", directory.path]
        # A terminal becomes the controlling one of a session that is made inside; else bubblewrap makes the session.
        return [*options, b"--"] if terminal else [*options, b"--new-session", b"--"]

    def _shows(self, path: bytes, root: bytes) -> bool:
        places = (root, *self._view.bind_ro)
        return os.path.exists(path) and any(path.startswith(place.rstrip(b"/") + b"/") for place in places)

    def problem(self, path: bytes, directory: WorkingDirectory, depth: int = 0) -> int:
        """Return why a program cannot be executed inside, as an errno; 0: nothing is known against it."""
        real = os.path.realpath(path)
        places = (directory.root, *map(os.path.realpath, SYSTEM), *self._view.bind_ro)
        hidden = os.path.join(directory.root, AGENTS) + b"/"
        if not any(real.startswith(place.rstrip(b"/") + b"/") for place in places) or (
            directory.tree == MAIN and real.startswith(hidden)
        ):
            return errno.ENOENT
        try:
            if not stat.S_ISREG(os.stat(real).st_mode) or not os.access(real, os.X_OK):
                return errno.EACCES
            with open(real, "rb") as file:
                first = file.readline(256)
        except OSError as error:
            return error.errno or errno.ENOENT
        words = first.removeprefix(b"#!").split()
        if not first.startswith(b"#!") or not words or depth == MAX_INTERPRETERS:
            return 0
        return self.problem(os.path.join(directory.path, words[0]), directory, depth + 1)


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


def _is_directory(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
