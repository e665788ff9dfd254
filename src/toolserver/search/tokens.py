"""The tokens of a pattern, each what one piece of RE2 syntax says, whatever way it was spelled."""

from __future__ import annotations

from dataclasses import dataclass

from toolserver.search.classes import Class


@dataclass(frozen=True, slots=True)
class Text:
    """Characters that stand for themselves, at least one; a repetition that follows is of the last one."""

    text: str


@dataclass(frozen=True, slots=True)
class Edge:
    """A place, not a character: `^`, `$` (which `\\A` and `\\z` are too), `\\b`, `\\B`."""

    source: bytes


@dataclass(frozen=True, slots=True)
class AnyByte:
    """`\\C`, one byte."""


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags set from here to the end of the group, `(?i-s)`; with `opens` also the group's opening, `(?i-s:`."""

    on: str
    off: str
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """`|`."""


@dataclass(frozen=True, slots=True)
class Close:
    """`)`."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """`*`, `+`, `?`, `{2,5}` and their non-greedy forms; `most` None has no end."""

    least: int
    most: int | None
    source: str


Token = Text | Class | Edge | AnyByte | Flags | Bar | Close | Repeat

LINE_START, LINE_END = Edge(b"^"), Edge(b"$")
GROUP = Flags("", "", opens=True)
