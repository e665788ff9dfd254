"""What the tools on processes share: the `id`, the offsets, and output as it is answered."""

from __future__ import annotations

import asyncio
from typing import Annotated

import orjson
from msgspec import Meta

from toolserver._fast.lines import json_string
from toolserver.processes.process import Process
from toolserver.processes.pump import Piece
from toolserver.tools._arguments import Arguments
from toolserver.tools._tool import Answer, Call

INLINE = 256 * 1024
"""Bytes of output that are put into an answer on the event loop; more are in a thread."""

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


async def until_ended(call: Call, process: Process, limit_ms: int) -> bool:
    """Wait for the exit, no longer than so many milliseconds; answer whether the client left meanwhile."""
    left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def leave() -> None:
        if not left.done():
            left.set_result(None)

    call.client.on_leave(leave)
    await asyncio.wait([process.ended, left], timeout=limit_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
    return left.done()


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
    }
