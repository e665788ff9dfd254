"""The tool `process_wait`: wait for a process's exit and read on meanwhile."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from toolserver.calls.call import Answer, Call, Tool
from toolserver.calls.process_answers import lost_output, output, until_ended
from toolserver.calls.process_arguments import OfProcess, Since, SinceErr, lost_of

LONGEST_MS = 20_000


class ProcessWaitArguments(OfProcess, kw_only=True, frozen=True):
    """Arguments of `process_wait`."""

    timeout_ms: Annotated[
        int, Meta(ge=0, description="How long to wait, in milliseconds.", extra={"lower_to": LONGEST_MS})
    ] = LONGEST_MS
    since: Since = 0
    since_err: SinceErr = 0


async def run(call: Call, args: ProcessWaitArguments) -> Answer:
    """Wait for the exit, as long as the call says, and return the output from the offsets on."""
    if (lost := lost_of(call, args)) is not None:
        answer = lost_output(lost)
        if lost.failed is not None:
            answer |= {"timed_out": False, "id": lost.id, "failed": lost.failed}
        return answer
    process = call.services.processes.find(call.tree.name, args.id)
    if process is None:
        hint = "There is no such process (any more): an exited one is kept for 10 minutes. See process_list."
        return {"state": "gone", "id": args.id, "hint": hint}
    if process.running:
        await until_ended(call, process, args.timeout_ms)
    await call.services.processes.recorded()
    answer = await output(process, args.since, args.since_err)
    timed_out = answer["state"] == "running"
    answer |= {"timed_out": timed_out, "id": process.id, "failed": process.failed}
    if timed_out:
        answer["hint"] = (
            f"It still runs. Call process_wait again with since={answer['next']} and since_err={answer['next_err']}, "
            "or end it with process_kill."
        )
    return answer


TOOL = Tool(
    "process_wait",
    "Wait until a process has exited, at most 20 s, and read what it printed: {state, exit_code, timed_out, id, "
    "stdout, stderr, next, next_err, dropped, dropped_err, failed}. timed_out with state running: call again with "
    "since and since_err from next and next_err. Once state is exited, everything printed is there. An unknown id, or "
    "one gone for 10 minutes, returns state gone; one that a restart of the server ended returns state "
    "killed_by_restart, with a hint.",
    ProcessWaitArguments,
    run,
)
