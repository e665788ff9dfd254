"""Runs a call of a tool: tree, arguments, handler, in this order (specification, section 2)."""

from __future__ import annotations

import time
from typing import Any

from toolserver.calls.call import Answer, Call, Services, Tool, Written
from toolserver.calls.client import Client
from toolserver.calls.coercion import check
from toolserver.calls.parsing import off_loop
from toolserver.calls.unknown_keys import unknown_keys
from toolserver.errors import BadArgument, ToolError
from toolserver.state.journal import Line
from toolserver.workspace.names import MAIN


def tree_of(raw: dict[str, Any], url_tree: str | None) -> Any:
    """Return the tree that a call names, not checked yet: that of the body, else of the URL, else main."""
    name = raw.get("tree")
    if name is None:
        return MAIN if url_tree is None else url_tree
    return name


async def dispatch(
    services: Services, tool: Tool[Any], raw: dict[str, Any], url_tree: str | None, client: Client, *, size: int = 0
) -> Answer | Written:
    """Check the call, whose JSON took `size` bytes, and run the tool.

    Raises ToolError; an argument error also names the unknown keys of the call.
    """
    try:
        name = tree_of(raw, url_tree)
        if type(name) is not str:
            raise BadArgument("tree: expected a string")
        with services.workspace.tree(name) as tree:
            arguments = await off_loop(size, check, tool.arguments, raw)
            call = Call(tree, services, client)
            if tool.told is None:
                return await tool.run(call, arguments)
            return await _journaled(call, tool, arguments)
    except BadArgument as error:
        if strange := await off_loop(size, unknown_keys, tool.arguments, raw):
            raise BadArgument(f"{error} (unknown: {', '.join(strange)})") from error
        raise


async def _journaled(call: Call, tool: Tool[Any], arguments: Any) -> Answer | Written:
    """Run a tool, and write the journal's line before its answer; a call that is refused leaves none."""
    began = time.monotonic()
    try:
        answer = await tool.run(call, arguments)
    except ToolError as error:
        if error.status == 500:
            _tell(call, tool, arguments, None, f"error: {error}", began)
        raise
    assert isinstance(answer, dict)  # what changes files or runs a command has a small answer
    _tell(call, tool, arguments, answer, None, began)
    return answer


def _tell(
    call: Call, tool: Tool[Any], arguments: Any, answer: Answer | None, failure: str | None, began: float
) -> None:
    assert tool.told is not None
    told = tool.told(call, arguments, answer)
    if told is None:
        return
    root = call.tree.root
    line = Line(
        tool=tool.name,
        summary=told.summary,
        outcome=failure or told.outcome,
        ms=round((time.monotonic() - began) * 1000),
        paths=told.paths,
        task=call.services.tasks.running(root),
        secrets=told.secrets,
    )
    call.services.journal.add(root, line)
