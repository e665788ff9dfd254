"""What /proc tells of processes: who belongs to whom, and since when."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

_UNSEEN = (FileNotFoundError, ProcessLookupError, PermissionError)
"""It has ended meanwhile, or /proc is mounted so that other users' processes are not shown (hidepid)."""


@dataclass(frozen=True, slots=True)
class Status:
    """One process. `start` is in clock ticks since the boot; with the pid it names a process for as long as that."""

    pid: int
    name: bytes
    state: bytes
    parent: int
    group: int
    session: int
    start: int

    @property
    def alive(self) -> bool:
        """Whether it still does something: a zombie does not."""
        return self.state not in (b"Z", b"X")


def status(pid: int) -> Status | None:
    """Return a process, None where none is seen."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            head, _, rest = file.read(4096).rpartition(b")")
    except _UNSEEN:
        return None
    fields = rest.split()
    return Status(
        pid,
        head.partition(b"(")[2],
        fields[0],
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start=int(fields[19]),
    )


def open_checked(pid: int, is_meant: Callable[[Status], bool]) -> int | None:
    """Return a pidfd of a process that was found in /proc; None where it has gone or its pid is another's by now.

    The check follows the open: a pid may be given away at any moment, what a pidfd refers to stays.
    """
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    now = status(pid)
    if now is not None and is_meant(now):
        return fd
    os.close(fd)
    return None


def ticks() -> int:
    """Return the present moment as the kernel would state it in `Status.start` (proc(5): sysconf(_SC_CLK_TCK))."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // (1_000_000_000 // os.sysconf("SC_CLK_TCK"))


def everything() -> dict[int, Status]:
    """Return all processes that are seen, by pid. Reads all of /proc, in milliseconds."""
    found = (status(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {one.pid: one for one in found if one is not None}


def arguments(pid: int) -> list[bytes]:
    """Return the command line of a process; empty where it has none or has gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            return file.readall().split(b"\0")[:-1]
    except _UNSEEN:
        return []


def this_boot() -> bytes:
    """Return what start times and pids are relative to: the boot of the machine and the namespace of pids."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        boot = file.read(64).strip()
    return b"%s %s" % (boot, os.readlink(b"/proc/self/ns/pid"))
