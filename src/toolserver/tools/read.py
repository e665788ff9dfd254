"""The tool `read` (specification, section 3)."""

from __future__ import annotations

import asyncio
import binascii
import functools
import os
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from msgspec import Meta

from toolserver._fast.files import read_cached, read_whole
from toolserver._fast.lines import number, text_within, utf8_of_utf16
from toolserver.calls.arguments import Arguments, Entry
from toolserver.calls.call import Answer, Call, Pieces, Tool, Written
from toolserver.calls.large_answers import ClientLeft, Share
from toolserver.calls.path_arguments import PathBase64, PathText, place_of
from toolserver.errors import BadArgument, ToolError
from toolserver.images.kinds import GIF, HEAD, WEBP, frame, image_mime, mime_of
from toolserver.images.scaling import CannotFitError, fit
from toolserver.workspace.offload import Readers
from toolserver.workspace.paths import Place, failure

MAX_FILE = 10_485_760
"""Bytes of a text or an image."""
MAX_IMAGES = 5_000_000
"""Bytes of base64 of all images of one call."""
MAX_TEXT = 64 * 1024 * 1024
"""Bytes of text of one call (specification, section 13)."""
MAX_SENT = 96 * 1024 * 1024
"""Bytes of that text as JSON: most is little longer, but a control character takes six."""
EXPANSION = 12
"""Bytes of JSON for one of a file, at most: an empty line and its number."""
MAX_PATHS = 50
DEFAULT_LIMIT = 2000
INLINE = 262_144
"""Bytes of files that a call reads on the event loop if they are in the page cache: a thread would take longer."""

Offset = Annotated[int, Meta(ge=0, description="The first line to show, counted from 1; 0 means 1.")]
Limit = Annotated[int, Meta(ge=0, description="How many lines to show at most.")]


class ReadEntry(Entry, kw_only=True, frozen=True):
    """One file of `paths` with a window of its own."""

    path: PathText = None
    path_b64: PathBase64 = None
    offset: Offset = 1
    limit: Limit = DEFAULT_LIMIT


class ReadArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `read`."""

    path: PathText = None
    path_b64: PathBase64 = None
    paths: Annotated[
        Annotated[list[str | ReadEntry], Meta(min_length=1, max_length=MAX_PATHS)] | None,
        Meta(
            description="Several files in one call, instead of `path`: 1 to 50, each a path, to which the `offset` and"
            " `limit` of the call apply, or an object {path, offset, limit} with its own.",
        ),
    ] = None
    offset: Offset = 1
    limit: Limit = DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class Content:
    """What was read of a file: the head of a binary one, else the whole."""

    size: int
    data: bytes
    image: str | None
    """The mime type of an image."""
    binary: bool = False


@dataclass(slots=True)
class Allowance:
    """What is left of the limits of one call."""

    images: int = MAX_IMAGES
    """Bytes of base64 of its images."""
    inline: int = INLINE
    """Bytes of files that are read on the event loop."""
    text: int = MAX_TEXT
    """Bytes of text, as UTF-8."""
    sent: int = MAX_SENT
    """Bytes of text as JSON."""
    several: bool = False
    """The call names several files: one that does not fit fails instead of being cut."""
    share: Share | None = None
    """The call's share of the memory of large answers."""


class _Full(ToolError):
    """A file does not fit into what is left of the text of the call."""

    def __init__(self, given: str) -> None:
        super().__init__(
            f"{given}: one call of read shows at most {MAX_TEXT} bytes of text, and the files before it leave too "
            "little; read it, and those after it, in a further call"
        )


async def run(call: Call, args: ReadArguments) -> Answer | Written:
    """Return one file, or `{files}` for `paths`."""
    if args.paths is None:
        shown = await _shown(call, place_of(call.tree, args), args.offset, args.limit, Allowance())
        return shown if isinstance(shown, dict) else Written(shown)
    entries = [
        ReadEntry(path=entry, offset=args.offset, limit=args.limit) if isinstance(entry, str) else entry
        for entry in args.paths
    ]
    for index, entry in enumerate(entries):
        if entry.path is None and entry.path_b64 is None:
            raise BadArgument(f"paths[{index}].path is required: expected a string")
    left = asyncio.Event()
    call.client.on_leave(left.set)
    files: list[Answer | Pieces] = []
    allowance = Allowance(several=True)
    full = False
    for index, entry in enumerate(entries):
        if left.is_set():
            raise ClientLeft("the client left")
        try:
            place = place_of(call.tree, entry, f"paths[{index}].")
            if full:
                raise _Full(place.given)
            files.append(await _shown(call, place, entry.offset, entry.limit, allowance))
        except ToolError as error:
            full = full or isinstance(error, _Full)
            given = {"path_b64": entry.path_b64} if entry.path is None else {}
            files.append({"path": _as_given(entry), **given, "error": str(error)})
    answer = _joined(files)
    if allowance.share is not None:
        allowance.share.shrink(answer.size if isinstance(answer, Written) else 0)
    return answer


def _joined(files: list[Answer | Pieces]) -> Answer | Written:
    """Return `{files}`; in pieces where a file is JSON already."""
    if all(isinstance(file, dict) for file in files):
        return {"files": files}
    pieces: Pieces = [b'{"files":[']
    for file in files:
        pieces += [orjson.dumps(file), b","] if isinstance(file, dict) else [*file, b","]
    pieces[-1] = b"]}"
    return Written(pieces)


def _as_given(entry: ReadEntry) -> str:
    """Return the path of an entry as given; a `path_b64` decoded as far as possible."""
    if entry.path is not None:
        return entry.path.encode(errors="replace").decode()
    try:
        return binascii.a2b_base64((entry.path_b64 or "").encode()).decode(errors="replace")
    except ValueError:
        return ""


# ------------------------------------------------------------------------------------------------------ one file


async def _shown(call: Call, place: Place, offset: int, limit: int, allowance: Allowance) -> Answer | Pieces:
    """Return one file; one read in a thread as JSON. Raises ToolError with the path."""
    fd, status = call.tree.open_regular(place)
    try:
        if status.st_size <= allowance.inline and (data := read_cached(fd, status.st_size)) is not None:
            allowance.inline -= len(data)
            content = _content(place, len(data), data)
            shown = _present(place, content, offset, limit, allowance)
            return await _scaled(call.services.readers, place, content, allowance) if shown is None else shown
        if allowance.share is None:
            most = MAX_SENT if allowance.several else min(EXPANSION * min(status.st_size, MAX_FILE), MAX_SENT)
            allowance.share = await call.services.answer_memory.take(most, call.client)
        own, fd = fd, -1
    finally:
        if fd >= 0:
            os.close(fd)

    def work() -> tuple[Content, Pieces | None]:
        content = _load(own, place, status.st_size)
        return content, _written(place, content, offset, limit, allowance)

    content, written = await call.services.readers.with_descriptor(own, work)
    if written is None:
        return await _scaled(call.services.readers, place, content, allowance)
    if not allowance.several:
        allowance.share.shrink(sum(map(len, written)))
    return written


def _load(fd: int, place: Place, size: int) -> Content:
    """Read a file, blocking; of a binary one only the head."""
    try:
        head = os.pread(fd, HEAD, 0)
        content = _content(place, size, head)
        if content.binary:
            return content
        if size > MAX_FILE:
            raise _too_large(place, size)
        data = read_whole(fd, MAX_FILE + 1, size)
        if len(data) > MAX_FILE:  # it grew while it was read
            raise _too_large(place, max(os.fstat(fd).st_size, len(data)))
    except OSError as error:
        raise failure(place.given, error) from error
    return _content(place, len(data), data)


def _too_large(place: Place, size: int) -> ToolError:
    return ToolError(f"{place.given} has {size} bytes; read shows text and images of at most {MAX_FILE} bytes")


def _content(place: Place, size: int, data: bytes) -> Content:
    """Recognise a file by its first bytes."""
    image = image_mime(data)
    binary = image is None and _utf16_order(data) is None and data.find(b"\0", 0, HEAD) >= 0
    return Content(size, data, image, binary)


def _utf16_order(data: bytes) -> str | None:
    return {b"\xff\xfe": "little", b"\xfe\xff": "big"}.get(data[:2])


def _present(place: Place, content: Content, offset: int, limit: int, allowance: Allowance) -> Answer | None:
    """Return the answer for a file; None for an image that must be scaled first."""
    if content.image is not None:
        if 4 * ((len(content.data) + 2) // 3) > allowance.images:
            return None
        image = _image(content.image, content.data, frame(content.data, content.image), allowance)
        return {**place.shown(), "size": content.size, "image": image}
    if content.binary:
        return _binary(place, content)
    text = _text(place, content, offset, limit, allowance)
    told = {"total_lines": text.total, "truncated": text.truncated}
    return {**place.shown(), "content": orjson.Fragment(b"".join(text.json)), **told}


def _written(place: Place, content: Content, offset: int, limit: int, allowance: Allowance) -> Pieces | None:
    """Return the answer of `_present` as JSON in pieces, without copying the text again."""
    if content.image is not None or content.binary:
        shown = _present(place, content, offset, limit, allowance)
        return None if shown is None else [orjson.dumps(shown)]
    text = _text(place, content, offset, limit, allowance)
    before = orjson.dumps(place.shown())[:-1] + b',"content":'
    after = orjson.dumps({"total_lines": text.total, "truncated": text.truncated})
    return [before, *text.json, b"," + after[1:]]


@dataclass(frozen=True, slots=True)
class Text:
    """Numbered lines: a JSON string in pieces, the lines of the whole file, and whether some remain."""

    json: Pieces
    total: int
    truncated: bool


def _text(place: Place, content: Content, offset: int, limit: int, allowance: Allowance) -> Text:
    """Number the requested lines, as many as the limits of the call allow. Raises _Full."""
    data = content.data
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    if (order := _utf16_order(data)) is not None:
        data = utf8_of_utf16(data, big=order == "big", start=2)
    json, total, truncated = number(data, offset=max(offset, 1), limit=limit, start=start)
    if not allowance.several and len(json) <= allowance.text:
        return Text([json], total, truncated)
    size, end, _ = text_within(json, allowance.text)
    whole = end == len(json) - 1
    if allowance.several and (not whole or len(json) > allowance.sent):
        raise _Full(place.given)
    allowance.text -= size
    allowance.sent -= len(json)
    return Text([json], total, truncated) if whole else Text([memoryview(json)[:end], b'"'], total, True)


def _image(mime: str, data: bytes, size: tuple[int, int] | None, allowance: Allowance) -> dict[str, Any]:
    # base64 needs no escapes in JSON; a fragment avoids a Python string of it
    text = b'"' + binascii.b2a_base64(data, newline=False) + b'"'
    allowance.images -= len(text) - 2
    sides = {} if size is None else {"width": size[0], "height": size[1]}
    return {"mime": mime, "data_b64": orjson.Fragment(text), **sides}


def _binary(place: Place, content: Content, hint: str | None = None) -> Answer:
    mime = content.image or mime_of(content.data, place.path.decode(errors="replace"))
    told = {} if hint is None else {"hint": hint}
    return {**place.shown(), "binary": True, "size": content.size, "mime": mime, **told}


async def _scaled(readers: Readers, place: Place, content: Content, allowance: Allowance) -> Answer:
    """Return an image that does not fit, scaled down, or in the binary form with a hint."""
    assert content.image is not None
    whole = f"The image takes {4 * ((content.size + 2) // 3)} bytes as base64"
    room = f"one call's images take at most {MAX_IMAGES}, of which {allowance.images} are left"
    if content.image in (GIF, WEBP):
        return _binary(place, content, f"{whole}; {room}, and only PNG and JPEG are made smaller.")
    try:
        fitted = await readers.with_image(
            functools.partial(fit, content.data, content.image, allowance.images // 4 * 3)
        )
    except CannotFitError as error:
        return _binary(place, content, f"{whole}; {room}, and it was not made smaller: {error}.")
    before = frame(content.data, content.image)
    assert before is not None
    return {
        **place.shown(),
        "size": content.size,
        "image": _image(content.image, fitted.data, (fitted.width, fitted.height), allowance),
        "downscaled_from": {"width": before[0], "height": before[1]},
    }


DESCRIPTION = f"""\
Read one file (`path`) or up to {MAX_PATHS} at once (`paths`). Text is {{path, content, total_lines, truncated}}: \
each line is its number, a tab and the text. Lines `offset` (default 1) to `offset` + `limit` - 1 come (default \
{DEFAULT_LIMIT} lines); `truncated` true means that lines remain: call again with a larger `offset`. A PNG, JPEG, GIF \
or WebP image comes as {{path, size, image: {{mime, data_b64, width, height}}}}, all images of a call together at most \
{MAX_IMAGES} bytes of base64 (a larger PNG or JPEG is made smaller and tells `downscaled_from`); any other binary \
file comes as {{path, binary, size, mime}}. `paths` answers {{files}} in order, a file that fails as {{path, error}}. \
Text and images over {MAX_FILE} bytes fail with their size. One call shows at most {MAX_TEXT} bytes of text: read \
files that fail for it in a further call. A directory fails: list it with `glob`. To find the lines \
worth reading use `grep`; to change what was read use `edit`, without the line numbers."""

TOOL = Tool("read", DESCRIPTION, ReadArguments, run, large=True)
