"""The tool `process_list`: the processes of a tree."""

from __future__ import annotations

from toolserver.processes.process import Process
from toolserver.tools._arguments import Arguments
from toolserver.tools._tool import Answer, Call, Tool


class ProcessListArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `process_list`."""


async def run(call: Call, args: ProcessListArguments) -> Answer:
    """Answer the tree's processes in the order they started."""
    return {"processes": [entry(one) for one in call.services.processes.all() if one.tree == call.tree.name]}


def entry(process: Process) -> Answer:
    """Answer a process as it is listed."""
    return {
        "id": process.id,
        "cmd": process.command.shown,
        "started_at": process.started_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "state": process.state,
        "exit_code": process.exit_code,
        "failed": process.failed,
    }


TOOL = Tool(
    "process_list",
    "List the processes of the working directory in start order: detached ones and commands that outran soft_ms. "
    "Answers {processes: [{id, cmd, started_at, state: running|exited, exit_code, failed}]}; failed is null or a note "
    "such as `port 3000 in use`. At most 32 run at once; an exited one stays listed for 10 minutes. Read one with "
    "process_output or process_wait, end it with process_kill.",
    ProcessListArguments,
    run,
)
