"""What a caller asks to be run, checked against what the kernel can take."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolserver.errors import BadArgument

MAX_STRING = 128 * 1024 - 1
"""Bytes of one argument or one `NAME=value`, Linux's MAX_ARG_STRLEN less the NUL."""
MAX_ARGUMENTS = 8000
"""Entries of an argv; bubblewrap takes 9000 together with its own."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """The size of a pseudo-terminal, in characters."""

    cols: int = 80
    rows: int = 24


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it was asked for: a text for `sh` or an argv, variables beside the server's, a terminal or none."""

    cmd: str | tuple[str, ...]
    env: Mapping[str, str]
    terminal: Terminal | None = None

    @property
    def shown(self) -> str:
        """The text as given, or the argv so that a shell reads the same words."""
        return self.cmd if isinstance(self.cmd, str) else shlex.join(self.cmd)


def checked(cmd: str | Sequence[str], env: Mapping[str, str], terminal: Terminal | None) -> Command:
    """Return the command, or raise BadArgument that names what no kernel takes: `cmd`, `cmd[2]` or `env.NAME`."""
    if not cmd:
        raise BadArgument("cmd: expected a string or an array that is not empty")
    for name, value in env.items():
        _check_string(f"{name}={value}", f"env.{name[:64]}")
        if not name or "=" in name:
            raise BadArgument(f"env.{name[:64]}: a variable's name is not empty and holds no =")
    if isinstance(cmd, str):
        if "\0" in cmd:
            raise BadArgument("cmd: a command holds no NUL byte")
        return Command(cmd, env, terminal)
    if len(cmd) > MAX_ARGUMENTS:
        raise BadArgument(f"cmd: expected an array of at most {MAX_ARGUMENTS} entries, not of {len(cmd)}")
    if not cmd[0]:
        raise BadArgument("cmd[0]: expected the name of a program, not an empty string")
    for index, word in enumerate(cmd):
        _check_string(word, f"cmd[{index}]")
    return Command(cmd if isinstance(cmd, tuple) else tuple(cmd), env, terminal)


def _check_string(text: str, place: str) -> None:
    if "\0" in text:
        raise BadArgument(f"{place}: a string for a program holds no NUL byte")
    if len(text) * 4 > MAX_STRING and len(text.encode(errors="replace")) > MAX_STRING:
        raise BadArgument(f"{place}: expected a string of at most {MAX_STRING} bytes, the kernel takes no longer one")
