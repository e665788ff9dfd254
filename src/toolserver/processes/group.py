"""Process groups: who is in one, and waiting until processes that are not our children have gone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from toolserver.processes.procfs import everything


def members(group: int) -> list[int]:
    """Return the pids of the living processes of a group, zombies left out. Reads all of /proc, in milliseconds."""
    return [one.pid for one in everything().values() if one.group == group and one.alive]


def descendants(pid: int) -> list[int]:
    """Return the pids of all processes below one, itself left out. Reads /proc, a file a thread."""
    found: list[int] = []
    todo = [pid]
    while todo:
        at = todo.pop()
        try:
            for thread in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{thread}/children", "rb", buffering=0) as file:
                    below = [int(word) for word in file.read(1 << 20).split()]
                found += below
                todo += below
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
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
