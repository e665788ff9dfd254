"""Reads a unified diff, git's or a plain one, into its parts: what is to be done with which file (section 4)."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field

from toolserver._fast import udiff
from toolserver.errors import BadArgument
from toolserver.workspace.diff_names import (
    Name,
    agree,
    git_names,
    git_splits,
    malformed,
    plain_name,
    side_name,
)

MODES = {b"100644": 0o644, b"100755": 0o755}
_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")
_BINARY = re.compile(rb"(literal|delta) ([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Binary:
    """The forward half of a GIT binary patch."""

    line: int
    delta: bool
    size: int
    """Of the inflated data."""
    data: bytes
    """Deflated."""

    def inflated(self) -> bytes:
        """Answer the content or the delta. Raises BadArgument where it is damaged."""
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(self.data, self.size + 1)
        except zlib.error as error:
            raise malformed(self.line, f"the binary data cannot be inflated: {error}") from error
        if len(data) != self.size or not stream.eof or stream.unused_data:
            raise malformed(self.line, f"the binary data does not have the {self.size} bytes it states")
        return data


@dataclass(slots=True)
class Part:
    """One part of a diff: a header and what belongs to it."""

    line: int
    """Of its header, from 1."""
    mail: int
    """Which mail of a series it is in."""
    git: bytes | None = None
    """What follows `diff --git `; None in a plain part."""
    old: Name | None = None
    new: Name | None = None
    move: str = ""
    """`rename`, `copy` or nothing."""
    source: bytes | None = None
    target: bytes | None = None
    new_file: bool = False
    deleted: bool = False
    mode: int | None = None
    """What the file shall have."""
    index: tuple[bytes, bytes] | None = None
    binary: Binary | None = None
    hunks: udiff.Hunks | None = None

    @property
    def creates(self) -> bool:
        """Whether the file must not exist before."""
        return not self.move and (
            self.new_file or (self.old is not None and (self.old.raw is None or (self.git is None and self.old.epoch)))
        )

    @property
    def deletes(self) -> bool:
        """Whether the file must be gone afterwards."""
        return self.deleted or (self.new is not None and self.new.raw is None)

    @property
    def alike(self) -> bool:
        """Whether `diff --git` gives the same name on both sides, so that it has no prefix of git's."""
        return self.git is not None and any(old == new for old, new in git_splits(self.git, self.line))


@dataclass(slots=True)
class Parts:
    """A whole diff: its parts in order, and what was forgiven in reading it."""

    parts: list[Part] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read(text: bytes) -> Parts:
    """Read a diff. Raises BadArgument with the line of the diff that is wrong."""
    return _Reading(text).read()


class _Reading:
    """The state of reading one diff."""

    def __init__(self, text: bytes) -> None:
        self.diff = udiff.Diff(text)
        self.out = Parts()
        self.part: Part | None = None
        self.at = 0
        self.mail = 0
        self.half = -1
        """The first half of a file header since the last header or body, as an index."""

    def read(self) -> Parts:
        kind = udiff.TEXT
        while kind != udiff.END:
            in_header = self.part is not None and self.part.git is not None and self.part.hunks is None
            kind, self.at = self.diff.next(self.at, in_header, self.half < 0)
            self.line(kind)
        self.finish()
        if not self.out.parts:
            raise BadArgument(
                "diff: expected a unified diff, a string with a `--- a/FILE` line, a `+++ b/FILE` line and hunks that "
                "begin with `@@ -line,count +line,count @@`; this one has no file header"
            )
        return self.out

    def line(self, kind: int) -> None:
        """Take one line that is more than text."""
        if kind == udiff.HUNK:
            self.hunks()
        elif kind == udiff.PAIR:
            self.pair()
        elif kind == udiff.GIT:
            if not self.started:
                self.half = -1
            self.finish()
            self.part = Part(self.at + 1, self.mail, git=self.diff.line(self.at)[len(b"diff --git ") :])
            self.at += 1
        elif kind == udiff.EXTENDED:
            self.extended(self.diff.line(self.at), self.at + 1)
            self.at += 1
        elif kind == udiff.BINARY:
            self.binary()
        elif kind == udiff.DIFFER:
            raise malformed(
                self.at + 1, "binary files without their data are unsupported; `git diff --binary` writes it"
            )
        elif kind == udiff.HALF:
            self.half = self.at
            self.at += 1
        elif kind == udiff.MAIL:
            self.finish()
            self.mail += 1
            self.at += 1

    @property
    def started(self) -> bool:
        """Whether there was a file header yet; before the first one everything is text."""
        return self.part is not None or bool(self.out.parts)

    def check_half(self) -> None:
        """Refuse a hunk that comes after one half of a file header: nobody knows which file it is for."""
        if self.half >= 0:
            raise malformed(
                self.half + 1,
                "a file header is a `--- ` line and a `+++ ` line after it; one of the two is missing here",
            )

    # -------------------------------------------------------------------------------------------------- what is read

    def hunks(self) -> None:
        self.check_half()
        part = self.part
        if part is None:
            raise malformed(self.at + 1, "a hunk before any file header (a `--- ` and a `+++ ` line)")
        if part.binary is not None or (part.git is not None and part.new is None):
            raise malformed(self.at + 1, "a hunk without the `--- ` and `+++ ` lines of its file")
        if part.hunks is not None:
            raise malformed(self.at + 1, "a hunk that no file header goes before")
        try:
            part.hunks, self.at = self.diff.hunks(self.at)
        except udiff.MalformedDiff as error:
            raise malformed(error.line, str(error)) from error

    def pair(self) -> None:
        old = side_name(self.diff.line(self.at)[4:], self.at + 1)
        new = side_name(self.diff.line(self.at + 1)[4:], self.at + 2)
        if self.started:
            self.check_half()
        part = self.part
        if part is None or part.hunks is not None or part.git is None:
            self.finish()
            part = self.part = Part(self.at + 1, self.mail)
        elif part.new is not None or part.binary is not None:
            raise malformed(self.at + 1, "a second file in one `diff --git` header")
        part.old, part.new = old, new
        for name in (old, new):
            if name.cut:
                self.out.notes.append(f"line {name.line} of the diff: a timestamp without a tab before it was left out")
        if old.raw is None and new.raw is None:
            raise malformed(self.at + 1, "both names are /dev/null")
        self.half = -1
        self.at += 2

    def extended(self, text: bytes, line: int) -> None:
        part = self.part
        assert part is not None
        for start, take in _EXTENDED.items():
            if text.startswith(start):
                take(part, text[len(start) :], line)
                return

    def binary(self) -> None:
        part, line = self.part, self.at + 1
        if part is None or part.git is None or part.hunks is not None or part.new is not None:
            raise malformed(line, "a binary patch without its `diff --git` header")
        if part.binary is not None:
            raise malformed(line, "a second binary patch in one `diff --git` header")
        if part.index is None:
            raise malformed(line, "a binary patch without the `index` line that tells what it is for")
        self.at += 1
        forward = self.binary_half()
        if forward is None:
            raise malformed(self.at + 1, "a binary patch begins with `literal SIZE` or `delta SIZE`")
        part.binary = forward
        self.binary_half()  # the way back, which is not needed

    def binary_half(self) -> Binary | None:
        if self.at >= len(self.diff):
            return None
        line = self.at + 1
        found = _BINARY.fullmatch(self.diff.line(self.at))
        if found is None:
            return None
        try:
            data, self.at = self.diff.base85(self.at + 1)
        except udiff.MalformedDiff as error:
            raise malformed(error.line, str(error)) from error
        self.at = min(self.at + 1, len(self.diff))
        return Binary(line, found[1] == b"delta", int(found[2]), data)

    # ------------------------------------------------------------------------------------------------- end of a part

    def finish(self) -> None:
        """Check the part that ends here and keep it."""
        part, self.part = self.part, None
        if part is None:
            return
        if part.git is not None:
            _check_header(part)
        if part.hunks is None and not (
            part.binary
            or part.move
            or part.mode is not None
            or (part.git is not None and (part.creates or part.deletes))
        ):
            raise malformed(part.line, "this file header is followed by nothing to do")
        self.out.parts.append(part)


# ------------------------------------------------------------------------------------------------- lines of a header


def _mode(text: bytes, line: int) -> int:
    mode = MODES.get(text.strip())
    if mode is None:
        raise malformed(line, f"the mode {text.decode(errors='replace')[:20]} is unsupported: 100644 and 100755 are")
    return mode


def _new_file(part: Part, text: bytes, line: int) -> None:
    part.new_file, part.mode = True, _mode(text, line)


def _deleted(part: Part, text: bytes, line: int) -> None:
    _mode(text, line)
    part.deleted = True


def _old_mode(part: Part, text: bytes, line: int) -> None:
    _mode(text, line)


def _new_mode(part: Part, text: bytes, line: int) -> None:
    part.mode = _mode(text, line)


def _moved(part: Part, text: bytes, line: int, move: str, source: bool) -> None:
    name = plain_name(text, line)
    if part.move not in ("", move):
        raise malformed(line, "one file is both renamed and copied")
    known = part.source if source else part.target
    if known not in (None, name):
        raise malformed(line, f"a second name to {move}")
    part.move = move
    if source:
        part.source = name
    else:
        part.target = name


def _index(part: Part, text: bytes, line: int) -> None:
    found = _INDEX.fullmatch(text.strip())
    if found:
        part.index = (found[1], found[2])
        if found[3]:
            _mode(found[3], line)


_EXTENDED = {
    b"new file mode ": _new_file,
    b"deleted file mode ": _deleted,
    b"old mode ": _old_mode,
    b"new mode ": _new_mode,
    b"rename from ": lambda part, text, line: _moved(part, text, line, "rename", True),
    b"rename to ": lambda part, text, line: _moved(part, text, line, "rename", False),
    b"rename old ": lambda part, text, line: _moved(part, text, line, "rename", True),
    b"rename new ": lambda part, text, line: _moved(part, text, line, "rename", False),
    b"copy from ": lambda part, text, line: _moved(part, text, line, "copy", True),
    b"copy to ": lambda part, text, line: _moved(part, text, line, "copy", False),
    b"index ": _index,
}


def _check_header(part: Part) -> None:
    """Refuse a git header whose lines contradict one another; fill in the names that only its first line has."""
    if part.new_file and part.deleted:
        raise malformed(part.line, "one file is both new and deleted")
    if part.move:
        if part.source is None or part.target is None:
            raise malformed(part.line, f"a {part.move} needs both its `from` and its `to` line")
        if part.new_file or part.deleted:
            raise malformed(part.line, f"a {part.move} is neither a new nor a deleted file")
    old, new = part.old, part.new
    if old is not None and new is not None:
        if part.new_file and old.raw is not None:
            raise malformed(old.line, "a new file has /dev/null as its old name")
        if part.deleted and new.raw is not None:
            raise malformed(new.line, "a deleted file has /dev/null as its new name")
        if part.move and (old.raw is None or new.raw is None):
            raise malformed(old.line, f"a {part.move} has two names")
        if (part.new_file and new.raw is None) or (part.deleted and old.raw is None):
            raise malformed(old.line, "/dev/null stands on the wrong side")
    _check_names(part)


def _check_names(part: Part) -> None:
    """Check that on either side `diff --git`, `---` or `+++` and rename or copy lines name one file."""
    assert part.git is not None
    sides = (part.old.raw if part.old else None, part.new.raw if part.new else None)
    named: list[list[bytes]] = [
        [name for name in pair if name is not None] for pair in zip(sides, (part.source, part.target))
    ]
    for names in named:
        if len(names) == 2 and not agree(*names):
            raise malformed(part.line, f"{_shown(names[0])} and {_shown(names[1])} are two files in one header")
    if not named[0] and not named[1]:
        raw_old, raw_new = git_names(part.git, part.line)
        part.old = Name(None if part.new_file else raw_old, part.line)
        part.new = Name(None if part.deleted else raw_new, part.line)
        return
    # a side that is /dev/null is named as the other one in the first line
    wanted = [names or other for names, other in zip(named, reversed(named))]
    for split in git_splits(part.git, part.line):
        if all(agree(given, name) for given, names in zip(split, wanted) for name in names):
            return
    raise malformed(part.line, "the names after `diff --git` are not those of the lines below it")


def _shown(name: bytes) -> str:
    return name.decode(errors="replace")
