"""The fields that tools and streams return of a process: its state, and its output as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson

from toolserver._fast.lines import json_string
from toolserver.calls.call import Answer, Call
from toolserver.processes.output import Chunk
from toolserver.processes.process import Process
from toolserver.processes.restart.lost import CANNOT_START, LostProcess, moment

INLINE = 256 * 1024
"""Bytes of output that are encoded on the event loop; more are encoded in a thread."""

UNWATCHED_MS = 20
"""Milliseconds in which it is not watched whether the client leaves: most commands have exited by then."""


def lost_output(lost: LostProcess) -> Answer:
    """Return the state of a lost process, whose output is gone."""
    if lost.failed is None:
        return {
            "state": lost.state,
            "id": lost.id,
            "restarted_at": moment(lost.restarted_at),
            "hint": lost.hint,
        }
    nothing = {"stdout": "", "stderr": "", "next": 0, "next_err": 0, "dropped": 0, "dropped_err": 0}
    return nothing | {"state": lost.state, "exit_code": CANNOT_START}


async def until_ended(call: Call, process: Process, limit_ms: int) -> bool:
    """Wait for the exit, at most so many milliseconds; return whether the client left meanwhile."""
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
    """Wait for the exit, the time limit, or a call of the function passed to `watch`; return whether it exited."""
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


def chunks(process: Process, since: int, since_err: int) -> tuple[Chunk, Chunk]:
    """Return what both streams hold from an offset on."""
    whole = not process.running
    return process.stdout.piece(since, whole=whole), process.stderr.piece(since_err, whole=whole)


async def output(process: Process, since: int, since_err: int) -> Answer:
    """Return the output fields from both offsets on, and how the process stands."""
    out, err = chunks(process, since, since_err)
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
