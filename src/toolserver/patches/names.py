"""File names in the headers of a diff: quotes, timestamps, prefixes, and whether two names mean one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from toolserver.errors import BadArgument

GIT_PREFIXES = frozenset((b"a", b"b", b"c", b"i", b"o", b"w", b"1", b"2"))
"""The prefixes that git writes, those of `diff.mnemonicPrefix` included."""
DEV_NULL = b"/dev/null"
MAX_BLANKS = 1024
"""How many blanks of a `diff --git` line are tried as the separator of its two names."""
MAX_NAME = 4 * 4096
"""Bytes of a name in a diff: a path has at most 4096, and an escape takes four for one."""

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))? ([+-]\d\d):?(\d\d)")
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_QUOTED = re.compile(rb'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a `---` or `+++` line, prefix included; `raw` is None for /dev/null."""

    raw: bytes | None
    line: int
    epoch: bool = False
    """Whether its timestamp is the epoch, which means that there is no file."""
    cut: bool = False
    """Whether a timestamp followed after blanks, not after a tab."""


def malformed(line: int, text: str) -> BadArgument:
    """Return the error for a line of the diff, counted from 1."""
    return BadArgument(f"diff, line {line}: {text}")


def unquoted(text: bytes, line: int) -> tuple[bytes, bytes]:
    """Split text that begins with a name in C quotes into the name and the rest."""
    found = _QUOTED.match(text)
    if found is None:
        raise malformed(line, "a quoted name does not end")
    check_length(found[1], MAX_NAME, line)

    def plain(escape: re.Match[bytes]) -> bytes:
        letter = escape[1]
        if len(letter) == 3:
            return bytes([int(letter, 8)])
        if letter in b'"\\':
            return letter
        if letter not in _ESCAPES:
            raise malformed(line, f"a quoted name holds the unknown escape \\{letter.decode(errors='replace')}")
        return _ESCAPES[letter]

    return _ESCAPE.sub(plain, found[1]), text[found.end() :]


def side_name(text: bytes, line: int) -> Name:
    """Read the text after `--- ` or `+++ `: a name up to a tab, to blanks and a full timestamp, or to the end."""
    cut = False
    if text.startswith(b'"'):
        raw, rest = unquoted(text, line)
        stamp = rest.strip()
        if rest and rest[:1] not in b"\t ":
            raise malformed(line, "something follows a quoted name")
    else:
        raw, tab, stamp = text.partition(b"\t")
        if not tab:
            raw, stamp = without_stamp(text)
            cut = bool(stamp)
        check_length(raw, MAX_NAME, line)
    if raw == DEV_NULL:
        return Name(None, line, cut=cut)
    return Name(checked(raw, line, stripped(raw)), line, is_epoch(stamp), cut)


def without_stamp(text: bytes) -> tuple[bytes, bytes]:
    """Return a text without the blanks and full timestamp at its end, and the timestamp, empty if there is none."""
    words = text.rsplit(b" ", 3)
    stamp = b" ".join(words[1:])
    if len(words) < 4 or _STAMP.fullmatch(stamp) is None:
        return text, b""
    return words[0].rstrip(b" "), stamp


def check_length(text: bytes, limit: int, line: int) -> None:
    if len(text) > limit:
        raise malformed(line, f"a name of {len(text)} bytes; a path has at most 4096")


def plain_name(text: bytes, line: int) -> bytes:
    """Read the name of a rename or copy line, which has no prefix."""
    check_length(text, MAX_NAME + 2, line)
    if text.startswith(b'"'):
        text, rest = unquoted(text, line)
        if rest.strip():
            raise malformed(line, "something follows a quoted name")
    return checked(text, line, None)


def checked(raw: bytes, line: int, bare: bytes | None) -> bytes:
    """Refuse a name that is empty or absolute with its prefix or without it (`bare`; None if it has none)."""
    if not raw.strip():
        raise malformed(line, "the file's name is missing")
    if raw.startswith(b"/") or (bare or b"").startswith(b"/"):
        raise malformed(line, f"{raw.decode(errors='replace')} is an absolute path; names are relative to cwd")
    if bare == b"":
        raise malformed(line, f"{raw.decode(errors='replace')} names no file")
    return raw


def is_epoch(stamp: bytes) -> bool:
    """Return whether a timestamp is 1970-01-01 00:00:00 UTC, in any zone."""
    found = _STAMP.fullmatch(stamp.strip())
    if found is None or (found[3] or b"").strip(b"0"):
        return False
    try:
        return (
            datetime.fromisoformat(f"{found[1].decode()}T{found[2].decode()}{(found[4] + found[5]).decode()}") == _EPOCH
        )
    except ValueError:
        return False


def stripped(name: bytes) -> bytes | None:
    """Return a name without its first component; None if it has only one or begins with `..`."""
    prefix, slash, rest = name.partition(b"/")
    return rest if slash and prefix != b".." else None


def prefix_of(name: bytes) -> bytes:
    return name.partition(b"/")[0]


def agree(one: bytes, other: bytes) -> bool:
    """Return whether two names mean one file, with or without a prefix on either."""
    if one == other:
        return True
    one_bare, other_bare = stripped(one), stripped(other)
    return one_bare == other or one == other_bare or (one_bare is not None and one_bare == other_bare)


def git_splits(text: bytes, line: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield all ways to read the text after `diff --git ` as two names, quoted or not."""
    check_length(text, 2 * MAX_NAME + 5, line)
    if text.startswith(b'"'):
        first, rest = unquoted(text, line)
        if not rest.startswith(b" "):
            raise malformed(line, "`diff --git` is followed by two names")
        yield first, plain_name(rest[1:], line)
        return
    if text.endswith(b'"') and b' "' in text:
        at = text.index(b' "')
        second, rest = unquoted(text[at + 1 :], line)
        if not rest:
            yield text[:at], second
            return
    at = text.find(b" ")
    for _ in range(MAX_BLANKS):
        if at < 0:
            return
        if 0 < at < len(text) - 1:
            yield text[:at], text[at + 1 :]
        at = text.find(b" ", at + 1)


def name_one_file(text: bytes) -> bool:
    """Return whether the text after `diff --git ` is the old and the new name of one file."""
    try:
        git_names(text, 1)
    except BadArgument:
        return False
    return True


def git_names(text: bytes, line: int) -> tuple[bytes, bytes]:
    """Return the two names of a `diff --git` line, which must mean one file.

    Raises BadArgument if they do not, or if the line can be split in several such ways.
    """
    found = {(old, new) for old, new in git_splits(text, line) if agree(old, new)}
    if len(found) > 1:
        same = {(old, new) for old, new in found if stripped(old) == stripped(new)}
        found = same or found
    if len(found) != 1:
        raise malformed(
            line, "`diff --git` is followed by the old and the new name of one file; these cannot be told apart"
        )
    ((old, new),) = found
    return checked(old, line, stripped(old)), checked(new, line, stripped(new))
