"""A child process and its group: signals, the exit status, the end of its entry in the process table."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

from toolserver.processes.group import members


class Child:
    """A child process and its group. The holder calls `reap` once, after the exit; until then the pid is not reused."""

    __slots__ = ("_forget", "pid", "pidfd")

    def __init__(self, pid: int, forget: Callable[[], None] | None = None) -> None:
        """`forget` is called once the child is out of the process table. Raises OSError without a free descriptor."""
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self._forget = forget

    def terminate(self) -> None:
        """Send TERM to every process of the group that may be signalled."""
        with contextlib.suppress(PermissionError):
            os.killpg(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Send KILL to every process of the group that may be signalled."""
        with contextlib.suppress(PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def status(self) -> int:
        """Return the exit code of an exited child, 128 + N after signal N. The child stays a zombie."""
        found = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT)
        assert found is not None
        return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status

    @property
    def exited(self) -> bool:
        """Whether the child, not yet reaped, has exited."""
        return os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def members(self) -> list[int]:
        """Return the pids of the living members of the group. Reads all of /proc: call it in a thread."""
        return members(self.pid)

    def reap(self) -> None:
        """Take the exited child out of the process table."""
        os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
        os.close(self.pidfd)
        if self._forget is not None:
            self._forget()
