"""The tool `task`: the queue of what an agent is to do (specification, section 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Tool
from toolserver.errors import BadArgument
from toolserver.state.tasks import Board

TITLE = 200
"""Characters of a title."""
NOTE = 2000
"""Characters of a note."""
OUTCOME = 20_000
"""Characters of a result or a reason."""


class TaskArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `task`."""

    action: Annotated[
        Literal["add", "start", "done", "fail", "cancel", "reorder", "list"],
        Meta(description="What to do. All but `list` change the queue."),
    ]
    title: Annotated[str | None, Meta(description="add: what is to be done, 1 to 200 characters.")] = None
    note: Annotated[str | None, Meta(description="add: more about it, at most 2000 characters.")] = None
    after: Annotated[str | None, Meta(description="add: id of the queued task to stand after; default: the end.")] = (
        None
    )
    id: Annotated[
        str | None,
        Meta(description="The task, such as t1. Default: start: the head of the queue; done, fail: the running one."),
    ] = None
    result: Annotated[str | None, Meta(description="done: what came of it.")] = None
    reason: Annotated[str | None, Meta(description="fail, cancel: why.")] = None
    ids: Annotated[list[str] | None, Meta(description="reorder: all queued ids in their new order.")] = None


async def run(call: Call, args: TaskArguments) -> Answer:
    """Change or show the queue of a tree."""
    board, notes = await call.services.tasks.change(call.tree.root, _action(args))
    shown = msgspec.to_builtins({"running": board.running, "queue": board.queue, "recent": board.recent})
    assert isinstance(shown, dict)
    return shown | ({"notes": notes} if notes else {})


def _action(args: TaskArguments) -> Callable[[Board], None] | None:
    """Return what the call does to the board, None for `list`. Raises BadArgument."""
    for field, text, most in (
        ("title", args.title, TITLE),
        ("note", args.note, NOTE),
        ("result", args.result, OUTCOME),
        ("reason", args.reason, OUTCOME),
    ):
        if text is not None and len(text) > most:
            raise BadArgument(f"{field}: expected a string of at most {most} characters, not of {len(text)}")
        if text is not None and not _is_text(text):
            raise BadArgument(f"{field}: expected a string without lone surrogates")
    match args.action:
        case "add":
            title = _required("title", args.title)
            return lambda board: board.add(title, args.note, args.after)
        case "start":
            return lambda board: board.start(args.id)
        case "done":
            return lambda board: board.finish(args.id, "done", result=args.result)
        case "fail":
            return lambda board: board.finish(args.id, "failed", reason=args.reason)
        case "cancel":
            name = _required("id", args.id)
            return lambda board: board.cancel(name, args.reason)
        case "reorder":
            if args.ids is None:
                raise BadArgument("ids is required to reorder: expected an array of all queued ids")
            names = args.ids
            return lambda board: board.reorder(names)
    return None


def _required(field: str, text: str | None) -> str:
    if not text:
        raise BadArgument(f"{field} is required: expected a string that is not empty")
    return text


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


TOOL = Tool(
    "task",
    "Keep a queue of what is to be done; it survives restarts of the server. add: queue a task (`title`, `note`, "
    "`after`). start: begin the head of the queue or `id`; one runs at a time. done (`result`) and fail (`reason`): "
    "end the running one. cancel: end `id`, queued or running. reorder: give `ids`, all queued in new order. "
    "list: look. Answers {running, queue, recent} always whole, recent = the last five that ended, newest first; a "
    "task is {id, title, note, state, created_at, started_at, finished_at, result, reason}.",
    TaskArguments,
    run,
)
