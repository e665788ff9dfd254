"""The tool `write`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from toolserver._fast.text import utf8
from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Told, Tool
from toolserver.calls.path_arguments import PathBase64, PathText, place_of
from toolserver.errors import BadArgument, ToolError
from toolserver.workspace.paths import decode_base64
from toolserver.writing.batch import FILE_LIMIT, Batch


class WriteArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `write`."""

    path: PathText = None
    path_b64: PathBase64 = None
    content: Annotated[
        str | None, Meta(description="The whole new content as text, written byte for byte as UTF-8.")
    ] = None
    content_b64: Annotated[
        str | None, Meta(description="The whole new content as standard, padded base64, in place of `content`.")
    ] = None


async def run(call: Call, args: WriteArguments) -> Answer:
    """Make or replace a file."""
    place = place_of(call.tree, args)
    content = _content(args)
    if len(content) > FILE_LIMIT:
        raise ToolError(f"{place.given}: {len(content)} bytes, more than the {FILE_LIMIT} that a file may have")

    def work(batch: Batch) -> bool:
        file = batch.look(place)
        file.put([content])
        return not file.on_disk

    created = await call.services.writer.change(call.tree, [place], work, brief=True)
    return {**place.shown(), "bytes": len(content), "created": created}


def _content(args: WriteArguments) -> bytes | memoryview:
    if args.content is not None and args.content_b64 is not None:
        raise BadArgument("content and content_b64: expected a string in one of them, not in both")
    if args.content is not None:
        try:
            return utf8(args.content)
        except UnicodeEncodeError:
            raise BadArgument("content: expected a string without lone surrogates") from None
    if args.content_b64 is not None:
        return decode_base64(args.content_b64, "content_b64")
    raise BadArgument("content or content_b64 is required: expected a string")


def told(call: Call, args: WriteArguments, answer: Answer | None) -> Told:
    """Tell the journal which file, and how many bytes."""
    path = place_of(call.tree, args).shown()["path"]
    return Told(f"write {path}" + (f", {answer['bytes']} bytes" if answer else ""), [path])


TOOL = Tool(
    "write",
    "Make a file or replace all of its content, at most 10 MiB. Missing parent directories are made; an existing file "
    "keeps its mode and owner, a new one gets 0644 less the umask; a symlink inside the working directory is written "
    "through. The file is never seen half written. Give `content` (text) or `content_b64` (bytes). Answers {path, "
    "bytes, created}. To change a part of a file use `edit` or `patch`.",
    WriteArguments,
    run,
    told=told,
    large=True,
)
