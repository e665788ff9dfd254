"""Unified diffs: what their lines are, where their hunks go, and the resulting file.

No Python object is made for a line. Lines end at LF only and are counted from 0 here, from 1 in errors and in
what a caller sees. The GIL is released while a diff is read, hunks are placed and a result is written.
"""

TEXT: int
GIT: int
"""`diff --git `"""
PAIR: int
"""`--- ` with `+++ ` on the next line"""
HALF: int
"""One of the two alone."""
HUNK: int
"""Begins with `@@`."""
BINARY: int
"""`GIT binary patch`"""
DIFFER: int
"""`Binary files ... differ`"""
MAIL: int
"""The first line of a mail as git writes it."""
EXTENDED: int
"""A line that only a git header has, such as `rename from `."""
END: int

MOVED: int
BLANKS_ASIDE: int
NO_END: int
RECOUNTED: int
UNNUMBERED: int
LOST_BLANK: int
CUT: int
"""What was forgiven in a hunk, bits of `Applied.forgiven`."""

class MalformedDiff(ValueError):
    """The diff breaks the form: a sentence; `line` is the line of the diff, from 1."""

    line: int
    def __init__(self, line: int, text: str) -> None: ...

class Misplaced(ValueError):
    """Hunks that do not apply. `kind` is one of the words below; the rest describes the hunk.

    `nowhere`, `out of order`, `several`, `blanks` (only blanks at line ends would decide between places), `no line`
    (additions alone without a usable line), `too much` (more candidates than are looked at), `goes on` (what reads as
    prose after the hunk stands in the file after it too).
    """

    kind: str
    hunk: int
    """From 1."""
    header: int
    """The line of the diff where it begins, from 1."""
    stated: int | None
    places: list[int]
    """Lines of the file where it fits, from 1, at most ten."""
    count: int
    """Of all such places."""
    expected: bytes | None
    found: bytes | None
    """The line of the file at `line`, which differs from `expected`; None past the end."""
    line: int
    absent: tuple[int, bytes] | None
    """A line of the diff, with its number, that is nowhere in the file."""

class TooLarge(ValueError):
    """The result would have `size` bytes."""

    size: int
    def __init__(self, size: int) -> None: ...

class Hunks:
    """The hunks of one part of a diff. Made by `Diff.hunks` only."""

    def __len__(self) -> int: ...
    @property
    def creates(self) -> bool:
        """Whether it is one hunk that says `-0,0` and has no old lines."""

    def apply(self, content: bytes, limit: int) -> tuple[bytes, list[tuple[int, int, int, int, int]]]:
        """Place all hunks in `content`. Return the result and, for each hunk in which something was forgiven, its
        number, its line in the diff, its stated line (-1: none), the line it went to and what was forgiven.

        Raises Misplaced, and TooLarge where the result would be over `limit` bytes; it is not made then.
        """

    def lost_blanks(self, hunk: int) -> list[int]:
        """Return the lines of the diff, from 1, at most ten, where hunk number `hunk` has an emptied context line."""

class Diff:
    """A diff, split into lines. Raises OverflowError for 4 GiB and more."""

    def __init__(self, text: bytes) -> None: ...
    def __len__(self) -> int:
        """Return the number of lines."""

    def line(self, index: int) -> bytes:
        """Return a line without its LF and the CR before it. Raises IndexError."""

    def next(self, index: int, in_header: bool, halves: bool) -> tuple[int, int]:
        """Return kind and index of the first line from `index` on that is more than text; END past the last.

        EXTENDED is returned only `in_header`, HALF only if `halves`.
        """

    def message_end(self, index: int) -> int:
        """Return the index of the line after the message of the mail that begins at line `index`.

        It ends with the last line of three dashes before the mail's first part, without one with its first line. Raises
        IndexError.
        """

    def hunks(self, index: int) -> tuple[Hunks, int]:
        """Read the hunk whose header is line `index` and all that follow it with nothing but text between them.

        Returns them and the index of the line that is more than text, or the number of lines. Raises MalformedDiff.
        """

    def base85(self, index: int) -> tuple[bytes, int]:
        """Decode the lines from `index` to the next empty one. Return the data and the index of that line.

        Raises MalformedDiff.
        """

def apply_delta(base: bytes, delta: bytes, limit: int) -> bytes:
    """Apply one of git's deltas. Raises ValueError where it is damaged or not one for `base`, TooLarge over `limit`."""
