"""Reads a unified diff, git's or plain, into parts that say what to do with which file (specification, section 4)."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from toolserver._fast import udiff
from toolserver.errors import BadArgument
from toolserver.patches import headers
from toolserver.patches.headers import Binary, Part
from toolserver.patches.messages import other_form
from toolserver.patches.names import malformed, name_one_file, side_name

_BINARY = re.compile(rb"(literal|delta) ([0-9]{1,9})")
FIRST_LINES = 1000
"""How many lines of a text without file headers are searched for its form."""
_CUT = "the diff ends within a binary patch: it was cut"


@dataclass(slots=True)
class Parts:
    """A whole diff: its parts in order, and notes on what was forgiven while reading it."""

    parts: list[Part] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read(text: bytes) -> Parts:
    """Read a diff. Raises BadArgument that names the wrong line of the diff."""
    return _Reading(text.removeprefix(codecs.BOM_UTF8)).read()


class _Reading:
    """The state of reading one diff."""

    def __init__(self, text: bytes) -> None:
        self.diff = udiff.Diff(text)
        self.out = Parts()
        self.part: Part | None = None
        self.at = 0
        self.mail = 0
        self.half = -1
        """The index of the first half of a file header after the last header or body; -1 for none."""
        self.header_end = 0
        """The index of the line after the last line taken for a git header."""

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
                f"begin with `@@ -line,count +line,count @@`; {self.other_form() or 'this one has no file header'}"
            )
        return self.out

    def other_form(self) -> str:
        """Return what the error says of a text without file headers; empty if its form is not known."""
        return other_form(self.diff.line(at) for at in range(min(len(self.diff), FIRST_LINES)))

    def line(self, kind: int) -> None:
        """Read on from a line that is not text."""
        if kind == udiff.HUNK:
            self.hunks()
        elif kind == udiff.PAIR:
            self.pair()
        elif kind == udiff.GIT:
            self.git()
        elif kind == udiff.EXTENDED:
            self.extended()
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
            self.half = -1
            self.at = self.diff.message_end(self.at)

    def check_half(self) -> None:
        """Refuse a hunk after one half of a file header, since its file is not known."""
        if self.half >= 0:
            raise malformed(
                self.half + 1,
                "a file header is a `--- ` line and a `+++ ` line after it; one of the two is missing here",
            )

    # ---------------------------------------------------------------------------------------------- kinds of lines

    def hunks(self) -> None:
        self.check_half()
        part = self.part
        if part is None:
            found = "a hunk before any file header (a `--- a/FILE` and a `+++ b/FILE` line)"
            form = "" if self.out.parts else self.other_form()
            raise malformed(self.at + 1, f"{found}; {form}" if form else found)
        if part.binary is not None or (part.git is not None and part.new is None):
            raise malformed(self.at + 1, "a hunk without the `--- ` and `+++ ` lines of its file")
        if part.hunks is not None:
            raise malformed(self.at + 1, "a hunk that no file header goes before")
        try:
            part.hunks, self.at = self.diff.hunks(self.at)
        except udiff.MalformedDiff as error:
            raise malformed(error.line, str(error) + _unsupported(self.diff.line(error.line - 1))) from error

    def pair(self) -> None:
        old = side_name(self.diff.line(self.at)[4:], self.at + 1)
        new = side_name(self.diff.line(self.at + 1)[4:], self.at + 2)
        part = self.part
        if part is not None and part.hunks is None:
            self.check_half()
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

    def git(self) -> None:
        text = self.diff.line(self.at)[len(b"diff --git ") :]
        self.finish()
        self.half = -1
        if name_one_file(text) or self.heads(self.at + 1):
            self.part = Part(self.at + 1, self.mail, git=text)
        self.at += 1
        self.header_end = self.at

    def heads(self, at: int) -> bool:
        """Return whether the line at an index goes on with a header that `diff --git` began."""
        kind, found = self.diff.next(at, True, True)
        if found == at and kind not in (udiff.GIT, udiff.MAIL, udiff.END):
            return True
        while at < len(self.diff) and not self.diff.line(at):
            at += 1
        return (found == at and kind == udiff.EXTENDED) or (
            at < len(self.diff) and self.diff.line(at).startswith(headers.SIMILARITY)
        )

    def extended(self) -> None:
        """Read a line of a git header. After other text it must not read as prose."""
        part, line, text = self.part, self.at + 1, self.diff.line(self.at)
        assert part is not None
        in_sequence = self.at == self.header_end or self.diff.line(self.at - 1).startswith(headers.SIMILARITY)
        self.at += 1
        start = next(start for start in headers.EXTENDED if text.startswith(start))
        if in_sequence or headers.is_meant(part, start, text[len(start) :]):
            headers.EXTENDED[start](part, text[len(start) :], line)
            self.header_end = self.at

    def binary(self) -> None:
        part, line = self.part, self.at + 1
        in_header = part is not None and part.index is not None and part.hunks is None
        if not in_header and not self.binary_size(self.at + 1):
            self.at += 1  # prose
            return
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
        self.binary_half()  # the reverse patch is not used, but must be complete

    def binary_size(self, at: int) -> re.Match[bytes] | None:
        return _BINARY.fullmatch(self.diff.line(at)) if at < len(self.diff) else None

    def binary_half(self) -> Binary | None:
        """Read one half of a binary patch; None if there is none here. Raises BadArgument if the diff ends in it."""
        line = self.at + 1
        found = self.binary_size(self.at)
        if found is None:
            begun = self.diff.line(self.at) if line == len(self.diff) else b""
            if begun and (b"literal ".startswith(begun) or b"delta ".startswith(begun)):
                raise malformed(line, _CUT)
            return None
        try:
            data, self.at = self.diff.base85(self.at + 1)
        except udiff.MalformedDiff as error:
            raise malformed(error.line, str(error)) from error
        half = Binary(line, found[1] == b"delta", int(found[2]), data)
        if self.at == len(self.diff) and not half.whole:
            raise malformed(self.at, _CUT)
        if not data:
            raise malformed(line, "a binary patch without its data")
        self.at = min(self.at + 1, len(self.diff))
        return half

    # ------------------------------------------------------------------------------------------------- end of a part

    def finish(self) -> None:
        """Check the current part and add it to the result."""
        part, self.part = self.part, None
        if part is None:
            return
        if part.git is not None:
            headers.check(part)
        if part.hunks is None and not (
            part.binary or part.move or part.changes_mode or (part.git is not None and (part.creates or part.deletes))
        ):
            raise malformed(part.line, "this file header is followed by nothing to do")
        self.out.parts.append(part)


def _unsupported(line: bytes) -> str:
    """Return what to add to the error for a line that belongs to another form of diff."""
    if line.startswith(b"@@@"):
        return "; this is the combined diff of a merge, `git diff` of two commits writes one that can be applied"
    if (b"[-" in line and b"-]" in line) or (b"{+" in line and b"+}" in line):
        return "; a word diff cannot be applied, `git diff` without --word-diff writes one that can"
    return ""
