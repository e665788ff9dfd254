"""What is really executed for a command: a shell that is handed its text, or a program found on PATH."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass

from toolserver.errors import ToolError
from toolserver.processes.command import Command
from toolserver.processes.shell import shell

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Program:
    """What is executed: `argv[0]`, looked for on the PATH of `env`; `passed` are (here, there) numbers."""

    argv: tuple[bytes, ...]
    env: Mapping[bytes, bytes]
    passed: tuple[tuple[int, int], ...] = ()
    own_terminal: bool = False
    """Whether it makes its standard input, a terminal then, the controlling one by itself."""


def program_of(command: Command, env: dict[bytes, bytes]) -> tuple[Program, int]:
    """Return what is executed, and a descriptor to close once it is; -1: none."""
    if not isinstance(command.cmd, str):
        return Program(tuple(map(os.fsencode, command.cmd)), env), -1
    started = shell(command.cmd.encode(), env)
    return Program(started.argv, started.env, started.passed), started.script


def not_started(command: Command, error: OSError) -> ToolError:
    """Return why the system does not let a command start."""
    return ToolError(f"{command.shown[:200]}: {(error.strerror or 'cannot be started').lower()}")


def candidates(name: bytes, path: bytes) -> list[bytes]:
    if b"/" in name:
        return [name]
    return [os.path.join(folder or b".", name) for folder in path.split(b":")]


def cannot(name: str, code: int) -> str:
    if code == errno.ENOENT:
        return (
            f"{name}: no such file, or its interpreter is missing"
            if "/" in name
            else f"{name}: no such program on PATH"
        )
    if code == errno.EACCES:
        return f"{name}: cannot be executed: permission denied"
    return f"{name}: cannot be executed: {os.strerror(code).lower()}"
