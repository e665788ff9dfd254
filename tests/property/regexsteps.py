"""Counts the steps of a backtracking engine on an expression of `re`: growth is shown without a clock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as reader  # type: ignore[attr-defined]
from typing import Any

CATEGORIES = {
    ops.CATEGORY_DIGIT: re.compile(rb"\d"),
    ops.CATEGORY_SPACE: re.compile(rb"\s"),
    ops.CATEGORY_WORD: re.compile(rb"\w"),
    ops.CATEGORY_NOT_DIGIT: re.compile(rb"\D"),
    ops.CATEGORY_NOT_SPACE: re.compile(rb"\S"),
    ops.CATEGORY_NOT_WORD: re.compile(rb"\W"),
}
Item = tuple[Any, Any]


class Engine:
    """Matches as `re` does, one step for each byte or choice that is tried."""

    def __init__(self, pattern: re.Pattern[bytes], text: bytes) -> None:
        self.tree = list(reader.parse(pattern.pattern, pattern.flags))
        self.text = text
        self.steps = 0

    def run(self, method: str) -> int:
        """Return the steps of `match`, `fullmatch`, or of `search` and `sub`, which try every start."""
        for start in range(len(self.text) + 1) if method in ("search", "sub") else (0,):
            ends = self.matches(self.tree, start)
            if any(method != "fullmatch" or end == len(self.text) for end in ends) and method == "search":
                break
        return self.steps

    def matches(self, items: Sequence[Item], at: int) -> Iterator[int]:
        """Yield where a sequence may end, in the order in which `re` tries it."""
        if not items:
            yield at
            return
        self.steps += 1
        (op, argument), rest = items[0], items[1:]
        for end in self.ends(op, argument, at):
            yield from self.matches(rest, end)

    def ends(self, op: Any, argument: Any, at: int) -> Iterator[int]:
        if op in (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN):
            if at < len(self.text) and holds(op, argument, self.text[at]):
                yield at + 1
        elif op is ops.SUBPATTERN:
            yield from self.matches(list(argument[3]), at)
        elif op is ops.BRANCH:
            for branch in argument[1]:
                yield from self.matches(list(branch), at)
        elif op is ops.MAX_REPEAT:
            yield from self.repeats(*argument, at, 0)
        elif op is ops.POSSESSIVE_REPEAT:
            yield from self.possessive(*argument, at)
        elif op is ops.AT:
            there = at == 0 if argument in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING) else at == len(self.text)
            if there:
                yield at
        else:
            raise NotImplementedError(op)

    def repeats(self, least: int, most: int, item: Any, at: int, done: int) -> Iterator[int]:
        if done < most:
            for end in self.matches(list(item), at):
                if end > at:
                    yield from self.repeats(least, most, item, end, done + 1)
        if done >= least:
            yield at

    def possessive(self, least: int, most: int, item: Any, at: int) -> Iterator[int]:
        done = 0
        while done < most and (end := next(self.matches(list(item), at), at)) > at:
            at, done = end, done + 1
        if done >= least:
            yield at


def holds(op: Any, argument: Any, byte: int) -> bool:
    """Return whether a byte is one that an item of a single byte stands for."""
    if op is ops.LITERAL:
        return bool(byte == argument)
    if op is ops.NOT_LITERAL:
        return bool(byte != argument)
    if op is ops.RANGE:
        return bool(argument[0] <= byte <= argument[1])
    if op is ops.CATEGORY:
        return CATEGORIES[argument].match(bytes([byte])) is not None
    if op is ops.IN:
        negated = argument[0][0] is ops.NEGATE
        return any(holds(*one, byte) for one in argument[negated:]) != negated
    return True  # ANY


def steps(pattern: re.Pattern[bytes], method: str, text: bytes) -> int:
    return Engine(pattern, text).run(method)
