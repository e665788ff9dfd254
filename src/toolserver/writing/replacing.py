"""Replaces a text in a file's bytes, and says what to change where it cannot (specification, section 4, edit)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence

from toolserver._fast.text import all_crlf, nearly, occurrences, replace_all

SHOWN = 5
"""How many places an error lists."""
CUT = 100
"""How many characters of a line an error shows."""
_NUMBERED = re.compile(rb"[ \t]*[0-9]+\t")
"""What `read` puts in front of each line."""


class NoReplacement(Exception):
    """The text cannot be replaced; the message says why, without the file's name."""


class TooLarge(Exception):
    """The result would have `size` bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def replaced(content: bytes, old: bytes, new: bytes, every: bool, limit: int) -> Sequence[bytes | memoryview]:
    """Return `content` with `old` replaced by `new`, as pieces; `old` must occur once, or at least once with `every`.

    In a CRLF file (a CR before every LF) a bare LF in `old` stands for CRLF where `old` is not there as it is, and a
    bare LF in `new` for CRLF unless `old` is there as it is and holds a line end. Raises NoReplacement, and TooLarge
    before anything over `limit` bytes is made.
    """
    if old == new:
        raise NoReplacement("old and new are the same text")
    count, places = occurrences(content, old, SHOWN)
    literal = count > 0 and b"\n" in old
    if not literal and (b"\n" in old or b"\n" in new) and all_crlf(content):
        new = _crlf(new)
        if count == 0:
            old = _crlf(old)
            count, places = occurrences(content, old, SHOWN)
        if old == new:
            raise NoReplacement("old and new are the same text with this file's line ends, CRLF")
    if count == 0:
        raise NoReplacement(f"old is not in the file{_near(content, old)}")
    if count > 1 and not every:
        lines = _line_numbers(content, places)
        more = ", …" if count > len(places) else ""
        raise NoReplacement(
            f"old is in the file {count} times, on lines {', '.join(map(str, lines))}{more}: "
            "give more of the text around the one that is meant, or replace_all"
        )
    size = len(content) + count * (len(new) - len(old))
    if size > limit:
        raise TooLarge(size)
    if count > 1:
        return [replace_all(content, old, new, count)]
    view = memoryview(content)
    return [view[: places[0]], new, view[places[0] + len(old) :]]


def _crlf(text: bytes) -> bytes:
    """Put a CR before every LF that has none."""
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


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
    """Return the rest of the sentence about a text that is not there: where it nearly is, and what differs."""
    spans = nearly(content, old, SHOWN)
    if spans:
        lines = _line_numbers(content, [start for start, _ in spans])
        told = _difference(content, old, *spans[0], lines[0])
        others = f"; so does line {', '.join(map(str, lines[1:]))}" if len(lines) > 1 else ""
        return f"; {told}{others}"
    bare = _without_numbers(old)
    if bare is None:
        return ""
    for text in (bare, _crlf(bare)):
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
    """Take the line numbers of `read` off, None where not every line has one."""
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
    """Say how a place in the file, words from `start` to `end`, differs from `old`: by the first line that does."""
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
    """Quote a line so that every character is seen; a long one is cut around where it begins to differ from `other`."""
    from_ = 0
    if len(line) > CUT:
        differs = next((at for at, (one, two) in enumerate(zip(line, other, strict=False)) if one != two), len(other))
        from_ = max(min(differs - CUT // 2, len(line) - CUT), 0)
    text = line[from_ : from_ + CUT].decode(errors="replace")
    before, after = "…" if from_ else "", "…" if from_ + CUT < len(line) else ""
    return f"{before}{json.dumps(text, ensure_ascii=False)}{after}"
