"""From a command to a running child."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from functools import partial

from toolserver._fast.spawn import spawn
from toolserver.errors import BadArgument, ToolError
from toolserver.processes.child import Child
from toolserver.processes.command import Command
from toolserver.processes.program import DEFAULT_PATH, Program, candidates, cannot, not_started, program_of
from toolserver.processes.restart.children import Children
from toolserver.processes.stdio import ControllingTerminal, Stdio, above_given
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.processes.wrapper import Launch, Wrapper

_TRY_NEXT = (errno.ENOENT, errno.EACCES, errno.ENOTDIR)


class Launcher:
    """Starts commands, each in the wrapper that it is given."""

    def __init__(
        self,
        environment: Callable[[], dict[bytes, bytes]],
        wrapper: Wrapper | None = None,
        children: Children | None = None,
    ) -> None:
        """`environment` returns the variables of a command; without a wrapper commands run as they are.

        `children` notes those that may outlive a killed server.
        """
        self._environment = environment
        self._wrapper = Wrapper() if wrapper is None else wrapper
        self._children = children
        self._null = above_given(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def close(self) -> None:
        os.close(self._null)

    def start(self, command: Command, directory: WorkingDirectory, *, takes_input: bool) -> tuple[Child, Stdio]:
        """Run a command; return the child and the server's ends of its streams.

        Blocks for the time of one exec, about 0.1 ms. Raises BadArgument for what is longer than the kernel takes and
        ToolError for what cannot be executed; nothing runs then. Call it in the main thread: a child may be told to
        end with the thread that started it.
        """
        launch = Launch(command, directory, takes_input, self._null)
        try:
            variables = self._variables(command, directory)
            program, script = program_of(command, variables)
            if script >= 0:
                launch.lent.append(script)
            program = self._wrapper.wrap(program, launch)
            tty = launch.stdio.open(launch.null, command.terminal, takes_input, own_terminal=program.own_terminal)
            return self._run(program, launch, tty), launch.stdio
        except BaseException as error:
            launch.stdio.close()
            if launch.status >= 0:
                os.close(launch.status)
            if isinstance(error, OSError):
                raise not_started(command, error) from error
            raise
        finally:
            launch.stdio.close_child_ends()
            for fd in launch.lent:
                os.close(fd)

    def _variables(self, command: Command, directory: WorkingDirectory) -> dict[bytes, bytes]:
        env = self._environment()
        env[b"PWD"] = directory.path
        home = self._wrapper.home(directory)
        if home is not None:
            env[b"HOME"] = home
        if command.terminal is not None:
            env |= {b"PAGER": b"cat", b"GIT_PAGER": b"cat"}
            env.setdefault(b"TERM", b"xterm-256color")
        for name, value in command.env.items():
            env[name.encode()] = value.encode()
        return env

    def _run(self, program: Program, launch: Launch, tty: ControllingTerminal) -> Child:
        notes = self._children if self._wrapper.outlives_server else None
        if notes is None:
            return self._child(_spawn(program, launch, tty), launch, None)
        entry = notes.starting(launch.stdio.pipe)
        try:
            pid = _spawn(program, launch, tty)
            notes.started(entry, pid)
            return self._child(pid, launch, partial(notes.ended, entry))
        except BaseException:
            notes.not_started(entry)
            raise

    def _child(self, pid: int, launch: Launch, forget: Callable[[], None] | None) -> Child:
        try:
            return self._wrapper.child(pid, launch, forget)
        except OSError:  # another thread has taken the descriptor that `_spawn` had reserved
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise


def _spawn(program: Program, launch: Launch, tty: ControllingTerminal) -> int:
    """Execute a program, the first that can be on its PATH; return the pid. Raises BadArgument, ToolError, OSError."""
    name, fd = program.argv[0], launch.directory.fd
    env = [b"%s=%s" % variable for variable in program.env.items()]
    fds = [*launch.stdio.child_fds, *program.passed]
    paths = candidates(name, program.env.get(b"PATH", DEFAULT_PATH))
    worst = 0
    for path in paths:
        if len(paths) > 1 and not os.access(path, os.X_OK, dir_fd=fd):
            continue
        reserved = os.dup(launch.null)  # so that there is a descriptor for the pidfd of a command that runs
        try:
            return spawn(path, program.argv, env, fd, fds, tty)
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise BadArgument("cmd: the argv and env together are longer than the kernel takes") from error
            worst = error.errno or worst
            if worst not in _TRY_NEXT:
                break
        finally:
            os.close(reserved)
    if not worst:  # none can be executed, but some may be there
        there = any(os.access(path, os.F_OK, dir_fd=fd) for path in paths)
        worst = errno.EACCES if there else errno.ENOENT
    raise ToolError(cannot(name.decode(errors="replace"), worst))
