"""The header of one part of a diff: what its lines say about the file, and whether they contradict one another."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from toolserver._fast import udiff
from toolserver.errors import BadArgument
from toolserver.patches.names import Name, agree, git_names, git_splits, malformed, plain_name

MODES = {b"100644": 0o644, b"100755": 0o755}
SIMILARITY = (b"similarity index ", b"dissimilarity index ")
"""How the lines of a git header begin that have no effect."""
MAX_WHOLE = 64 * 1024 * 1024
"""Bytes of inflated data up to which its completeness is checked."""
_OCTAL = re.compile(rb"[0-7]{6}")
_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")


@dataclass(frozen=True, slots=True)
class Binary:
    """The forward half of a GIT binary patch."""

    line: int
    delta: bool
    size: int
    """Bytes of the inflated data, as stated."""
    data: bytes
    """As in the diff, deflated."""

    @property
    def whole(self) -> bool:
        """Whether the data is complete; assumed if it states a size that no file may have."""
        if self.size > MAX_WHOLE:
            return True
        try:
            self.inflated()
        except BadArgument:
            return False
        return True

    def inflated(self) -> bytes:
        """Return the content or the delta. Raises BadArgument if the data is damaged."""
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
    """The line of the diff where its header begins, from 1."""
    mail: int
    """The number of its mail in a series."""
    git: bytes | None = None
    """The text after `diff --git `; None in a plain part."""
    old: Name | None = None
    new: Name | None = None
    move: str = ""
    """`rename`, `copy` or empty."""
    source: bytes | None = None
    target: bytes | None = None
    new_file: bool = False
    deleted: bool = False
    old_mode: int | None = None
    mode: int | None = None
    """The mode that the file gets."""
    index: tuple[bytes, bytes] | None = None
    index_mode: int | None = None
    """The mode in the `index` line, which is that of both sides."""
    binary: Binary | None = None
    hunks: udiff.Hunks | None = None

    @property
    def creates(self) -> bool:
        """Whether the file must not exist yet."""
        return not self.move and (
            self.new_file or (self.old is not None and (self.old.raw is None or (self.git is None and self.old.epoch)))
        )

    @property
    def deletes(self) -> bool:
        """Whether the file is deleted."""
        return self.deleted or (self.new is not None and self.new.raw is None)

    @property
    def changes_mode(self) -> bool:
        return self.mode is not None and self.mode != self.old_mode

    @property
    def alike(self) -> bool:
        """Whether `diff --git` gives the same name on both sides, so that the name has no prefix."""
        return self.git is not None and any(old == new for old, new in git_splits(self.git, self.line))


def _mode(text: bytes, line: int) -> int:
    mode = MODES.get(text.strip())
    if mode is None:
        raise malformed(line, f"the mode {text.decode(errors='replace')[:20]} is unsupported: 100644 and 100755 are")
    return mode


def _new_file(part: Part, text: bytes, line: int) -> None:
    _new_mode(part, text, line)
    part.new_file = True


def _deleted(part: Part, text: bytes, line: int) -> None:
    _old_mode(part, text, line)
    part.deleted = True


def _old_mode(part: Part, text: bytes, line: int) -> None:
    part.old_mode = _agreed(part.old_mode, _mode(text, line), line)


def _new_mode(part: Part, text: bytes, line: int) -> None:
    part.mode = _agreed(part.mode, _mode(text, line), line)


def _agreed(known: int | None, mode: int, line: int) -> int:
    if known not in (None, mode):
        raise malformed(line, f"the mode 100{mode:o} after the mode 100{known:o} for the same side of the file")
    return mode


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
        if part.index not in (None, (found[1], found[2])):
            raise malformed(line, "a second `index` line")
        part.index = (found[1], found[2])
        if found[3]:
            part.index_mode = _mode(found[3], line)


EXTENDED: dict[bytes, Callable[[Part, bytes, int], None]] = {
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
"""How the lines of a git header begin that have an effect, and the functions that apply it."""


def is_meant(part: Part, start: bytes, text: bytes) -> bool:
    """Return whether a line that comes after other text belongs to the git header and is not prose."""
    assert part.git is not None
    if start.endswith(b"mode "):
        return _OCTAL.fullmatch(text.strip()) is not None
    if start == b"index ":
        return _INDEX.fullmatch(text.strip()) is not None
    try:
        name = plain_name(text, part.line)
    except BadArgument:
        return False
    side = start.endswith((b"to ", b"new "))
    return any(agree(name, names[side]) for names in git_splits(part.git, part.line))


def check(part: Part) -> None:
    """Refuse a git header whose lines contradict one another. Fill in names that stand in its first line only."""
    if part.new_file and part.deleted:
        raise malformed(part.line, "one file is both new and deleted")
    if (part.new_file and part.old_mode is not None) or (part.deleted and part.mode is not None):
        raise malformed(part.line, "a new file has no old mode, a deleted one no new mode")
    if part.index_mode is not None and {part.old_mode, part.mode} - {None, part.index_mode}:
        raise malformed(part.line, "the mode of the `index` line is not that of the lines above it")
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
    """Check that `diff --git`, `---` or `+++`, and rename or copy lines name the same file on either side."""
    assert part.git is not None
    sides = (part.old.raw if part.old else None, part.new.raw if part.new else None)
    named: list[list[bytes]] = [
        [name for name in pair if name is not None] for pair in zip(sides, (part.source, part.target), strict=True)
    ]
    for names in named:
        if len(names) == 2 and not agree(*names):
            raise malformed(part.line, f"{_shown(names[0])} and {_shown(names[1])} are two files in one header")
    if not named[0] and not named[1]:
        raw_old, raw_new = git_names(part.git, part.line)
        part.old = Name(None if part.new_file else raw_old, part.line)
        part.new = Name(None if part.deleted else raw_new, part.line)
        return
    # the first line gives a side that is /dev/null the name of the other
    wanted = [names or other for names, other in zip(named, reversed(named), strict=True)]
    for split in git_splits(part.git, part.line):
        if all(agree(given, name) for given, names in zip(split, wanted, strict=True) for name in names):
            return
    raise malformed(part.line, "the names after `diff --git` are not those of the lines below it")


def _shown(name: bytes) -> str:
    return name.decode(errors="replace")
