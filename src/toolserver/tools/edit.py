"""The tool `edit`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from msgspec import Meta

from toolserver.calls.arguments import Arguments, Entry
from toolserver.calls.call import Answer, Call, Told, Tool
from toolserver.calls.path_arguments import HasPath, PathBase64, PathText, place_of
from toolserver.errors import BadArgument, ToolError
from toolserver.workspace.paths import Place
from toolserver.writing.batch import Batch, File
from toolserver.writing.replacing import NoReplacement, Replacement, ResultTooLarge, replace, running_text

FILES = 50
MAX_EDITS = 10_000
"""Edits of one call, over all its files."""
BRIEF = 8
"""Up to so many edits may be made on the event loop, where no disk is involved."""


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


@dataclass(frozen=True, slots=True)
class FileJob:
    """The edits of one file: their place in the arguments, the file, and what is replaced."""

    where: str
    place: Place
    steps: list[Replacement]


async def run(call: Call, args: EditArguments) -> Answer:
    """Replace texts in one file or in several, all or nothing."""
    jobs = _jobs(call, args)
    count = sum(len(job.steps) for job in jobs)
    places = [job.place for job in jobs]
    notes = await call.services.writer.change(call.tree, places, partial(_stage, jobs), brief=count <= BRIEF)
    rows: list[Answer] = [{**job.place.shown(), "applied": len(job.steps)} for job in jobs]
    more = {"notes": notes} if notes else {}
    return {**rows[0], **more} if args.files is None else {"files": rows, "applied": count, **more}


def _stage(jobs: list[FileJob], batch: Batch) -> list[str]:
    """Stage all edits in a batch and return the notes. Raises ToolError where one cannot be made."""
    notes: list[str] = []
    by_file: dict[bytes, list[str]] = {}
    count: Counter[bytes] = Counter()
    for job in jobs:
        file = batch.look(job.place)
        mine = _edit(file, job)
        notes += mine
        by_file.setdefault(file.path, []).extend(mine)
        count[file.path] += len(job.steps)
    for path, mine in by_file.items():
        file = batch.files[path]
        if not file.changed:
            raise ToolError(mine[0])
        # a single edit that was made changes the file; several may undo each other
        if count[path] > 1 and file.content() == file.original():
            raise ToolError(f"{file.place.given}: the edits leave the file as it was")
    return notes


def _edit(file: File, job: FileJob) -> list[str]:
    """Make the edits of one entry in the running text of its file; return the notes."""
    text = running_text(file.content(), job.steps)
    notes = []
    for index, step in enumerate(job.steps):
        name = f"{job.where}edits[{index}]"
        try:
            note = replace(text, step, file.limit)
        except NoReplacement as error:
            raise ToolError(f"{name} of {job.place.given}: {error}") from None
        except ResultTooLarge as error:
            raise file.too_large(error.size, f"{name}: ") from None
        if note is not None:
            notes.append(f"{name} of {job.place.given} {note}")
    if text.changed:
        file.put(text.pieces())
    return notes


def _jobs(call: Call, args: EditArguments) -> list[FileJob]:
    """Check the two forms and return the edits by file."""
    single = args.path is not None or args.path_b64 is not None or args.edits is not None
    if args.files is not None:
        if single:
            raise BadArgument("files: expected an array, or path and edits, not both")
        _check_count(sum(len(entry.edits) for entry in args.files), "files")
        return [_job(call, entry, entry.edits, f"files[{at}].") for at, entry in enumerate(args.files)]
    if not single:
        raise BadArgument("path and edits are required, or files: expected a string and an array, or an array")
    if args.edits is None:
        place_of(call.tree, args)
        raise BadArgument("edits is required: expected an array")
    _check_count(len(args.edits), "edits")
    return [_job(call, args, args.edits, "")]


def _job(call: Call, entry: HasPath, edits: list[Edit], where: str) -> FileJob:
    return FileJob(where, place_of(call.tree, entry, where), _steps(edits, where))


def _check_count(count: int, field: str) -> None:
    if count > MAX_EDITS:
        raise BadArgument(f"{field}: expected an array of at most {MAX_EDITS} edits in all, not {count}")


def _steps(edits: list[Edit], where: str) -> list[Replacement]:
    steps = []
    for index, edit in enumerate(edits):
        name = f"{where}edits[{index}]"
        old, new = _bytes(edit.old, f"{name}.old"), _bytes(edit.new, f"{name}.new")
        if not old:
            raise BadArgument(f"{name}.old: expected a string that is not empty")
        steps.append(Replacement(old, new, edit.replace_all))
    return steps


def _bytes(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadArgument(f"{field}: expected a string without lone surrogates") from None


def told(call: Call, args: EditArguments, answer: Answer | None) -> Told:
    """Tell the journal which files, and how many edits."""
    jobs = _jobs(call, args)
    paths = list(dict.fromkeys(job.place.shown()["path"] for job in jobs))
    return Told(f"edit {', '.join(paths)}: {sum(len(job.steps) for job in jobs)} edits", paths)


TOOL = Tool(
    "edit",
    "Replace exact texts in a file, or in up to 50 files at once, all or nothing. Each edit is {old, new, "
    "replace_all?}; `old` must occur exactly once unless replace_all; edits apply in order to the running text, "
    "at most 10 000 in a call. Nothing is a pattern. In a CRLF file LF stands for CRLF. Give `path` and `edits`, or "
    "`files`. A file has at most 10 MiB, before and after. Answers {path, applied} or {files: [{path, applied}], "
    "applied}, with `notes` where an edit changed nothing or `old` was found with other line ends; an error names the "
    "edit and what nearly matches. Get the exact text with `read`, without its line numbers; for more use `patch`.",
    EditArguments,
    run,
    told=told,
    large=True,
)
