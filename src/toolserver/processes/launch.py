"""From a command to a running child."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from toolserver._fast.spawn import spawn
from toolserver.errors import BadArgument, ToolError
from toolserver.processes.command import Command
from toolserver.processes.group import members
from toolserver.processes.program import DEFAULT_PATH, Program, candidates, cannot, not_started, program_of
from toolserver.processes.restart.children import Children
from toolserver.processes.stdio import Ends, high

_TRY_NEXT = (errno.ENOENT, errno.EACCES, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class Where:
    """The directory a command starts in: the tree's name and root, `cwd` link-free and relative to it, open as `fd`."""

    tree: str
    root: bytes
    cwd: bytes
    fd: int

    @property
    def path(self) -> bytes:
        """The absolute path of the directory."""
        return os.path.join(self.root, self.cwd) if self.cwd else self.root


class Child:
    """A child process and its group. After the exit its holder calls `reap` once; until then its pid is its own."""

    __slots__ = ("_forget", "pid", "pidfd")

    def __init__(self, pid: int, forget: Callable[[], None] | None = None) -> None:
        """`forget` is called once it has ended and is out of the process table."""
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self._forget = forget

    def terminate(self) -> None:
        """Send TERM to the whole group, as far as we may."""
        with contextlib.suppress(PermissionError):
            os.killpg(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Send KILL to the whole group, as far as we may."""
        with contextlib.suppress(PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def status(self) -> int:
        """Return the exit code of an exited child, 128 + N after signal N. It stays a zombie, and its group its own."""
        found = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT)
        assert found is not None
        return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status

    def members(self) -> list[int]:
        """Return who else lives in the group. Reads /proc: call it in a thread."""
        return members(self.pid)

    def reap(self) -> None:
        """Take the exited child out of the process table."""
        os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
        os.close(self.pidfd)
        if self._forget is not None:
            self._forget()


class Launcher:
    """Starts commands as they are. A capsule overrides `wrap`, and `child` where its processes end in another way."""

    def __init__(self, environment: Callable[[], dict[bytes, bytes]]) -> None:
        self._environment = environment
        self.children: Children | None = None
        """Where children are noted that do not end with the server by themselves."""
        self._null = high(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def close(self) -> None:
        os.close(self._null)

    def wrap(self, program: Program, command: Command, where: Where) -> Program:
        """Return what is executed in place of `program`."""
        return program

    def child(self, pid: int, forget: Callable[[], None] | None) -> Child:
        """Take a process that was started as a child; `forget` is for its end."""
        return Child(pid, forget)

    def noted(self) -> Children | None:
        """Return where children are noted that do not end with the server by themselves."""
        return self.children

    def home(self, where: Where) -> bytes | None:
        """Return the HOME of a tree's commands; None: the server's."""
        return None

    def start(self, command: Command, where: Where, *, takes_input: bool) -> tuple[Child, Ends]:
        """Run a command and answer it with our ends of its streams.

        It blocks for the time of one exec, about 0.1 ms. BadArgument: longer than the kernel takes; ToolError: it
        cannot be executed. Nothing runs then. Call it in the main thread: a child may be told to end with its thread.
        """
        ends = Ends()
        script = -1
        try:
            program, script = program_of(command, self.variables(command, where))
            program = self.wrap(program, command, where)
            tty = ends.open(self._null, command.terminal, takes_input, by_itself=program.own_terminal)
            return self._run(program, where, ends, tty), ends
        except OSError as error:
            ends.close()
            raise not_started(command, error) from error
        except BaseException:
            ends.close()
            raise
        finally:
            ends.close_theirs()
            if script >= 0:
                os.close(script)

    def variables(self, command: Command, where: Where) -> dict[bytes, bytes]:
        env = self._environment()
        env[b"PWD"] = where.path
        home = self.home(where)
        if home is not None:
            env[b"HOME"] = home
        if command.terminal is not None:
            env |= {b"PAGER": b"cat", b"GIT_PAGER": b"cat"}
            env.setdefault(b"TERM", b"xterm-256color")
        for name, value in command.env.items():
            env[name.encode()] = value.encode()
        return env

    def _run(self, program: Program, where: Where, ends: Ends, tty: tuple[int, bytes] | None) -> Child:
        notes = self.noted()
        if notes is None:
            return self._taken(self._spawn(program, where, ends, tty), None)
        entry = notes.starting(ends.pipe)
        try:
            pid = self._spawn(program, where, ends, tty)
            notes.started(entry, pid)
            return self._taken(pid, partial(notes.ended, entry))
        except BaseException:
            notes.not_started(entry)
            raise

    def _taken(self, pid: int, forget: Callable[[], None] | None) -> Child:
        try:
            return self.child(pid, forget)
        except OSError:  # another thread has taken the descriptor that was reserved
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def _spawn(self, program: Program, where: Where, ends: Ends, tty: tuple[int, bytes] | None) -> int:
        name = program.argv[0]
        env = [b"%s=%s" % variable for variable in program.env.items()]
        fds = [*ends.theirs, *program.passed]
        paths = candidates(name, program.env.get(b"PATH", DEFAULT_PATH))
        worst = 0
        for path in paths:
            if len(paths) > 1 and not os.access(path, os.X_OK, dir_fd=where.fd):
                continue
            reserved = os.dup(self._null)  # so that a command that runs can always be held on to
            try:
                return spawn(path, program.argv, env, where.fd, fds, tty)
            except OSError as error:
                if error.errno == errno.E2BIG:
                    raise BadArgument("cmd: the argv and env together are longer than the kernel takes") from error
                worst = error.errno or worst
                if worst not in _TRY_NEXT:
                    break
            finally:
                os.close(reserved)
        if not worst:  # none can be executed, but some may be there
            there = any(os.access(path, os.F_OK, dir_fd=where.fd) for path in paths)
            worst = errno.EACCES if there else errno.ENOENT
        raise ToolError(cannot(name.decode(errors="replace"), worst))
