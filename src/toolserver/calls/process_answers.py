"""What tools and streams answer of a process: its state, and its output as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson

from toolserver._fast.lines import json_string
from toolserver.calls.call import Answer, Call
from toolserver.processes.output import Piece
from toolserver.processes.process import Process
from toolserver.processes.restart.lost import CANNOT_START, Former, moment

INLINE = 256 * 1024
"""Bytes of output that are put into an answer on the event loop; more are in a thread."""

UNWATCHED_MS = 20
"""For how long a call's client is not asked whether it is still there: most commands are over by then."""


def former_output(former: Former) -> Answer:
    """Return how such a process stands: it printed nothing that is left."""
    if former.failed is None:
        return {
            "state": former.state,
            "id": former.id,
            "restarted_at": moment(former.restarted_at),
            "hint": former.hint,
        }
    nothing = {"stdout": "", "stderr": "", "next": 0, "next_err": 0, "dropped": 0, "dropped_err": 0}
    return nothing | {"state": former.state, "exit_code": CANNOT_START}


async def until_ended(call: Call, process: Process, limit_ms: int) -> bool:
    """Wait for the exit, no longer than so many milliseconds; answer whether the client left meanwhile."""
    if limit_ms > UNWATCHED_MS:
        if await _ended(process, UNWATCHED_MS, lambda over: None):
            return False
        limit_ms -= UNWATCHED_MS
    left = False

    def watch(over: Callable[[], None]) -> None:
        def leave() -> None:
            nonlocal left
            left = True
            over()

        call.client.on_leave(leave)

    await _ended(process, limit_ms, watch)
    return left


async def _ended(process: Process, limit_ms: int, watch: Callable[[Callable[[], None]], None]) -> bool:
    """Wait for the exit, for the end of the time, or for a call of what `watch` is given; answer whether it exited."""
    loop = asyncio.get_running_loop()
    moment: asyncio.Future[None] = loop.create_future()

    def over() -> None:
        if not moment.done():
            moment.set_result(None)

    if process.ended.done():
        return True
    process.waiters.append(moment)
    timer = loop.call_later(limit_ms / 1000, over)
    watch(over)
    try:
        await moment
    finally:
        timer.cancel()
        process.waiters.remove(moment)
    return process.ended.done()


def restarts(process: Process) -> Answer:
    """Return how often a process was started again, where it was."""
    return {"restarts": process.restarts} if process.restarts else {}


async def texts(*parts: bytes) -> list[orjson.Fragment]:
    """Return each as a JSON string, ill-formed UTF-8 as U+FFFD; much of it off the event loop."""
    if sum(map(len, parts)) <= INLINE:
        return [orjson.Fragment(json_string(part)) for part in parts]
    return await asyncio.to_thread(lambda: [orjson.Fragment(json_string(part)) for part in parts])


def pieces(process: Process, since: int, since_err: int) -> tuple[Piece, Piece]:
    """Return what both streams hold from an offset on."""
    whole = not process.running
    return process.stdout.piece(since, whole=whole), process.stderr.piece(since_err, whole=whole)


async def output(process: Process, since: int, since_err: int) -> Answer:
    """Return the output fields from both offsets on, and how the process stands."""
    out, err = pieces(process, since, since_err)
    state, exit_code = process.state, process.exit_code
    stdout, stderr = await texts(out.data, err.data)
    return {
        "stdout": stdout,
        "stderr": stderr,
        "next": out.next,
        "next_err": err.next,
        "dropped": out.dropped,
        "dropped_err": err.dropped,
        "state": state,
        "exit_code": exit_code,
        **restarts(process),
    }
