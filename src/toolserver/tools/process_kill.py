"""The tool `process_kill`: end a process and everything in its group."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from toolserver.calls.call import Answer, Call, Told, Tool
from toolserver.calls.process_arguments import OfProcess, lost_of, process_of
from toolserver.processes.process import KILL_DELAY


class ProcessKillArguments(OfProcess, kw_only=True, frozen=True):
    """Arguments of `process_kill`."""

    signal: Annotated[
        Literal["TERM", "KILL"],
        Meta(description="TERM lets it clean up and is followed by KILL after 5 s; KILL ends it at once."),
    ] = "TERM"


async def run(call: Call, args: ProcessKillArguments) -> Answer:
    """End the process and return its state."""
    if (lost := lost_of(call, args)) is not None:
        return {"state": lost.state}
    process = process_of(call, args)
    if process.running:
        await process.end(KILL_DELAY if args.signal == "TERM" else 0)
    await call.services.processes.recorded()
    return {"state": process.state}


def told(call: Call, args: ProcessKillArguments, answer: Answer | None) -> Told:
    """Tell the journal which process."""
    return Told(f"process_kill {args.id} {args.signal}")


TOOL = Tool(
    "process_kill",
    "End a process and its whole process group: TERM, and KILL to what is left after 5 s (signal KILL: at once). "
    "Returns {state} once it has gone: exited, or running for something that not even KILL ended. Its output stays "
    "readable with process_output. An exited process returns at once.",
    ProcessKillArguments,
    run,
    told=told,
)
