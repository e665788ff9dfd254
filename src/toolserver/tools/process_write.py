"""The tool `process_write`: write to a process's standard input."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from toolserver.calls.call import Answer, Call, Told, Tool
from toolserver.calls.process_arguments import OfProcess, process_of
from toolserver.errors import BadArgument
from toolserver.workspace.paths import decode_base64


class ProcessWriteArguments(OfProcess, kw_only=True, frozen=True):
    """Arguments of `process_write`."""

    data: Annotated[str | None, Meta(description="Text to write; a line needs its line end.")] = None
    data_base64: Annotated[str | None, Meta(description="Bytes to write, as base64, in place of data.")] = None


async def run(call: Call, args: ProcessWriteArguments) -> Answer:
    """Write to the process's stdin and return how many bytes, once all are in the pipe."""
    data = _data(args)
    return {"bytes": await process_of(call, args).stdin.write(data, f"process {args.id}")}


def _data(args: ProcessWriteArguments) -> bytes:
    if args.data is not None and args.data_base64 is not None:
        raise BadArgument("data and data_base64: expected one string, not both")
    if args.data_base64 is not None:
        return decode_base64(args.data_base64, "data_base64")
    if args.data is None:
        raise BadArgument("data is required: expected a string, or data_base64")
    return args.data.encode()


def told(call: Call, args: ProcessWriteArguments, answer: Answer | None) -> Told:
    """Tell the journal how much was typed, never what."""
    return Told(f"process_write {args.id}" + (f", {answer['bytes']} bytes" if answer else ""))


TOOL = Tool(
    "process_write",
    "Write to the stdin of a detached process; returns {bytes} once all of them are taken. Writes arrive in the order "
    "of the calls, and one that is longer than the pipe waits for its reader. An error after process_close_stdin, "
    "after the exit, and for a promoted job, whose stdin is empty. On a pty \\u0003 is ^C.",
    ProcessWriteArguments,
    run,
    told=told,
)
