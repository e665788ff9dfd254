"""What the tests of relaunching share: processes that can be found, and waiting for what must come."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from wire import WAIT_S

if TYPE_CHECKING:
    from kit import Server

T = TypeVar("T")
_marks = itertools.count(5000)


def eventually(probe: Callable[[], T]) -> T:
    """Ask until the answer is true; answer it."""
    end = time.monotonic() + WAIT_S
    while not (found := probe()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found


def mark() -> str:
    """Return a duration for `sleep` that nobody else uses."""
    return f"{next(_marks)}.{os.getpid()}"


def sleepers(duration: str) -> set[int]:
    """Return the living processes that are `sleep DURATION`."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes() == f"sleep\0{duration}\0".encode():
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


def detach(server: Server, cmd: str | list[str], **more: Any) -> str:
    return str(server.ok("exec", cmd=cmd, detach=True, **more)["id"])


def entry(server: Server, name: str, **more: Any) -> dict[str, Any]:
    """Return a process's entry in process_list, empty where it is not listed."""
    rows = server.ok("process_list", **more)["processes"]
    return next((row for row in rows if row["id"] == name), {})


def record_of(server: Server) -> pathlib.Path:
    return server.root / ".kd" / "processes.json"


def edit_record(server: Server, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the record of a server that is not running."""
    path = record_of(server)
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
