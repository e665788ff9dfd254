"""The tool `patch`."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Told, Tool
from toolserver.errors import BadArgument
from toolserver.patches import parser, staging
from toolserver.workspace.paths import shown

INLINE = 16 * 1024
"""Bytes of a diff up to which it is read on the event loop, in well below a millisecond."""


class PatchArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `patch`."""

    diff: Annotated[
        str,
        Meta(description="A unified diff of one or several files, as `git diff` or `diff -u` writes it, or by hand."),
    ]
    cwd: Annotated[
        str | None,
        Meta(description="The directory that the diff's names are relative to. Default: the working directory's root."),
    ] = None


async def run(call: Call, args: PatchArguments) -> Answer:
    """Apply a whole diff or nothing of it."""
    try:
        text = args.diff.encode()
    except UnicodeEncodeError:
        raise BadArgument("diff: expected a string without lone surrogates") from None
    cwd = call.tree.directory_path(args.cwd)
    if len(text) <= INLINE:
        diff = parser.read(text)
    else:
        diff = await asyncio.to_thread(parser.read, text)
    places = staging.places(call.tree, cwd, diff)
    outcome = await call.services.writer.change(
        call.tree, places, lambda batch: staging.stage(batch, cwd, diff), brief=len(text) <= INLINE
    )
    answer: Answer = {"cwd": shown(cwd)["path"], "files": [shown(path)["path"] for path in outcome.files]}
    if outcome.notes:
        answer["notes"] = outcome.notes
    return answer


def told(call: Call, args: PatchArguments, answer: Answer | None) -> Told:
    """Tell the journal which files."""
    files = [] if answer is None else answer["files"]
    return Told(f"patch {', '.join(files)}".rstrip(), files)


TOOL = Tool(
    "patch",
    "Apply a unified diff (git's or plain, -p1) to one or several files: modify, create, delete, rename, copy, modes, "
    "binary patches; all of it or nothing. Context must match; wrong line numbers, wrong counts, `@@ @@` without "
    "numbers, lost blanks at line ends, a missing last line end, names without a/ b/, prose and a code fence around "
    "the diff are put right where only one reading fits, never by a guess. An LF diff fits a CRLF file. At most 10 MiB "
    "per file. Returns {cwd, files} with the files touched, relative to the root, `notes` on what was put right. An "
    "error names the hunk, the file and the line that differs: `read` the file there and send a corrected diff. For a "
    "single replacement use `edit`.",
    PatchArguments,
    run,
    told=told,
    large=True,
)
