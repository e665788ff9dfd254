"""What is really executed for a command: a shell that is handed its text, or a program found on PATH."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass

from toolserver.errors import ToolError
from toolserver.processes.command import Command
from toolserver.processes.stdio import above_given

SCRIPT_FD = 9
"""Where a shell finds the text of its command; one digit, since POSIX shells redirect no other number."""
SHORT = 4096
"""Bytes of a shell's text that are handed over in a variable; longer ones in a file in memory, which takes longer."""
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
    text = command.cmd.encode()
    if len(text) <= SHORT:
        return _shell_with_variable(text, env), -1
    script = _script(text)
    return Program(_shell(b". /dev/fd/%d" % SCRIPT_FD), env, ((script, SCRIPT_FD),)), script


def _shell(text: bytes) -> tuple[bytes, ...]:
    """Return a shell that runs the text with `$0` as a shell's own command has it, whatever PATH it is given.

    The text is never the command's own: that must not stand on a command line, where `pkill -f` would find it.
    """
    return b"/bin/sh", b"-c", text, b"sh"


def _shell_with_variable(text: bytes, env: dict[bytes, bytes]) -> Program:
    """Return a shell that runs a text from a variable, of which the commands it runs know nothing."""
    name = b"_toolserver_command"
    while name in env:
        name += b"_"
    return Program(_shell(b'eval "unset %s;$%s"' % (name, name)), env | {name: text})


def _script(text: bytes) -> int:
    """Return a descriptor of the text, for the shell to read with its `.`.

    So the text may be of any length and stdin stays free. The first words close the descriptor: the shell has a copy
    of its own by then, and the commands it runs get none.
    """
    fd = above_given(os.memfd_create("command", os.MFD_CLOEXEC))
    data = memoryview(b"exec %d<&-;%s" % (SCRIPT_FD, text))
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BaseException:
        os.close(fd)
        raise
    return fd


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
