"""What the tests of commands share: a check that nothing is left of what a server has started."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit import Server


def eventually(probe: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Call probe until it answers something true, and return that."""
    end = time.monotonic() + seconds
    while not (found := probe()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found


def detach(server: Server, cmd: str | list[str], **more: Any) -> str:
    return str(server.ok("exec", cmd=cmd, detach=True, **more)["id"])


def wait(server: Server, name: str, **more: Any) -> dict[str, Any]:
    """Wait for a process's exit and return the answer."""
    answer: dict[str, Any] = server.ok("process_wait", id=name, **more)
    assert answer["state"] == "exited", answer
    return answer


def memory(server: Server) -> int:
    """Return the resident bytes of a server."""
    pages = pathlib.Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def descriptors(server: Server) -> dict[int, str]:
    """Return what a server's descriptors lead to, those that calls about commands open."""
    folder = f"/proc/{server.process.pid}/fd"
    found = {}
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            found[int(name)] = os.readlink(f"{folder}/{name}")
    kinds = ("pipe:", "anon_inode:[pidfd]", "/dev/pt", "/memfd:", "/proc/")
    return {fd: where for fd, where in found.items() if where.startswith(kinds) or where == str(server.root)}


def children(pid: int) -> list[int]:
    """Return the children of a process, zombies too."""
    return [
        int(child)
        for task in os.listdir(f"/proc/{pid}/task")
        for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()
    ]


def extra(now: dict[int, str], before: dict[int, str]) -> list[str]:
    """Return what is open now and was not before; numbers may have changed hands."""
    return sorted((Counter(now.values()) - Counter(before.values())).elements())


def holders(names: list[str]) -> list[str]:
    """Return the command lines of the processes that have such descriptors open, for the message of a failure."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            open_here = [fd.name for fd in (process / "fd").iterdir() if os.readlink(fd) in names]
            if open_here:
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"{process.name} {open_here}: {line[:200]}")
    return found


@contextlib.contextmanager
def nothing_left(server: Server) -> Iterator[None]:
    """Check that a server ends up with the descriptors it had and without a child."""
    server.ok("exec", cmd="true")
    before = descriptors(server)
    yield
    for row in server.ok("process_list")["processes"]:
        if row["state"] == "running":
            server.ok("process_kill", id=row["id"], signal="KILL")
    eventually(lambda: not children(server.process.pid))
    end = time.monotonic() + 20
    while (left := extra(descriptors(server), before)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left, (left, holders(left))
