"""The messages of `patch`: why a diff does not apply and what to change, and what was forgiven."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from toolserver._fast import udiff

FORMS = (
    (b"*** Begin Patch", "this is a `*** Begin Patch` text of apply_patch"),
    (b"<<<<<<< SEARCH", "these are SEARCH/REPLACE blocks, which `edit` takes as `old` and `new`"),
    (b"***************", "this is a context diff; `diff -u` writes a unified one"),
)
"""Other forms of changes: how a line begins that shows the form, and what the error calls it."""
_NORMAL = re.compile(rb"\d+(?:,\d+)?[acd]\d+(?:,\d+)?")
SHOWN = 200
"""Characters of a line that an error shows."""


def text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _line(text: bytes) -> str:
    """Return a line in quotes, with invisible characters and bytes that are not UTF-8 escaped."""
    shown = text[: 4 * SHOWN].decode(errors="surrogateescape")
    cut = "…" if len(shown) > SHOWN else ""
    return f'"{"".join(map(_letter, shown[:SHOWN]))}{cut}"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


def other_form(lines: Iterable[bytes]) -> str:
    """Return what the error says of a text without file headers; empty if its form is not known."""
    before = b""
    for line in lines:
        for beginning, name in FORMS:
            if line.startswith(beginning):
                return name
        if line.startswith((b"< ", b"> ")) and _NORMAL.fullmatch(before):
            return "this is the output of plain `diff`; `diff -u` writes a unified diff"
        before = line
    return ""


def _places(error: udiff.Misplaced) -> str:
    lines = ", ".join(map(str, error.places))
    more = f" and {error.count - len(error.places)} more" if error.count > len(error.places) else ""
    return f"line {lines}" if error.count == 1 else f"lines {lines}{more}"


def misplaced(name: str, error: udiff.Misplaced) -> str:
    stated = "no stated line" if error.stated is None else f"stated line {error.stated}"
    hunk = f"hunk {error.hunk} of {name} (line {error.header} of the diff, {stated}) does not apply"
    if error.kind == "several":
        return f"{hunk}: it fits at {_places(error)}; correct its line number, or give more lines of context"
    if error.kind == "out of order":
        return (
            f"{hunk}: it fits at {_places(error)} only, out of the order of the hunks or over another one; "
            "put the hunks in the order of the file, each line in one hunk only"
        )
    if error.kind == "blanks":
        return (
            f"{hunk}: it fits at {_places(error)}, exactly or but for blanks at line ends; "
            "correct the blanks and the line number"
        )
    if error.kind == "no line":
        return (
            f"{hunk}: it only adds lines, which fit everywhere; give it context, or the line after which they go "
            "with a count of 0, as in @@ -5,0 +6,2 @@"
        )
    if error.kind == "too much":
        return f"{hunk}: its lines stand at too many places of the file; give exact line numbers or more context"
    if error.kind == "goes on":
        return (
            f"{hunk}: its counts leave out the lines after it, which stand in the file there too; "
            "correct the counts, or set the text apart with a line of words"
        )
    said = hunk
    if error.expected is not None:
        found = "the file ends before it" if error.found is None else f"found {_line(error.found)}"
        said += f": at line {error.line} of the file expected {_line(error.expected)}, {found}"
    if error.absent is not None:
        number, line = error.absent
        said += f"; {_line(line)} (line {number} of the diff) is nowhere in the file"
    else:
        said += "; its lines do not stand together anywhere in the file"
    return said + "; read the file again and take its lines as they are"


def notes(name: str, hunks: udiff.Hunks, hunk: int, header: int, stated: int, line: int, what: int) -> Iterator[str]:
    """Yield a sentence for each thing that was forgiven in one hunk."""
    where = f"hunk {hunk} of {name} (line {header} of the diff)"
    if what & udiff.UNNUMBERED:
        yield f"{where}: its header has no line numbers; applied at line {line}"
    if what & udiff.RECOUNTED:
        yield f"{where}: the counts in its header were wrong; its lines were counted"
    if what & udiff.MOVED:
        yield f"{where}: stated line {stated}, applied at line {line}"
    if what & udiff.BLANKS_ASIDE:
        said = "no stated line" if stated < 0 else f"stated line {stated}"
        yield f"{where}: blanks at line ends were set aside, {said}, applied at line {line}"
    if what & udiff.LOST_BLANK:
        lines = ", ".join(map(str, hunks.lost_blanks(hunk)))
        yield f"{where}: empty context without its blank, line {lines} of the diff"
    if what & udiff.NO_END:
        yield f"{where}: the no-newline marker is missing; the file goes on without a final line end"
    if what & udiff.CUT:
        yield f"{where}: the last line end of the diff is missing"
