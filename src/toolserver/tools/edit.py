"""The tool `edit`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from toolserver.calls.arguments import Arguments, Entry
from toolserver.calls.call import Answer, Call, Told, Tool
from toolserver.calls.path_arguments import PathBase64, PathText, place_of
from toolserver.errors import BadArgument, ToolError
from toolserver.workspace.paths import Place
from toolserver.writing.batch import Batch, File
from toolserver.writing.replacing import NoReplacement, TooLarge, replaced

FILES = 50
MAX_EDITS = 10_000
"""Edits of one call, over all its files."""
BRIEF = 8
"""Up to so many edits are made on the event loop where no disk has to be waited for."""


class Edit(Entry, kw_only=True, frozen=True):
    """One replacement."""

    old: Annotated[str, Meta(description="The text to replace, exactly as it is in the file; not empty.")]
    new: Annotated[str, Meta(description="The text to put in its place, taken literally.")]
    replace_all: Annotated[
        bool, Meta(description="Replace every occurrence of `old`; without it `old` must occur exactly once.")
    ] = False


Edits = Annotated[
    list[Edit], Meta(min_length=1, description="The replacements, each made in the text that the one before left.")
]


class FileEdits(Entry, kw_only=True, frozen=True):
    """The edits of one file of several."""

    path: PathText = None
    path_b64: PathBase64 = None
    edits: Edits


class EditArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `edit`."""

    path: PathText = None
    path_b64: PathBase64 = None
    edits: Edits | None = None
    files: Annotated[
        Annotated[list[FileEdits], Meta(min_length=1, max_length=FILES)] | None,
        Meta(description="Several files, each {path, edits}, in place of `path` and `edits`; all changed or none."),
    ] = None


Steps = list[tuple[bytes, bytes, bool]]
"""The edits of one file: old, new, whether all."""


async def run(call: Call, args: EditArguments) -> Answer:
    """Replace texts in one file or in several, all or nothing."""
    jobs = _jobs(call, args)

    def work(batch: Batch) -> None:
        files: dict[bytes, tuple[File, int]] = {}
        for where, place, steps in jobs:
            file = batch.look(place)
            _, before = files.get(file.path, (file, 0))
            files[file.path] = (file, before + len(steps))
            for index, step in enumerate(steps):
                _apply(file, step, f"{where}edits[{index}]", place)
        for file, count in files.values():
            # a single edit that was made changes the file; several may cancel each other out
            if count > 1 and file.content() == file.original():
                raise ToolError(f"{file.place.given}: the edits leave the file as it was")

    brief = sum(len(steps) for *_, steps in jobs) <= BRIEF
    await call.services.writer.change(call.tree, [place for _, place, _ in jobs], work, brief=brief)
    if args.files is None:
        (_, place, steps), *_ = jobs
        return {**place.shown(), "applied": len(steps)}
    rows = [{**place.shown(), "applied": len(steps)} for _, place, steps in jobs]
    return {"files": rows, "applied": sum(len(steps) for *_, steps in jobs)}


def _jobs(call: Call, args: EditArguments) -> list[tuple[str, Place, Steps]]:
    """Check the two forms and answer the edits by file: the place in the arguments, the file, its edits as bytes."""
    single = args.path is not None or args.path_b64 is not None or args.edits is not None
    if args.files is not None:
        if single:
            raise BadArgument("files: expected an array, or path and edits, not both")
        _check_count(sum(len(entry.edits) for entry in args.files), "files")
        return [
            (f"files[{at}].", place_of(call.tree, entry, f"files[{at}]."), _steps(entry.edits, f"files[{at}]."))
            for at, entry in enumerate(args.files)
        ]
    if not single:
        raise BadArgument("path and edits are required, or files: expected a string and an array, or an array")
    place = place_of(call.tree, args)
    if args.edits is None:
        raise BadArgument("edits is required: expected an array")
    _check_count(len(args.edits), "edits")
    return [("", place, _steps(args.edits, ""))]


def _check_count(count: int, field: str) -> None:
    if count > MAX_EDITS:
        raise BadArgument(f"{field}: expected an array of at most {MAX_EDITS} edits in all, not {count}")


def _steps(edits: list[Edit], where: str) -> Steps:
    steps = []
    for index, edit in enumerate(edits):
        name = f"{where}edits[{index}]"
        old, new = _bytes(edit.old, f"{name}.old"), _bytes(edit.new, f"{name}.new")
        if not old:
            raise BadArgument(f"{name}.old: expected a string that is not empty")
        steps.append((old, new, edit.replace_all))
    return steps


def _bytes(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadArgument(f"{field}: expected a string without lone surrogates") from None


def _apply(file: File, step: tuple[bytes, bytes, bool], name: str, place: Place) -> None:
    old, new, every = step
    try:
        file.put(replaced(file.content(), old, new, every, file.limit))
    except NoReplacement as error:
        raise ToolError(f"{name} of {place.given}: {error}") from None
    except TooLarge as error:
        raise file.too_large(error.size, f"{name}: ") from None


def told(call: Call, args: EditArguments, answer: Answer | None) -> Told:
    """Tell the journal which files, and how many edits."""
    jobs = _jobs(call, args)
    paths = list(dict.fromkeys(place.shown()["path"] for _, place, _ in jobs))
    return Told(f"edit {', '.join(paths)}: {sum(len(steps) for *_, steps in jobs)} edits", paths)


TOOL = Tool(
    "edit",
    "Replace exact texts in a file, or in up to 50 files at once, all or nothing. Each edit is {old, new, "
    "replace_all?}; `old` must occur exactly once unless replace_all; edits apply in order to the running text. "
    "Nothing is a pattern. In a CRLF file LF stands for CRLF. Give `path` and `edits`, or `files`. A file has at most "
    "10 MiB, before and after. Answers {path, applied} or {files: [{path, applied}], applied}; an error names the edit "
    "and what nearly matches. Get the exact text with `read`, without its line numbers; for more use `patch`.",
    EditArguments,
    run,
    told,
)
