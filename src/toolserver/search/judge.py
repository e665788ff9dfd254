"""How the kernel asks the regex of a plan: about many lines at once, or about each alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from toolserver.search import regex
from toolserver.search.pattern import Plan

if TYPE_CHECKING:
    from toolserver._fast.grep import Regex


@dataclass(frozen=True, slots=True)
class Judge:
    """`probe` tells whether any line of a text matches, `mark` marks each line that does (see `_fast.grep`)."""

    probe: Regex
    mark: Regex


def judge(plan: Plan) -> Judge:
    """Return what judges the lines of a plan."""
    if plan.alone:
        alone = LineByLine(plan)
        return Judge(alone, alone)
    try:
        # a match takes the rest of its line with it, so that each line is marked once; byte by byte up to the first
        # line end, for a class or a dot would stop at a byte that is not UTF-8
        mark = cast("Regex", regex.compile_source(b"(?:" + plan.source + rb")(?m:\C*?$)"))
    except regex.Refused:
        # as large as RE2 takes them, and the few bytes were too many
        alone = LineByLine(plan)
        return Judge(alone, alone)
    return Judge(cast("Regex", plan.compiled), mark)


class LineByLine:
    """A regex that is asked about one line at a time, for patterns that could match across line ends."""

    def __init__(self, plan: Plan) -> None:
        self._compiled = plan.compiled

    def contains(self, string: memoryview) -> bool:
        return any(self._compiled.contains(line) for line in bytes(string).split(b"\n"))

    def search(self, string: memoryview) -> object | None:
        return self._compiled.search(string)

    def subn(self, repl: bytes, string: memoryview) -> tuple[bytes, int]:
        marked, count = [], 0
        for line in bytes(string).split(b"\n"):
            match = self._compiled.search(line)
            marked.append(line if match is None else line[: match.start()] + repl)
            count += match is not None
        return b"\n".join(marked), count
