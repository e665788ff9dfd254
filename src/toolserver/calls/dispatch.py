"""Runs a tool by its name: tree, arguments, handler, in this order (specification, section 2)."""

from __future__ import annotations

from typing import Any

from toolserver.calls.arguments import check, unknown_keys
from toolserver.calls.call import Answer, Call, Services, Tool
from toolserver.calls.client import Client
from toolserver.errors import BadArgument
from toolserver.workspace.root import MAIN


def tree_of(raw: dict[str, Any], url_tree: str | None) -> Any:
    """Return the tree that a call names, unchecked: the body's, else the URL's, else main."""
    name = raw.get("tree")
    if name is None:
        return MAIN if url_tree is None else url_tree
    return name


async def dispatch(
    services: Services, tool: Tool[Any], raw: dict[str, Any], url_tree: str | None, client: Client
) -> Answer:
    """Check the call and run the tool. Raises ToolError; an argument error names the unknown keys that came too."""
    try:
        name = tree_of(raw, url_tree)
        if type(name) is not str:
            raise BadArgument("tree: expected a string")
        with services.workspace.tree(name) as tree:
            return await tool.run(Call(tree, services, client), check(tool.arguments, raw))
    except BadArgument as error:
        if strange := unknown_keys(tool.arguments, raw):
            raise BadArgument(f"{error} (unknown: {', '.join(strange)})") from error
        raise
