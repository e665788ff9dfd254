"""The tool `read`."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta

from toolserver.tools._arguments import Arguments
from toolserver.tools._paths import PathBase64, PathText, place_of
from toolserver.tools._tool import Answer, Call, Tool


class ReadArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `read`."""

    path: PathText = None
    path_b64: PathBase64 = None
    offset: Annotated[int, Meta(ge=0, description="First line, from 1.")] = 1
    limit: Annotated[int, Meta(ge=0, description="How many lines.")] = 2000


async def run(call: Call, args: ReadArguments) -> Answer:
    """Answer the lines of a file, each with its number."""
    place = place_of(call.tree, args)
    fd, _ = call.tree.open_regular(place)
    with os.fdopen(fd, "rb") as file:
        lines = file.read().decode(errors="replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    first = max(args.offset, 1) - 1
    window = lines[first : first + args.limit]
    content = "\n".join(f"{number}\t{line.removesuffix(chr(13))}" for number, line in enumerate(window, first + 1))
    truncated = first + len(window) < len(lines)
    return {**place.shown(), "content": content, "total_lines": len(lines), "truncated": truncated}


TOOL = Tool("read", "Read a text file with line numbers, at most 2000 lines at once.", ReadArguments, run)
