"""The arguments that tools on processes share: the `id` and the offsets, and the process they name."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Call
from toolserver.processes.process import Process
from toolserver.processes.restart.lost import LostProcess

Id = Annotated[str, Meta(description="The process's id, such as p1, as exec or process_list tells it.")]
Since = Annotated[int, Meta(ge=0, description="Offset in bytes into stdout to read from, such as an answer's `next`.")]
SinceErr = Annotated[
    int, Meta(ge=0, description="Offset in bytes into stderr to read from, such as an answer's `next_err`.")
]


class OfProcess(Arguments, kw_only=True, frozen=True):
    """Arguments of a tool on one process."""

    id: Id


def process_of(call: Call, args: OfProcess) -> Process:
    """Return the process; ToolError `no process ID`."""
    return call.services.processes.get(call.tree.name, args.id)


def lost_of(call: Call, args: OfProcess) -> LostProcess | None:
    """Return the process where it is one of an earlier run of the server that does not run now."""
    return call.services.processes.find_lost(call.tree.name, args.id)
