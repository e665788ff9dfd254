"""Process groups: who is in one, and waiting until processes that are not our children have gone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable


def members(group: int) -> list[int]:
    """Answer the pids of the living processes of a group, zombies left out. Reads all of /proc, in milliseconds."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                    state, _, pgrp = file.read(4096).rpartition(b")")[2].split()[:3]
            except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                continue
            if int(pgrp) == group and state not in (b"Z", b"X"):
                found.append(int(name))
    return found


async def gone(pids: Iterable[int], seconds: float) -> bool:
    """Wait until all of the processes have exited; False when time runs out before."""
    loop = asyncio.get_running_loop()
    waits: dict[int, asyncio.Future[None]] = {}
    try:
        for pid in pids:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            waits[fd] = loop.create_future()
            loop.add_reader(fd, _arrived, waits[fd])
        if not waits:
            return True
        _, missing = await asyncio.wait(waits.values(), timeout=max(seconds, 0))
        return not missing
    finally:
        for fd in waits:
            loop.remove_reader(fd)
            os.close(fd)


def _arrived(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
