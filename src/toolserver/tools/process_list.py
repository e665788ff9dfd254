"""The tool `process_list`: the processes of a tree."""

from __future__ import annotations

from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Tool
from toolserver.calls.process_answers import restarts
from toolserver.processes.process import Process
from toolserver.processes.restart.lost import CANNOT_START, LostProcess, moment


class ProcessListArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `process_list`."""


async def run(call: Call, args: ProcessListArguments) -> Answer:
    """Return the tree's processes in the order they were first started."""
    processes = call.services.processes
    await processes.recorded()
    found = processes.listed(call.tree.name)
    return {"processes": [entry(one) if isinstance(one, Process) else lost_entry(one) for one in found]}


def entry(process: Process) -> Answer:
    """Return a process as it is listed."""
    return {
        "id": process.id,
        "cmd": process.command.shown,
        "started_at": moment(process.started_at),
        "state": process.state,
        "exit_code": process.exit_code,
        "failed": process.failed,
        **restarts(process),
    }


def lost_entry(lost: LostProcess) -> Answer:
    """Return a process of an earlier run that does not run now as it is listed."""
    if lost.failed is None:
        at = moment(lost.restarted_at)
        return {"id": lost.id, "cmd": lost.shown, "state": lost.state, "restarted_at": at}
    return {
        "id": lost.id,
        "cmd": lost.shown,
        "started_at": None if lost.started_at is None else moment(lost.started_at),
        "state": lost.state,
        "exit_code": CANNOT_START,
        "failed": lost.failed,
    }


TOOL = Tool(
    "process_list",
    "List the processes of the working directory in start order: detached ones and commands that outran soft_ms. "
    "Returns {processes: [{id, cmd, started_at, state: running|exited, exit_code, failed}]}; failed is null or a note "
    "such as `port 3000 in use`. At most 32 run at once; an exited one stays listed for 10 minutes. "
    "After a restart of the server detached ones run again under the same id, with restarts: N; what was not brought "
    "back is {id, cmd, state: killed_by_restart, restarted_at} for an hour. Read one with "
    "process_output or process_wait, end it with process_kill.",
    ProcessListArguments,
    run,
)
