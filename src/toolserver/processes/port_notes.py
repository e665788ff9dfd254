"""The note on a process that failed because its port is taken."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import re2

if TYPE_CHECKING:
    from toolserver.processes.process import Process

SEEN = 64 * 1024
"""Bytes at the end of the output, and at the beginning of the command, that are looked at."""
TRIES = 16
"""Numbers that one pattern may find in a line before it is given up: those that are no port."""

# Commands and output are anybody's text, so the patterns are RE2's, whose time grows with the text and never faster.
re2.set_fallback_notification(re2.FALLBACK_EXCEPTION)
_TAKEN = re2.compile(
    rb"(?i)EADDRINUSE|AddrInUse|address (?:is )?already in use|port(?: \d+)? is (?:already )?in use"
    rb"|already (?:running|listening) on port"
)
_IN_MESSAGE = [
    re2.compile(b"(?i)" + pattern)
    for pattern in (
        rb"\bport[ :=]+(\d{1,5})\b",
        rb"(?:\d+\.\d+\.\d+\.\d+|\]|::|\*|\blocalhost):(\d{1,5})\b",
        rb"\(['\"][^'\"]*['\"], (\d{1,5})[,)]",
        rb"(?:^|\s):(\d{1,5})\b",
        rb"\b[a-z][\w-]*(?:\.[\w-]+)+:(\d{1,5})\b",
    )
]
_IN_COMMAND = [
    re2.compile(pattern)
    for pattern in (
        rb"--?[\w-]*port[ =]['\"]?(\d{1,5})\b",
        rb"\b[A-Z_]*PORT=['\"]?(\d{1,5})\b",
        rb"(?:^|\s)-[pPl] ?['\"]?(?:[\w.]*:)?(\d{1,5})\b",
        rb"(?:\d+\.\d+\.\d+\.\d+|\]|\blocalhost):(\d{1,5})\b",
        rb"(?:^|\s):(\d{1,5})\b",
        rb"http\.server (?:-\S+ )*(\d{1,5})\b",
    )
]


def port_note(process: Process) -> str | None:
    """Return `port N in use` for a bind failure in what an exited process printed, else None.

    A port in the message counts before one in the command.
    """
    ring = (process.stderr if process.command.terminal is None else process.stdout).ring
    lines = ring.slice(max(ring.start, ring.total - SEEN), ring.total).splitlines()
    told = [line for line in lines if _TAKEN.search(line)]
    if not told:
        return None
    found = _port(told, _IN_MESSAGE) or _port([_command(process)], _IN_COMMAND)
    return f"port {found} in use" if found else None


def _command(process: Process) -> bytes:
    """Return the beginning of a command, its variables first."""
    command = process.command
    shown = " ".join([*(f"{name}={value}" for name, value in command.env.items()), command.shown])
    return shown[:SEEN].encode(errors="replace")


def _port(texts: Iterable[bytes], patterns: Iterable[Any]) -> int | None:
    for text in texts:
        for pattern in patterns:
            for match in islice(pattern.finditer(text), TRIES):
                if 0 < (port := int(match[1])) < 65536:
                    return port
    return None
