"""One replacement in a text, and the message that explains why it failed (specification, section 4, edit)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolserver._fast.text import nearly, occurrences
from toolserver.writing.line_ends import crlf, span_of, with_ends
from toolserver.writing.running_text import RunningText

SHOWN = 5
"""How many places an error lists."""
CUT = 100
"""How many characters of a line an error shows."""
INDEXED = 16
"""Edits of one file from which on an index finds their texts."""
SAME = "old and new are the same text"
_NUMBERED = re.compile(rb"[ \t]*[0-9]+\t")
"""The number and tab that `read` puts before each line."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One edit of a file: `old` becomes `new`, everywhere with `every`, else at the one place where it is."""

    old: bytes
    new: bytes
    every: bool = False


class NoReplacement(Exception):
    """The text cannot be replaced; the message says why, without the file's name."""


class ResultTooLarge(Exception):
    """The result would have `size` bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def running_text(content: bytes, replacements: Sequence[Replacement]) -> RunningText:
    """Return a text to make replacements in; for many of them with an index of what they look for."""
    if len(replacements) < INDEXED:
        return RunningText(content)
    sought = {one.old for one in replacements}
    if b"\r\n" in content:
        sought |= {crlf(old) for old in sought if b"\n" in old}
    return RunningText(content, sought)


def replace(text: RunningText, step: Replacement, limit: int) -> str | None:
    """Make one replacement; `old` must occur once, or at least once with `every`. Return what a note should tell.

    In a CRLF file (a CR before every LF) a bare LF in `old` stands for CRLF where `old` is not there as it is, and a
    bare LF in `new` for CRLF unless `old` is there as it is and holds a line end. For a file of mixed line ends see
    `line_ends`. Raises NoReplacement, and ResultTooLarge before anything over `limit` bytes is made.
    """
    old, new = step.old, step.new
    count, places = text.find(old)
    literal = count > 0 and b"\n" in old
    if not literal and (b"\n" in old or b"\n" in new) and text.all_crlf:
        new = crlf(new)
        if count == 0:
            old = crlf(old)
            count, places = text.find(old)
    if count == 0 and b"\n" in old and text.mixed:
        return _replace_mixed(text, step, limit)
    if count == 0:
        raise NoReplacement(f"old is not in the file{_near(text.whole(), old)}")
    if count > 1 and not step.every:
        whole = text.whole()
        _, offsets = occurrences(whole, old, SHOWN)
        lines = _line_numbers(whole, offsets)
        more = ", …" if count > len(offsets) else ""
        raise NoReplacement(
            f"old is in the file {count} times, on lines {', '.join(map(str, lines))}{more}: "
            "give more of the text around the one that is meant, or replace_all"
        )
    if old == new:
        return f"changed nothing: {SAME}" + ("" if step.old == step.new else " with this file's line ends, CRLF")
    _check_size(text.size + count * (len(new) - len(old)), limit)
    text.replace(old, new, count, places)
    return None


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise ResultTooLarge(size)


def _replace_mixed(text: RunningText, step: Replacement, limit: int) -> str:
    """Replace a text that is there but for its line ends, at one place only."""
    whole = text.whole()
    span = span_of(whole, step.old)
    if span is None:
        raise NoReplacement(f"old is not in the file{_near(whole, step.old)}")
    start, end = span
    old, new = whole[start:end], with_ends(whole, start, end, step.new)
    if old == new:
        return f"changed nothing: {SAME} but for line ends, and lines that stay keep theirs"
    _check_size(len(whole) + len(new) - len(old), limit)
    text.replace_at(text.place(start), old, new)
    return (
        "old was found with other line ends: the file has both CRLF and LF; lines that stay keep theirs, new ones take "
        "that of the line before"
    )


def _line_numbers(content: bytes, places: Sequence[int]) -> list[int]:
    numbers = []
    line, at = 1, 0
    for place in places:
        line += content.count(b"\n", at, place)
        at = place
        numbers.append(line)
    return numbers


# ------------------------------------------------------------------------------------------------- what nearly matches


def _near(content: bytes, old: bytes) -> str:
    """Return the rest of the message about a text that is not there: where it nearly matches, and what differs."""
    spans = nearly(content, old, SHOWN)
    if spans:
        lines = _line_numbers(content, [start for start, _ in spans])
        told = _difference(content, old, *spans[0], lines[0])
        others = f"; so does line {', '.join(map(str, lines[1:]))}" if len(lines) > 1 else ""
        return f"; {told}{others}"
    bare = _without_numbers(old)
    if bare is None:
        return ""
    for text in (bare, crlf(bare)):
        count, places = occurrences(content, text, SHOWN)
        if count:
            lines = _line_numbers(content, places)
            return (
                f", but without the line numbers that read puts in front of each line it is on line "
                f"{', '.join(map(str, lines))}"
            )
    spans = nearly(content, bare, SHOWN)
    if not spans:
        return ""
    line = _line_numbers(content, [spans[0][0]])[0]
    told = _difference(content, bare, *spans[0], line)
    return f"; old has line numbers as read puts them in front of each line; without them {told}"


def _without_numbers(old: bytes) -> bytes | None:
    """Return the text without the line numbers of `read`; None if a line has none."""
    lines = old.split(b"\n")
    last = lines.pop() if lines[-1] == b"" and len(lines) > 1 else None
    bare = []
    for line in lines:
        number = _NUMBERED.match(line)
        if number is None:
            return None
        bare.append(line[number.end() :])
    text = b"\n".join(bare if last is None else [*bare, last])
    return text if text.strip() else None


def _difference(content: bytes, old: bytes, start: int, end: int, line: int) -> str:
    """Return how `content[start:end]` differs from `old`, by the first line that does."""
    inner = old.strip()
    before = old.index(inner)
    tail = _tail(old[before + len(inner) :])
    mine = _lead(old[:before]) + inner + tail
    theirs = content[start:end]
    if before:
        theirs = _lead(content[max(start - CUT, 0) : start]) + theirs
    if tail:
        found = _tail(content[end : end + CUT])
        theirs += found if b"\n" in tail else found.rstrip(b"\n")
    pairs = itertools.zip_longest(mine.split(b"\n"), theirs.split(b"\n"), fillvalue=b"")
    for at, (wanted, found) in enumerate(pairs):
        if wanted != found:
            what = _kind(wanted, found) if mine.count(b"\n") == theirs.count(b"\n") else "line breaks"
            shown = f"line {line + at} has {_quoted(found, wanted)} where old has {_quoted(wanted, found)}"
            return f"line {line} nearly matches, but for {what}: {shown}"
    return f"line {line} nearly matches, but for blank lines before or after it"


_BLANKS = b" \t\r\v\f"


def _lead(blanks: bytes) -> bytes:
    """Return the white space at the end of a text that is on its last line."""
    last = blanks[blanks.rfind(b"\n") + 1 :]
    return last[len(last.rstrip(_BLANKS)) :]


def _tail(blanks: bytes) -> bytes:
    """Return the white space at the start of a text up to the end of its first line."""
    blanks = blanks[: len(blanks) - len(blanks.lstrip())]
    return blanks[: blanks.find(b"\n") + 1] or blanks


def _kind(wanted: bytes, found: bytes) -> str:
    if wanted.removesuffix(b"\r") == found.removesuffix(b"\r"):
        return "the line end, CRLF against LF"
    if wanted.rstrip() == found.rstrip():
        return "blanks at the line's end"
    if wanted.lstrip() == found.lstrip():
        return "the indentation, tabs against blanks" if (b"\t" in wanted) != (b"\t" in found) else "the indentation"
    return "white space, tabs against blanks" if (b"\t" in wanted) != (b"\t" in found) else "white space"


def _quoted(line: bytes, other: bytes) -> str:
    """Quote a line as JSON; a long one is cut around the first character that differs from `other`."""
    from_ = 0
    if len(line) > CUT:
        differs = next((at for at, (one, two) in enumerate(zip(line, other, strict=False)) if one != two), len(other))
        from_ = max(min(differs - CUT // 2, len(line) - CUT), 0)
    text = line[from_ : from_ + CUT].decode(errors="replace")
    before, after = "…" if from_ else "", "…" if from_ + CUT < len(line) else ""
    return f"{before}{json.dumps(text, ensure_ascii=False)}{after}"
