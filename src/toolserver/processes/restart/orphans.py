"""Ends processes that killed servers have left, before they are started again (specification, section 9)."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import select
import signal
import time
from collections.abc import Callable, Iterable

from toolserver.processes.capsule.bubblewrap import STATUS_FD
from toolserver.processes.procfs import Status, arguments, everything, open_checked
from toolserver.processes.restart.children import ChildNote, left_behind
from toolserver.workspace.names import AGENTS

END_WAIT_S = 5.0
"""Seconds to wait after KILL until all have gone."""
MAX_PIDFDS = 500
"""Processes that are waited for at the same time, one descriptor each."""

log = logging.getLogger("toolserver.processes")

Processes = dict[int, Status]


def sweep(directory: str, root: bytes) -> None:
    """End the processes and capsules that killed servers of a root have left, and wait until they have gone. Blocks.

    Nothing of a living server is touched: its notes are locked, and its capsules have it as their parent.
    """
    with left_behind(directory) as children:

        def find() -> list[Status]:
            seen = everything()
            if not children and not any(one.name == b"bwrap" for one in seen.values()):
                return []
            return _with_descendants(seen, [*_of_sessions(seen, children), *_capsules(seen, root)])

        ended = _end(find)
    if ended:
        log.info("processes that a killed server had left were ended", extra={"facts": {"count": ended}})


def _of_sessions(seen: Processes, children: Iterable[ChildNote]) -> list[Status]:
    """Return the members of the sessions and groups that the children lead, or led until they exited.

    A pid is not reused as long as it names a session or group. So where another process has the pid now, the session
    has gone. Where no process has it, the members of the session started after its leader did, and before the leader
    exited if that moment is known; later the number may have been reused.
    """
    spans: dict[int, tuple[int, float]] = {}
    for child in children:
        if not child.pid:
            spans |= {one.session: (child.first, math.inf) for one in seen.values() if _has(one, child)}
        elif child.ended:
            spans[child.pid] = (child.first, child.ended)
        elif child.pid not in seen or child.is_of(child.pid, seen[child.pid].start):
            spans[child.pid] = (child.first, math.inf)
    return [one for one in seen.values() if any(_within(one.start, spans.get(n)) for n in (one.session, one.group))]


def _within(start: int, span: tuple[int, float] | None) -> bool:
    return span is not None and span[0] <= start <= span[1]


def _has(one: Status, child: ChildNote) -> bool:
    """Whether a process has the output of a child that was being started when the server was killed."""
    if one.start < child.first or not child.pipe:
        return False
    pipe = f"pipe:[{child.pipe}]"
    for number in (1, 2):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{one.pid}/fd/{number}") == pipe:
                return True
    return False


def _capsules(seen: Processes, root: bytes) -> list[Status]:
    """Return the bubblewrap processes of this root or a tree below it whose server has gone.

    They normally die with the server, but not if it was killed while they started.
    """
    ours = {one.pid: one for one in seen.values() if one.name == b"bwrap" and _binds(arguments(one.pid), root)}
    return [one for one in ours.values() if one.parent not in ours and not _is_served(one)]


def _binds(words: list[bytes], root: bytes) -> bool:
    """Whether a command line is that of a capsule of the root or one of its trees."""
    if b"--json-status-fd" not in words or b"--die-with-parent" not in words or b"--bind" not in words:
        return False
    place = b"".join(words[words.index(b"--bind") + 1 :][:1])
    above, name = os.path.split(place)
    return place == root or (above == os.path.join(root, AGENTS) and bool(name))


def _is_served(capsule: Status) -> bool:
    """Whether a bubblewrap's parent is the server that started it: that has the other end of the status pipe."""
    try:
        pipe = os.readlink(f"/proc/{capsule.pid}/fd/{STATUS_FD}")
    except PermissionError:
        return True  # another user's process
    except (FileNotFoundError, ProcessLookupError):
        return False
    return pipe in _descriptors(capsule.parent)


def _descriptors(pid: int) -> set[str]:
    """Return what a process has open; nothing if it may not be inspected, as init mostly may not."""
    found = set()
    with contextlib.suppress(PermissionError, FileNotFoundError, ProcessLookupError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def _with_descendants(seen: Processes, found: list[Status]) -> list[Status]:
    """Return the living ones among processes and their descendants, without those above and below this server.

    Parents come before their children: a shell whose child is killed first would go on with its next command.
    """
    spared = {0, 1}
    at: Status | None = seen.get(os.getpid())
    while at is not None and at.pid not in spared:
        spared.add(at.pid)
        at = seen.get(at.parent)
    below: dict[int, list[Status]] = {}
    for one in seen.values():
        below.setdefault(one.parent, []).append(one)
    all_of_them: Processes = {}
    todo = list(found)
    while todo:
        one = todo.pop()
        if one.pid not in all_of_them:
            all_of_them[one.pid] = one
            todo += below.get(one.pid, []) if one.pid not in spared else []
    ended = [one for one in all_of_them.values() if one.alive and one.pid not in spared]
    return sorted(ended, key=lambda one: _depth(seen, one))


def _depth(seen: Processes, one: Status) -> int:
    """Count the processes above one, of those that are seen."""
    depth = 0
    above = seen.get(one.parent)
    while above is not None and depth < len(seen):
        depth += 1
        above = seen.get(above.parent)
    return depth


def _end(find: Callable[[], list[Status]]) -> int:
    """Kill what `find` returns until it returns nothing any more; return how many there were."""
    ended: set[tuple[int, int]] = set()
    refused: set[tuple[int, int]] = set()
    deadline = time.monotonic() + END_WAIT_S
    while found := [one for one in find() if (one.pid, one.start) not in refused]:
        if time.monotonic() > deadline:
            log.warning("a process of a killed server does not end", extra={"facts": {"pid": found[0].pid}})
            break
        with contextlib.ExitStack() as stack:
            waits: list[int] = []
            for one in found:
                try:
                    fd = _send(one)
                except PermissionError:  # it runs as another user now
                    refused.add((one.pid, one.start))
                    continue
                if fd is None:
                    continue
                ended.add((one.pid, one.start))
                if len(waits) < MAX_PIDFDS:
                    waits.append(fd)
                    stack.callback(os.close, fd)
                else:
                    os.close(fd)
            _wait(waits, deadline)
    return len(ended)


def _send(one: Status) -> int | None:
    """Send KILL to a process and return its pidfd; None where it has gone. Raises PermissionError."""
    fd = open_checked(one.pid, lambda now: now.start == one.start)
    if fd is None:
        return None
    try:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
    except ProcessLookupError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return fd


def _wait(pidfds: list[int], deadline: float) -> None:
    """Wait until all of them have exited, or time is up."""
    poll = select.poll()
    for fd in pidfds:
        poll.register(fd, select.POLLIN)
    pending = len(pidfds)
    while pending and (left := deadline - time.monotonic()) > 0:
        for fd, _ in poll.poll(left * 1000):
            poll.unregister(fd)
            pending -= 1
