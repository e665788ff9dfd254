"""The note on a process that failed because its port is taken."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolserver.processes.process import Process

SEEN = 64 * 1024
"""Bytes at the end of the output that are looked at."""
_TAKEN = re.compile(
    r"EADDRINUSE|AddrInUse|address (?:is )?already in use|port(?: \d+)? is (?:already )?in use"
    r"|already (?:running|listening) on port",
    re.IGNORECASE,
)
_IN_MESSAGE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bport[ :=]+(\d{1,5})\b",
        r"(?:\d+\.\d+\.\d+\.\d+|\]|::|\*|\blocalhost):(\d{1,5})\b",
        r"\(['\"][^'\"]*['\"], (\d{1,5})[,)]",
        r"(?:^|\s):(\d{1,5})\b",
        r"\b[a-z][\w-]*(?:\.[\w-]+)+:(\d{1,5})\b",
    )
]
_IN_COMMAND = [
    re.compile(pattern)
    for pattern in (
        r"--?[\w-]*port[ =]['\"]?(\d{1,5})\b",
        r"\b[A-Z_]*PORT=['\"]?(\d{1,5})\b",
        r"(?:^|\s)-[pPl] ?['\"]?(?:[\w.]*:)?(\d{1,5})\b",
        r"(?:\d+\.\d+\.\d+\.\d+|\]|\blocalhost):(\d{1,5})\b",
        r"(?:^|\s):(\d{1,5})\b",
        r"http\.server (?:-\S+ )*(\d{1,5})\b",
    )
]


def port_note(process: Process) -> str | None:
    """Return `port N in use` for a bind failure in what an exited process printed; the message's port beats others."""
    ring = (process.stderr if process.command.terminal is None else process.stdout).ring
    lines = ring.slice(max(ring.start, ring.total - SEEN), ring.total).decode(errors="replace").splitlines()
    told = [line for line in lines if _TAKEN.search(line)]
    if not told:
        return None
    command = " ".join([*(f"{name}={value}" for name, value in process.command.env.items()), process.command.shown])
    found = _port(told, _IN_MESSAGE) or _port([command], _IN_COMMAND)
    return f"port {found} in use" if found else None


def _port(texts: list[str], patterns: list[re.Pattern[str]]) -> str | None:
    for text in texts:
        for pattern in patterns:
            for found in pattern.finditer(text):
                if 0 < int(found[1]) < 65536:
                    return found[1]
    return None
