"""The capsule: commands run in bubblewrap and see their tree and the system's programs (specification, section 9)."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from toolserver.errors import BadArgument, ToolError
from toolserver.processes.command import Command
from toolserver.processes.group import descendants
from toolserver.processes.launch import Child, Launcher, Where
from toolserver.processes.program import DEFAULT_PATH, Program, candidates, cannot, not_started
from toolserver.processes.stdio import Ends, high
from toolserver.state.kd import KD, open_kd
from toolserver.workspace.paths import MAX_PATH
from toolserver.workspace.root import MAIN, TREES

STATUS_FD = 8
"""Where bubblewrap tells the pid of the first process inside, and that the command was really executed."""
TRIAL_S = 10.0
"""Seconds that the trial run may take."""
SYSTEM = (b"/usr", b"/bin", b"/sbin", b"/nix")
ETC = (
    "passwd group hosts resolv.conf nsswitch.conf localtime ssl ca-certificates pki alternatives "
    "ld.so.cache ld.so.conf ld.so.conf.d ld.so.preload"
)
HOME = KD + b"/home"
MAX_INTERPRETERS = 5
"""How many `#!` lines the kernel follows."""


NO_INPUT = (b"setsid", b"-c", b"sh", b"-c", b'exec "$@" </dev/null', b"sh")
"""Takes the controlling terminal, which it needs as its input for that, and runs a command without input."""


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
    """Makes the command line of bubblewrap. Raises Unavailable when it is not installed or a trial run fails."""

    def __init__(self, view: View) -> None:
        found = shutil.which("bwrap")
        if found is None:
            raise Unavailable("bubblewrap is not installed (no bwrap on PATH)")
        self.program = os.fsencode(found)
        self._view = view
        self._fixed = self._fixed_options()
        self._try()

    def _try(self) -> None:
        """Run `true` with the real options."""
        with tempfile.TemporaryDirectory(prefix="toolserver-trial-") as made:
            root = os.fsencode(os.path.realpath(made))
            fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
            try:
                argv = self.argv(Where(MAIN, root, b"", fd), terminal=False, status=False)
            finally:
                os.close(fd)
            try:
                done = subprocess.run(
                    [*argv, b"true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_S, check=False
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Unavailable(f"bubblewrap does not run: {error}") from error
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip().replace("\n", "; ")
            raise Unavailable(f"bubblewrap does not work here: {reason or f'exit status {done.returncode}'}")

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

    def argv(self, where: Where, *, terminal: bool, status: bool = True) -> list[bytes]:
        """Return bubblewrap's argv for one tree, up to where the command's own begins. Makes `.kd/home`."""
        root = where.root
        options = [self.program, *self._fixed, b"--bind", root, root]
        agents = os.path.join(root, TREES.encode())
        if where.tree == MAIN and _is_directory(agents):
            options += [b"--tmpfs", agents]
        folder = os.path.join(root, KD)
        home = home_of(where)
        if home.startswith(folder):
            options += [b"--ro-bind", folder, folder, b"--bind", home, home]
        token = self._view.token_file
        if token is not None and self._shows(token, root):
            options += [b"--ro-bind-try", os.devnull.encode(), token]
        if status:
            options += [b"--json-status-fd", b"%d" % STATUS_FD]
        options += [b"--chdir", where.path]
        # A terminal becomes the controlling one of a session that is made inside; else bubblewrap makes the session.
        return [*options, b"--"] if terminal else [*options, b"--new-session", b"--"]

    def _shows(self, path: bytes, root: bytes) -> bool:
        places = (root, *self._view.bind_ro)
        return os.path.exists(path) and any(path.startswith(place.rstrip(b"/") + b"/") for place in places)

    def problem(self, path: bytes, where: Where, depth: int = 0) -> int:
        """Return why a program cannot be executed inside, as an errno; 0: nothing is known against it."""
        real = os.path.realpath(path)
        places = (where.root, *map(os.path.realpath, SYSTEM), *self._view.bind_ro)
        hidden = os.path.join(where.root, TREES.encode()) + b"/"
        if not any(real.startswith(place.rstrip(b"/") + b"/") for place in places) or (
            where.tree == MAIN and real.startswith(hidden)
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
        return self.problem(os.path.join(where.path, words[0]), where, depth + 1)


def home_of(where: Where) -> bytes:
    """Return HOME of a tree's commands: `.kd/home`, made where it is missing; `/tmp` where `.kd` is a link."""
    try:
        root = os.open(where.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.close(open_kd(root, HOME))
        finally:
            os.close(root)
    except OSError:
        return b"/tmp"
    return os.path.join(where.root, HOME)


def _is_directory(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


class CapsuleChild(Child):
    """Bubblewrap and what runs inside: a PID namespace, whose first process is told on the status descriptor."""

    __slots__ = ("_early", "_init", "_status", "_told")

    def __init__(self, pid: int, status: int) -> None:
        super().__init__(pid)
        self._status = status
        self._told = b""
        self._init = 0
        self._early = False

    def _read(self) -> list[dict[str, int]]:
        """Return what bubblewrap has told so far."""
        try:
            while self._status >= 0 and (got := os.read(self._status, 4096)):
                self._told += got
        except BlockingIOError:
            pass
        return [json.loads(line) for line in self._told.splitlines() if line.endswith(b"}")]

    def _first(self) -> int:
        """Return the pid of the namespace's first process, 0 before there is one."""
        if not self._init:
            self._init = next((told["child-pid"] for told in self._read() if "child-pid" in told), 0)
        return self._init

    def executed(self) -> bool:
        """Tell whether the command was really executed; to be asked after the exit."""
        return any("exit-code" in told for told in self._read())

    def members(self) -> list[int]:
        """Return who lives inside, the first process left out."""
        first = self._first()
        return descendants(first) if first else []

    def terminate(self) -> None:
        """Send TERM to everything inside, once, and not to bubblewrap, which would kill it at once."""
        inside = self.members()
        for pid in inside:
            _send(pid, signal.SIGTERM)
        if not inside:  # the command has not begun: it dies of the TERM that it would have got
            self._early = True
            self.kill()

    def status(self) -> int:
        code = super().status()
        return 128 + signal.SIGTERM if self._early and code == 128 + signal.SIGKILL else code

    def kill(self) -> None:
        """Send KILL to the namespace's first process, with which all of it ends, and to bubblewrap."""
        if self._first():
            _send(self._first(), signal.SIGKILL)
        super().kill()

    def reap(self) -> None:
        self._read()
        os.close(self._status)
        self._status = -1
        super().reap()


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or made itself another user's
        os.kill(pid, number)


class CapsuleLauncher(Launcher):
    """Starts every command in a capsule."""

    def __init__(self, environment: Callable[[], dict[bytes, bytes]], capsule: Capsule) -> None:
        super().__init__(environment)
        self._capsule = capsule
        self._status = self._write = -1
        self._takes_input = False

    def home(self, where: Where) -> bytes | None:
        return home_of(where)

    def start(self, command: Command, where: Where, *, takes_input: bool) -> tuple[Child, Ends]:
        """Run a command in a capsule, as `Launcher.start`. ToolError also for a program that is not seen inside."""
        if where.tree == MAIN and where.cwd.startswith(TREES.encode() + b"/"):
            raise BadArgument(f"cwd: in main's capsule {TREES} is covered; name the working directory as `tree`")
        if len(where.path) >= MAX_PATH:
            raise BadArgument(f"cwd: {where.path[:64].decode(errors='replace')}… is too long a path for the capsule")
        if not isinstance(command.cmd, str):
            self._check(command, where)
        try:
            self._status, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            self._write = high(write)
        except OSError as error:
            raise not_started(command, error) from error
        self._takes_input = takes_input
        try:
            return super().start(command, where, takes_input=takes_input)
        except BaseException:
            os.close(self._status)
            raise
        finally:
            os.close(self._write)

    def wrap(self, program: Program, command: Command, where: Where) -> Program:
        argv = self._capsule.argv(where, terminal=command.terminal is not None)
        if command.terminal is not None:
            argv += [b"setsid", b"-c"] if self._takes_input else list(NO_INPUT)
        argv = [*argv, *program.argv]
        return Program(tuple(argv), program.env, (*program.passed, (self._write, STATUS_FD)), own_terminal=True)

    def child(self, pid: int, forget: Callable[[], None] | None) -> Child:
        return CapsuleChild(pid, self._status)

    def noted(self) -> None:
        """A capsule ends with the server by itself."""
        return

    def _check(self, command: Command, where: Where) -> None:
        """Raise ToolError for a program that could not be executed inside."""
        name = os.fsencode(command.cmd[0])
        worst = errno.ENOENT
        for path in candidates(name, self.variables(command, where).get(b"PATH", DEFAULT_PATH)):
            problem = self._capsule.problem(os.path.join(where.path, path), where)
            if not problem:
                return
            worst = problem if problem != errno.ENOENT else worst
        raise ToolError(cannot(name.decode(errors="replace"), worst))
