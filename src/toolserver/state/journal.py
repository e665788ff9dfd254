"""The journal of a tree: a line for each call that changes files or runs a command (specification, section 11).

One file a day, `.kd/journal/YYYY-MM-DD.ndjson`, days in UTC. A line is one `write` with O_APPEND, so lines of several
servers on one root do not mix. Writing one never fails the call that it tells of; what keeps it from being written is
logged once.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

from toolserver.state.kd import open_kd
from toolserver.state.redaction import redacted
from toolserver.workspace.names import KD

DAYS = 14
"""Days that are kept, today included."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of all days together; the oldest days are removed first, then the oldest lines of the day."""
SUMMARY = 500
"""Characters of a summary, after its secrets were taken out."""
CHECK_EVERY = 1024 * 1024
"""Bytes written by this server after which the size of all days is looked at again."""
OPEN_TREES = 16
"""Trees whose file of the day is kept open."""
_DIRECTORY = KD + b"/journal"
_DAY_FILE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.ndjson")

log = logging.getLogger("toolserver.journal")


@dataclass(frozen=True, slots=True)
class Line:
    """What is told of a call, secrets not yet taken out."""

    tool: str
    summary: str
    outcome: str
    ms: int
    paths: list[str]
    task: str | None
    secrets: tuple[str, ...] = ()
    """Texts that are secret wherever they stand, beside the workspace's token."""


class Journal:
    """The journals of all trees of a server. Its methods block for one `write`, and belong to one thread."""

    def __init__(self, token: Callable[[], str]) -> None:
        """`token` returns the workspace's token, which no line may hold."""
        self._token = token
        self._days: dict[bytes, _Day] = {}
        self._failing = False

    def add(self, root: bytes, line: Line, now: datetime | None = None) -> None:
        """Append a line to the journal of the tree whose absolute root is given."""
        at = now or datetime.now(UTC)
        try:
            self._day(root, at).append(self._encoded(line, at))
        except OSError as error:
            self._days.pop(root, None)
            if not self._failing:
                log.warning("the journal cannot be written: %s", error.strerror)
            self._failing = True
        else:
            self._failing = False

    def close(self) -> None:
        """Close all files."""
        while self._days:
            self._days.popitem()[1].close()

    def _encoded(self, line: Line, at: datetime) -> bytes:
        secrets = (self._token(), *line.secrets)
        fields = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "tool": line.tool,
            "summary": redacted(line.summary, secrets)[:SUMMARY],
            "outcome": redacted(line.outcome, secrets)[:SUMMARY],
            "ms": line.ms,
            "paths": [redacted(path, secrets) for path in line.paths],
            "task": line.task,
        }
        return orjson.dumps(fields) + b"\n"

    def _day(self, root: bytes, at: datetime) -> _Day:
        name = f"{at:%Y-%m-%d}.ndjson"
        day = self._days.pop(root, None)
        if day is not None and (day.name != name or not day.linked):
            day.close()
            day = None
        if day is None:
            while len(self._days) >= OPEN_TREES:
                self._days.pop(next(iter(self._days))).close()
            day = _Day(root, name)
        self._days[root] = day  # the last used stands last
        return day


class _Day:
    """The open file of one day of one tree."""

    def __init__(self, root: bytes, name: str) -> None:
        """Open it, made where it is missing; a line that was torn by a crash is ended. Raises OSError."""
        self.name = name
        self._directory = _open_directory(root)
        self._fd = -1
        try:
            self._fd = self._open()
            self._end_torn_line()
        except BaseException:
            self.close()
            raise
        self._unchecked = 0
        self._keep_within_limits()

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(self.name, flags, 0o600, dir_fd=self._directory)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, f"{self.name} is not a regular file")
        return fd

    @property
    def linked(self) -> bool:
        """Whether the file still has a name; `.kd` may be deleted under a running server."""
        return os.fstat(self._fd).st_nlink > 0

    def append(self, line: bytes) -> None:
        """Append one line, whole or not at all. Raises OSError."""
        size = os.fstat(self._fd).st_size
        written = os.write(self._fd, line)
        if written < len(line):  # the disk is full
            os.ftruncate(self._fd, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._unchecked += written
        if self._unchecked >= CHECK_EVERY:
            self._keep_within_limits()

    def _end_torn_line(self) -> None:
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")

    def _keep_within_limits(self) -> None:
        """Remove the days that are too old, then the oldest while all are too large, then first lines."""
        self._unchecked = 0
        today = datetime.strptime(self.name, "%Y-%m-%d.ndjson").replace(tzinfo=UTC)
        oldest = f"{today - timedelta(days=DAYS - 1):%Y-%m-%d}.ndjson"
        days = sorted(name for name in os.listdir(self._directory) if _DAY_FILE.fullmatch(name))
        for name in [name for name in days if name < oldest]:
            self._remove(name)
        sizes = {
            name: os.stat(name, dir_fd=self._directory, follow_symlinks=False).st_size
            for name in days
            if name >= oldest
        }
        total = sum(sizes.values())
        for name, size in sizes.items():
            if total <= MOST_BYTES or name == self.name:
                break
            self._remove(name)
            total -= size
        if sizes.get(self.name, 0) > MOST_BYTES:
            self._drop_first_lines()

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # another server of the root was first
            os.unlink(name, dir_fd=self._directory)

    def _drop_first_lines(self) -> None:
        """Keep the newer half of a day that alone is too large, in a new file that takes the place of the old one."""
        begin = os.fstat(self._fd).st_size - MOST_BYTES // 2
        temp = f".{self.name}.tmp"
        self._remove(temp)
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._directory)
        with os.fdopen(fd, "wb") as kept:
            whole = False
            while part := os.pread(self._fd, 1 << 20, begin):
                begin += len(part)
                if not whole:
                    part = part.partition(b"\n")[2]
                    whole = bool(part)
                kept.write(part)
        os.rename(temp, self.name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        os.close(self._fd)
        self._fd = -1
        self._fd = self._open()

    def close(self) -> None:
        for fd in (self._fd, self._directory):
            if fd >= 0:
                os.close(fd)
        self._fd = self._directory = -1


def _open_directory(root: bytes) -> int:
    at = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return open_kd(at, _DIRECTORY)
    finally:
        os.close(at)
