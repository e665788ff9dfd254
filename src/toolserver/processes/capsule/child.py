"""Bubblewrap as a child, and the processes inside, which have a PID namespace of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable

from toolserver.processes.child import Child
from toolserver.processes.group import descendants
from toolserver.processes.procfs import Status, open_checked, status


class CapsuleChild(Child):
    """Bubblewrap and its PID namespace, whose first process bubblewrap names on the status descriptor."""

    __slots__ = ("_early", "_init", "_status", "_told")

    def __init__(self, pid: int, status: int) -> None:
        """Takes over `status`. Raises OSError without a free descriptor."""
        super().__init__(pid)
        self._status = status
        self._told = b""
        self._init = 0
        self._early = False

    def _read(self) -> list[dict[str, int]]:
        """Return what bubblewrap has written so far."""
        try:
            while self._status >= 0 and (got := os.read(self._status, 4096)):
                self._told += got
        except BlockingIOError:
            pass
        return [json.loads(line) for line in self._told.splitlines() if line.endswith(b"}")]

    def _first(self) -> int:
        """Return the pid of the namespace's first process, 0 before there is one."""
        if not self._init:
            self._init = next((told["child-pid"] for told in self._read() if "child-pid" in told), 0)
        return self._init

    def executed(self) -> bool:
        """Whether the command was executed; valid after the exit."""
        return any("exit-code" in told for told in self._read())

    def members(self) -> list[int]:
        """Return the pids of the processes inside, without the namespace's first one."""
        first = self._first()
        return descendants(first) if first else []

    def _is_inside(self, found: Status) -> bool:
        at: Status | None = found
        while at is not None and at.parent != self._first():
            at = status(at.parent) if at.parent else None
        return at is not None

    def terminate(self) -> None:
        """Send TERM once to everything inside, but not to bubblewrap, which would kill it all at once."""
        inside = self.members()
        for pid in inside:
            _send(pid, signal.SIGTERM, self._is_inside)
        if not inside:  # the command has not begun: end it as the TERM would have
            self._early = True
            self.kill()

    def status(self) -> int:
        code = super().status()
        return 128 + signal.SIGTERM if self._early and code == 128 + signal.SIGKILL else code

    def kill(self) -> None:
        """Send KILL to the namespace's first process, with which all of it ends, and to bubblewrap."""
        if self._first():
            _send(self._first(), signal.SIGKILL, lambda found: found.parent == self.pid)
        super().kill()

    def reap(self) -> None:
        self._read()
        os.close(self._status)
        self._status = -1
        super().reap()


def _send(pid: int, number: signal.Signals, is_meant: Callable[[Status], bool]) -> None:
    fd = open_checked(pid, is_meant)
    if fd is None:
        return
    try:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or runs as another user
            signal.pidfd_send_signal(fd, number)
    finally:
        os.close(fd)
