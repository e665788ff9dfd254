"""The shell that runs a command given as text: `sh -c TEXT` whose text stands on no command line.

On a command line `pkill -f` would find it, and the kernel limits its length. So the command line has a placeholder,
which reads the text from a variable or from a file in memory. Alone, it would add `eval:` or the file's name to the
shell's messages, and the shell would wait for a last command that `sh -c` executes in its place. A small library that
is loaded into the shell (`_fast/shelltext.c`) therefore replaces the placeholder by the text before the shell reads it.
Where that library cannot be loaded, as into a static shell, the placeholder does the work.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass

import toolserver._fast
from toolserver.processes.stdio import above_given

SHELL = b"/bin/sh"
TEXT_FD = 9
"""Where a shell finds a long text; one digit, since POSIX shells redirect no other number."""
LIBRARY_FD = 7
"""Where the dynamic linker finds the library, which a capsule does not show."""
SHORT = 4096
"""Bytes of a text that are passed in a variable; longer ones in a file in memory, which takes longer."""
_PRELOAD = b"LD_PRELOAD"
_LIBRARY = b"/dev/fd/%d" % LIBRARY_FD


@dataclass(frozen=True, slots=True)
class Shell:
    """What is executed for a text: an argv, its environment, and descriptors as (here, there) numbers."""

    argv: tuple[bytes, ...]
    env: Mapping[bytes, bytes]
    passed: tuple[tuple[int, int], ...]
    script: int
    """A descriptor to close once the shell has been started; -1: none."""


def shell(text: bytes, env: Mapping[bytes, bytes]) -> Shell:
    """Return a shell that runs the text with this environment, which its commands get unchanged."""
    return _shell(text, env, _library())


def _shell(text: bytes, env: Mapping[bytes, bytes], library: int) -> Shell:
    variables = dict(env)
    passed: tuple[tuple[int, int], ...] = ()
    if library >= 0:
        passed = ((library, LIBRARY_FD),)
        variables[_PRELOAD] = b"%s:%s" % (env[_PRELOAD], _LIBRARY) if _PRELOAD in env else _LIBRARY
    if len(text) > SHORT:
        script = _file(text)
        return Shell(_argv(b". /dev/fd/%d" % TEXT_FD), variables, (*passed, (script, TEXT_FD)), script)
    name = b"_toolserver_command"
    while name in env:
        name += b"_"
    variables[name] = text
    return Shell(_argv(b'eval "unset %s;$%s"' % (name, name)), variables, passed, -1)


def _argv(placeholder: bytes) -> tuple[bytes, ...]:
    """Return `sh -c PLACEHOLDER`, with `$0` as the shell's own; `/bin/sh` whatever PATH the command is given."""
    return SHELL, b"-c", b"exec %d<&-;%s" % (LIBRARY_FD, placeholder), b"sh"


def _file(text: bytes) -> int:
    """Return a descriptor of a file in memory with the text.

    Its first words close the descriptor, for the placeholder's `.`: the shell has a copy of its own by then, and the
    commands that it runs inherit none.
    """
    fd = above_given(os.memfd_create("command", os.MFD_CLOEXEC))
    data = memoryview(b"exec %d<&-;%s" % (TEXT_FD, text))
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BaseException:
        os.close(fd)
        raise
    return fd


@functools.cache
def _library() -> int:
    """Return a descriptor of the library, kept open; -1 where a shell does not load it."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for folder in toolserver._fast.__path__:
        with contextlib.suppress(OSError):
            fd = above_given(os.open(os.path.join(folder, f"shelltext{suffix}"), os.O_RDONLY | os.O_CLOEXEC))
            if _is_loaded(fd):
                return fd
            os.close(fd)
    return -1


def _is_loaded(library: int) -> bool:
    """Tell whether a shell with the library prints what `sh -c` prints: its environment, and a message of its own."""
    text = b'echo "${LD_PRELOAD-none}"; no-such-program'
    return _printed(_shell(text, {}, library)) == _printed(Shell((SHELL, b"-c", text, b"sh"), {}, (), -1))


def _printed(shell: Shell) -> bytes:
    """Run a shell to its end and return what it printed on both streams."""
    fd = above_given(os.memfd_create("trial", os.MFD_CLOEXEC))
    try:
        pairs = ((fd, 1), (fd, 2), *shell.passed)
        actions = [(os.POSIX_SPAWN_DUP2, here, there) for here, there in pairs]
        pid = os.posix_spawn(shell.argv[0], shell.argv, shell.env, file_actions=actions)
        os.waitpid(pid, 0)
        return os.pread(fd, 4096, 0)
    finally:
        os.close(fd)
