"""Runs every command in a capsule."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from toolserver.errors import BadArgument, ToolError
from toolserver.processes.capsule.bubblewrap import STATUS_FD, Capsule, blank_descriptors
from toolserver.processes.capsule.child import CapsuleChild
from toolserver.processes.capsule.mounts import Layout
from toolserver.processes.capsule.programs import problem
from toolserver.processes.capsule.secrets import Uncoverable
from toolserver.processes.capsule.view import home_of
from toolserver.processes.child import Child
from toolserver.processes.program import DEFAULT_PATH, Program, candidates, cannot
from toolserver.processes.stdio import above_given
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.processes.wrapper import Launch, Wrapper
from toolserver.workspace.names import AGENTS, MAIN
from toolserver.workspace.paths import MAX_PATH

TERMINAL_WITH_INPUT = (b"setsid", b"-c")
"""Makes the terminal on standard input the controlling one."""
TERMINAL_WITHOUT_INPUT = (*TERMINAL_WITH_INPUT, b"sh", b"-c", b'exec "$@" </dev/null', b"sh")
"""The same, then runs a command without input."""
LOADER = (b"LD_", b"GLIBC_TUNABLES")
"""How variables begin that tell a dynamic linker what to load: bubblewrap, which runs outside, must not see them."""


class CapsuleWrapper(Wrapper):
    """Wraps commands in bubblewrap."""

    outlives_server = False

    def __init__(self, capsule: Capsule) -> None:
        self._capsule = capsule

    def home(self, directory: WorkingDirectory) -> bytes | None:
        return home_of(directory)

    def wrap(self, program: Program, launch: Launch) -> Program:
        """Raises BadArgument for a directory that cannot be entered inside, ToolError for a program not seen there."""
        directory, terminal = launch.directory, launch.command.terminal is not None
        _check_directory(directory)
        try:
            layout = self._capsule.view.layout(directory)
        except Uncoverable as error:
            raise ToolError(f"commands cannot run here: {error}") from error
        if not isinstance(launch.command.cmd, str):
            _check_program(program, layout, directory)
        argv = self._capsule.argv(layout, directory, terminal=terminal)
        env = dict(program.env)
        for name in [name for name in env if name.startswith(LOADER)]:
            argv[1:1] = [b"--setenv", name, env.pop(name)]
        if terminal:
            argv += TERMINAL_WITH_INPUT if launch.takes_input else TERMINAL_WITHOUT_INPUT
        launch.status, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        write = above_given(write)
        launch.lent.append(write)
        blank = ((launch.null, number) for number in blank_descriptors(layout))
        passed = (*program.passed, (write, STATUS_FD), *blank)
        return Program((*argv, *program.argv), env, passed, own_terminal=True)

    def child(self, pid: int, launch: Launch, forget: Callable[[], None] | None) -> Child:
        return CapsuleChild(pid, launch.status)


def _check_directory(directory: WorkingDirectory) -> None:
    if directory.tree == MAIN and directory.cwd.startswith(AGENTS + b"/"):
        covered = AGENTS.decode()
        raise BadArgument(f"cwd: in main's capsule {covered} is covered; name the working directory as `tree`")
    if len(directory.path) >= MAX_PATH:
        shown = directory.path[:64].decode(errors="replace")
        raise BadArgument(f"cwd: {shown}… is too long a path for the capsule")


def _check_program(program: Program, layout: Layout, directory: WorkingDirectory) -> None:
    name = program.argv[0]
    worst = errno.ENOENT
    for candidate in candidates(name, program.env.get(b"PATH", DEFAULT_PATH)):
        code = problem(candidate, layout, directory.path)
        if not code:
            return
        worst = code if code != errno.ENOENT else worst
    raise ToolError(cannot(name.decode(errors="replace"), worst))
