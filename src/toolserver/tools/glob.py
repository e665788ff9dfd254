"""The tool `glob`."""

from __future__ import annotations

from typing import Annotated

import orjson
from msgspec import Meta

from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Tool
from toolserver.search.engine import MAX_PATHS, Place
from toolserver.search.globs import compiled
from toolserver.workspace.paths import shown

DESCRIPTION = f"""\
Find files by name, newest first (by modification time), at most {MAX_PATHS}. Regular files and links to files, hidden \
ones too; .git and .kd directories and what git ignores are left out, unless cwd itself is ignored.
Patterns: * and ? (within one name), [a-z], [!a-z], {{a,b}}, ** (any number of directories); \\ makes the next \
character plain. Without a / a pattern matches the file's name at any depth below cwd (*.py); with one it is relative \
to cwd (src/**/*.ts, docs/). Case counts; there is no negation.
Answers cwd, paths (relative to the working directory's root, ready for read, edit and grep) and truncated (true: \
there are more, older ones; use a narrower pattern or cwd). To find files by what they contain use grep."""


class GlobArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `glob`."""

    pattern: Annotated[str, Meta(description="Which files, such as *.py or src/**/*.{ts,tsx}.")]
    cwd: Annotated[
        str | None,
        Meta(description="Directory to look in, relative to the working directory's root. Default: the root."),
    ] = None


async def run(call: Call, args: GlobArguments) -> Answer:
    """Return the files whose names fit, the newest first."""
    glob = compiled(args.pattern, "pattern")
    place = Place(call.tree.directory_path(args.cwd))
    found = await call.services.search.glob(call.tree, place, glob, call.client.on_leave)
    return {"cwd": shown(place.path)["path"], "paths": orjson.Fragment(found.json), "truncated": found.truncated}


TOOL = Tool("glob", DESCRIPTION, GlobArguments, run)
