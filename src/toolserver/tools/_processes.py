"""What the tools on processes share: the `id`, the offsets, and output as it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated

import orjson
from msgspec import Meta

from toolserver._fast.lines import json_string
from toolserver.processes.former import CANNOT_START, Former, moment
from toolserver.processes.process import Process
from toolserver.processes.pump import Piece
from toolserver.tools._arguments import Arguments
from toolserver.tools._tool import Answer, Call

INLINE = 256 * 1024
"""Bytes of output that are put into an answer on the event loop; more are in a thread."""

UNWATCHED_MS = 20
"""For how long a call's client is not asked whether it is still there: most commands are over by then."""

Id = Annotated[str, Meta(description="The process's id, such as p1, as exec or process_list tells it.")]
Since = Annotated[int, Meta(ge=0, description="Offset in bytes into stdout to read from, such as an answer's `next`.")]
SinceErr = Annotated[
    int, Meta(ge=0, description="Offset in bytes into stderr to read from, such as an answer's `next_err`.")
]


class OfProcess(Arguments, kw_only=True, frozen=True):
    """Arguments of a tool on one process."""

    id: Id


def process_of(call: Call, args: OfProcess) -> Process:
    """Answer the process; ToolError `no process ID`."""
    return call.services.processes.get(call.tree.name, args.id)


def former_of(call: Call, args: OfProcess) -> Former | None:
    """Answer the process where it is one of an earlier run of the server that does not run now."""
    return call.services.processes.find_former(call.tree.name, args.id)


def former_output(former: Former) -> Answer:
    """Answer how such a process stands: it printed nothing that is left."""
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
    """Answer how often a process was started again, where it was."""
    return {"restarts": process.restarts} if process.restarts else {}


async def texts(*parts: bytes) -> list[orjson.Fragment]:
    """Answer each as a JSON string, ill-formed UTF-8 as U+FFFD; much of it off the event loop."""
    if sum(map(len, parts)) <= INLINE:
        return [orjson.Fragment(json_string(part)) for part in parts]
    return await asyncio.to_thread(lambda: [orjson.Fragment(json_string(part)) for part in parts])


def pieces(process: Process, since: int, since_err: int) -> tuple[Piece, Piece]:
    """Answer what both streams hold from an offset on."""
    whole = not process.running
    return process.stdout.piece(since, whole=whole), process.stderr.piece(since_err, whole=whole)


async def output(process: Process, since: int, since_err: int) -> Answer:
    """Answer the output fields from both offsets on, and how the process stands."""
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
