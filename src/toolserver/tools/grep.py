"""The tool `grep`."""

from __future__ import annotations

from typing import Annotated, Literal

import orjson
from msgspec import Meta

from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Tool
from toolserver.search.engine import Place, Question
from toolserver.search.globs import compiled
from toolserver.workspace.paths import shown

MAX_RESULTS = 2000
MAX_CONTEXT = 100
MAX_ANSWER = 10 << 20
"""Bytes of an answer's body."""

DESCRIPTION = f"""\
Search the contents of files for a regular expression, line by line. RE2 syntax: no look-around, no back-references; \
\\w \\d \\s and ignore_case are Unicode; ^ and $ are line ends. literal: true takes the pattern as plain text.
Searched are text files up to 10 MiB below cwd, hidden ones too; .git and .kd directories and what git ignores are \
left out, unless cwd itself is ignored. cwd may also be a single file. glob narrows the files as in the tool glob.
mode content (default) answers matches of path, line (from 1), text and context (null, or the lines around it joined \
by line breaks); files answers files; count answers counts of path and count (matching lines). Order: by path, then \
line. At most max results (default and most {MAX_RESULTS}); truncated: true means there are more. A line over 4096 \
bytes is cut around the match and marked with cut: true. Paths are relative to the working directory's root: give \
path and line (as offset) to read to see more."""


class GrepArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `grep`."""

    pattern: Annotated[str, Meta(description="What to find: a regular expression in RE2 syntax.")]
    cwd: Annotated[
        str | None,
        Meta(description="Directory or file to search, relative to the working directory's root. Default: the root."),
    ] = None
    glob: Annotated[
        str | None, Meta(description="Only files that fit this pattern, relative to cwd, such as *.py or src/**.")
    ] = None
    mode: Annotated[
        Literal["content", "files", "count"],
        Meta(description="content: matching lines; files: paths of files that match; count: matching lines per file."),
    ] = "content"
    context: Annotated[
        int, Meta(ge=0, extra={"lower_to": MAX_CONTEXT}, description="Lines shown before and after each match.")
    ] = 0
    ignore_case: Annotated[bool, Meta(description="Ignore upper and lower case.")] = False
    literal: Annotated[bool, Meta(description="Take the pattern as plain text, not as a regular expression.")] = False
    max: Annotated[
        int, Meta(ge=0, extra={"lower_to": MAX_RESULTS}, description="Results at most: lines, files or counts.")
    ] = MAX_RESULTS


_LISTS = {"content": "matches", "files": "files", "count": "counts"}


async def run(call: Call, args: GrepArguments) -> Answer:
    """Return the lines, files or counts that match."""
    glob = None if args.glob is None else compiled(args.glob, "glob")
    place = Place(*call.tree.directory_or_file(args.cwd))
    answer: Answer = {"cwd": shown(place.path)["path"], _LISTS[args.mode]: [], "truncated": False}
    question = Question(
        pattern=args.pattern,
        literal=args.literal,
        ignore_case=args.ignore_case,
        glob=None if place.file else glob,
        mode=args.mode,
        context=args.context,
        most=args.max,
        most_bytes=MAX_ANSWER - len(orjson.dumps(answer)),
    )
    found = await call.services.search.grep(call.tree, place, question, call.client.on_leave)
    answer[_LISTS[args.mode]] = orjson.Fragment(found.json)
    answer["truncated"] = found.truncated
    return answer


TOOL = Tool("grep", DESCRIPTION, GrepArguments, run)
