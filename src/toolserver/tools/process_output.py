"""The tool `process_output`: what a process has printed."""

from __future__ import annotations

from toolserver._fast.ring import RING_SIZE
from toolserver.calls.call import Answer, Call, Tool
from toolserver.calls.process_answers import lost_output, output
from toolserver.calls.process_arguments import OfProcess, Since, SinceErr, lost_of, process_of


class ProcessOutputArguments(OfProcess, kw_only=True, frozen=True):
    """Arguments of `process_output`."""

    since: Since = 0
    since_err: SinceErr = 0


async def run(call: Call, args: ProcessOutputArguments) -> Answer:
    """Return what is held of both streams from the offsets on."""
    await call.services.processes.recorded()
    if (lost := lost_of(call, args)) is not None:
        return lost_output(lost)
    return await output(process_of(call, args), args.since, args.since_err)


TOOL = Tool(
    "process_output",
    "Read what a process has printed, at once, whether or not it still runs: {stdout, stderr, next, next_err, dropped, "
    "dropped_err, state, exit_code}. Pass next and next_err back as since and since_err to read on without a gap. "
    f"Offsets count bytes; each stream keeps its last {RING_SIZE >> 20} MiB, dropped says how many bytes before "
    "since are gone. To wait for the end use process_wait. restarts tells how often it was started again after a "
    "restart of the server; state killed_by_restart, with a hint, that it was not.",
    ProcessOutputArguments,
    run,
)
