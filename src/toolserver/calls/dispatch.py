"""Runs a tool by its name: tree, arguments, handler, in this order (specification, section 2)."""

from __future__ import annotations

from typing import Any

from toolserver.calls.call import Answer, Call, Services, Tool, Written
from toolserver.calls.client import Client
from toolserver.calls.coercion import check
from toolserver.calls.parsing import off_loop
from toolserver.calls.unknown_keys import unknown_keys
from toolserver.errors import BadArgument
from toolserver.workspace.names import MAIN


def tree_of(raw: dict[str, Any], url_tree: str | None) -> Any:
    """Return the tree that a call names, unchecked: the body's, else the URL's, else main."""
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
            return await tool.run(Call(tree, services, client), arguments)
    except BadArgument as error:
        if strange := await off_loop(size, unknown_keys, tool.arguments, raw):
            raise BadArgument(f"{error} (unknown: {', '.join(strange)})") from error
        raise
