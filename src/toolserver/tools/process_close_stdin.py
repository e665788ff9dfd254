"""The tool `process_close_stdin`: end a process's input."""

from __future__ import annotations

from toolserver.calls.call import Answer, Call, Tool
from toolserver.calls.process_arguments import OfProcess, process_of


async def run(call: Call, args: OfProcess) -> Answer:
    """End the input, after the writes that still wait."""
    await process_of(call, args).stdin.close(f"process {args.id}")
    return {"closed": True}


TOOL = Tool(
    "process_close_stdin",
    "End the stdin of a process, so that a command that reads to the end of its input finishes; returns "
    "{closed: true}, also when it was closed before. Writes that still wait come first. On a pty it sends ^D.",
    OfProcess,
    run,
)
