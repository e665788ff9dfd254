"""The log: one JSON object a line on stderr, for calls and for everything else.

A line names the tool and the tree of a call, and holds nothing else of what the call or its answer contained
(specification, section 1). So a fault is logged as the types and places of its exceptions, without their texts.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import secrets
import time
import traceback
from typing import Any

import orjson

LEVELS = ("debug", "info", "warning", "error")
STDERR = 2
SHOWN = re.compile(r"[A-Za-z0-9_-]{1,32}")
"""Names of tools and trees that a line may show. Anything else is no name but text of the caller."""

_logger = logging.getLogger("toolserver")


def configure(level: str) -> None:
    """Send the package's log lines of `level` and above to stderr, and none of uvicorn's."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    _logger.handlers[:] = [handler]
    _logger.setLevel(level.upper())
    _logger.propagate = False
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [logging.NullHandler()]
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON. `extra={"facts": {...}}` adds members."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": stamp(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["trace"] = trace(record.exc_info[1])
        return orjson.dumps(line, default=str).decode()


def stamp(seconds: float) -> str:
    """Return a time in the form of RFC 3339: UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def fault(error: BaseException) -> str:
    """Log a fault of the server itself and return the id that its caller is told."""
    name = secrets.token_hex(6)
    _logger.error("internal error", extra={"facts": {"id": name}}, exc_info=error)
    return name


def trace(error: BaseException) -> list[str]:
    """Return the traceback of an exception and of its causes, the exception itself last, without their texts."""
    lines: list[str] = []
    seen: set[int] = set()
    found: BaseException | None = error
    chain: list[BaseException] = []
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        chain.append(found)
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    for one in reversed(chain):
        lines += (line for frame in traceback.extract_tb(one.__traceback__).format() for line in frame.splitlines())
        lines.append(_kind(one))
    return lines


def _kind(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    if isinstance(error, OSError) and error.errno is not None:
        name += f" {errno.errorcode.get(error.errno, error.errno)}"
    if isinstance(error, BaseExceptionGroup):
        name += f" of {', '.join(_kind(one) for one in error.exceptions)}"
    return name


class CallLog:
    """Writes the line of a call: time, tool, tree, status, milliseconds, bytes of the answer's body.

    Lines of one turn of the event loop are written together after it.
    """

    __slots__ = ("_lines", "_on", "_second", "_stamp")

    def __init__(self, level: str) -> None:
        self._on = LEVELS.index(level) <= LEVELS.index("info")
        self._second = 0
        self._stamp = ""
        self._lines: list[str] = []

    def write(self, tool: str, tree: object, status: int, started: float, size: int) -> None:
        """Write one line. `started` is a value of time.perf_counter; `tree` is whatever the call gave as its tree."""
        if not self._on:
            return
        milliseconds = (time.perf_counter() - started) * 1000
        now = int(time.time())
        if now != self._second:
            self._second = now
            self._stamp = stamp(now)
        if not self._lines:
            asyncio.get_running_loop().call_soon(self.flush)
        self._lines.append(
            f'{{"at":"{self._stamp}","level":"info","tool":{_name(tool)},"tree":{_name(tree)},"status":{status},'
            f'"ms":{milliseconds:.2f},"bytes":{size}}}\n'
        )

    def flush(self) -> None:
        """Write to stderr now. Lines are lost where it is a closed pipe, or a full one that does not block."""
        view = memoryview("".join(self._lines).encode())
        self._lines.clear()
        while view:
            try:
                view = view[os.write(STDERR, view) :]
            except OSError:
                return


def _name(name: object) -> str:
    """Return the name of a tool or a tree as JSON; null for what cannot be one."""
    return f'"{name}"' if type(name) is str and SHOWN.fullmatch(name) else "null"
