"""Random patterns against random lines: plans agree with a reference that asks RE2 about each line alone.

The reference spells a pattern in RE2's barest form: a class is the list of its members among the characters that occur
in the lines, as Python's `unicodedata` and a hand-written table of cases have them.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import re2
from fuzz.fuzz_pattern import check, lines_of

from toolserver.search.pattern import analyse

CASES = ["aA", "bB", "xX", "kK\u212a", "sS\u017f", "éÉ", "σςΣ", "ǆǅǄ", "Ⓐⓐ", "ßẞ", "Ⅷⅷ"]
CHARACTERS = "".join(CASES) + "0_ -.]^\\\r\t\x00\u0085\u00a0\u0300\u2028\u200d\ufeff≤日٣‿😀"
STRAY = [b"\xff", b"\xe2\x89", b"\xc3"]
CHUNKS = [character.encode() for character in "aAbkKsS\u017f_é" + CHARACTERS] + STRAY
NEVER = "[^\\x00-\U0010ffff]"

Members = frozenset[str]


def cases(character: str) -> str:
    return next((group for group in CASES if character in group), character)


def folded(members: Members) -> Members:
    return frozenset(other for one in members for other in cases(one))


def those(wanted: Callable[[str], bool]) -> Members:
    return frozenset(filter(wanted, CHARACTERS))


def category(*names: str) -> Members:
    return those(lambda character: unicodedata.category(character).startswith(names))


WORD = category("L", "M", "Nd", "Nl", "Pc") | frozenset("Ⓐⓐ\u200d")
SPACE = frozenset(" \t\r\u0085\u00a0\u2028")
GROUPS: dict[str, Members] = {
    r"\w": WORD,
    r"\d": category("Nd"),
    r"\s": SPACE,
    r"\pL": category("L"),
    r"\p{Lu}": category("Lu"),
    r"\P{^Cc}": category("Cc"),
    r"\p{Any}": frozenset(CHARACTERS),
    r"\p{Greek}": frozenset("σςΣ"),
    r"\W": frozenset(CHARACTERS) - WORD,
    r"\D": frozenset(CHARACTERS) - category("Nd"),
    r"\S": frozenset(CHARACTERS) - SPACE,
    r"\PL": frozenset(CHARACTERS) - category("L"),
    r"\p{^Lu}": frozenset(CHARACTERS) - category("Lu"),
    r"\P{Greek}": frozenset(CHARACTERS) - frozenset("σςΣ"),
}
POSIX: dict[str, Members] = {
    "[:alpha:]": those(lambda one: one.isascii() and one.isalpha()),
    "[:lower:]": those(lambda one: one.isascii() and one.islower()),
    "[:space:]": frozenset(" \t\r"),
    "[:ascii:]": those(str.isascii),
    "[:punct:]": frozenset("_-.]^\\"),
    "[:^alpha:]": those(lambda one: not (one.isascii() and one.isalpha())),
    "[:^lower:]": those(lambda one: not (one.isascii() and one.islower())),
    "[:^punct:]": frozenset(CHARACTERS) - frozenset("_-.]^\\"),
}
COMPLEMENTS = {r"\W", r"\D", r"\S", r"\PL", r"\p{^Lu}", r"\P{Greek}", "[:^alpha:]", "[:^lower:]", "[:^punct:]"}


@dataclass
class Spelling:
    """A pattern under construction, the same for the reference, and a text that matches but for edges."""

    pattern: str = ""
    reference: str = ""
    fold: bool = False
    names: int = 0
    bytewise: bool = False
    sample: str = ""
    kinds: str = "tttttccgGd^f"
    pool: str = "aAbkKsS\u017fé_\r0" + CHARACTERS

    def add(self, pattern: str, reference: str, sample: str = "") -> None:
        self.pattern += pattern
        self.reference += reference
        self.sample += sample

    def group(self, name: str) -> Members:
        """The members of a named group where this one stands: a complement is that of all cases of its opposite."""
        members = {**GROUPS, **POSIX}[name]
        if not self.fold:
            return members
        everything = frozenset(CHARACTERS)
        return everything - folded(everything - members) if name in COMPLEMENTS else folded(members)


def listed(members: Members) -> str:
    if not members:
        return NEVER
    return "[" + "".join(f"\\x{ord(one):02x}" if one < "\x7f" else one for one in sorted(members)) + "]"


def one_of(r: random.Random, members: Members) -> str:
    return r.choice(sorted(members)) if members else ""


def spelled(r: random.Random, character: str) -> str:
    """One of the ways to write a character outside a class."""
    code = ord(character)
    ways = ["raw", "raw", "raw", "brace", "quoted"]
    ways += ["hex"] if code < 256 else []
    ways += ["octal"] if code < 64 else []
    way = r.choice(ways)
    if way == "brace":
        return f"\\x{{{code:x}}}"
    if way == "hex":
        return f"\\x{code:02X}"
    if way == "octal":
        return f"\\{code:03o}"
    if way == "quoted" and character != "\\":
        return f"\\Q{character}\\E"
    return "\\" + character if character in "\\.+*?()|[]{}^$" else character


def in_class(r: random.Random, character: str) -> str:
    if r.random() < 0.5 or character in "\\]^-":
        return f"\\x{{{ord(character):X}}}"
    return character


def case_of_use(r: random.Random) -> tuple[Spelling, bool, bytes]:
    """A pattern, whether case is ignored, and a file's content: some of all syntax, some of little more than texts."""
    ignore_case = r.random() < 0.25
    spelling = Spelling(fold=ignore_case)
    if r.random() < 0.5:
        spelling.kinds = r.choice(["t", "tG", "ttcG", "tttGf", "ttG^", "tGd"])
        spelling.pool = r.choice(["abAB", "ab\r", "kKaé", "ssa\u017f", "ab-_", CHARACTERS])
    alternatives(r, spelling, 3)
    samples = [spelling.sample.encode(), spelling.sample.swapcase().encode(), spelling.sample[1:].encode()]
    chunks = [*CHUNKS, *samples * (len(CHUNKS) // 2), *[b""] * len(CHUNKS)]
    content = b""
    for _ in range(r.randint(1, 5)):
        content += b"".join(r.choice(chunks) for _ in range(r.randint(0, 4))) + r.choice([b"\n", b"\n", b"\r\n"])
    return spelling, ignore_case, content


def alternatives(r: random.Random, spelling: Spelling, depth: int) -> None:
    before, samples = spelling.sample, []
    for number in range(r.choice([1, 1, 1, 2, 3])):
        if number:
            spelling.add("|", "|")
        spelling.sample = ""
        for _ in range(r.randint(0 if depth < 3 else 1, 4)):
            piece(r, spelling, depth)
        samples.append(spelling.sample)
    spelling.sample = before + r.choice(samples)


def piece(r: random.Random, spelling: Spelling, depth: int) -> None:
    kind = r.choice(spelling.kinds if depth else spelling.kinds.replace("G", "").replace("f", ""))
    before = len(spelling.sample)
    if kind == "f":
        flags(r, spelling)
        return
    if kind == "t":
        for _ in range(r.randint(0, 2)):
            add_character(r, spelling, r.choice(spelling.pool) if r.random() < 0.98 else "\n")
        before = len(spelling.sample)
        add_character(r, spelling, r.choice(spelling.pool))
    elif kind == "c":
        add_class(r, spelling)
    elif kind == "g":
        name = r.choice(list(GROUPS))
        members = spelling.group(name)
        spelling.add(name, listed(members), one_of(r, members))
    elif kind == "d":
        one = r.choice([".", ".", ".", r"\C"])
        spelling.bytewise |= one != "."
        spelling.add(one, "(?s:.)" if one == "." else one, r.choice("axé") if one == "." else "a")
    elif kind == "^":
        edge = r.choice(["^", "$", r"\A", r"\z", r"\b", r"\B"])
        spelling.add(edge, {r"\A": "^", "$": r"\z"}.get(edge, edge))
    else:
        add_group(r, spelling, depth)
    repeat = r.choice(["", "", "", "", "", "*", "+", "?", "*?", "??", "{2}", "{1,3}", "{0}", "{2,}?"])
    behind_flags = r.choice(["(?s)", r"\Q\E"]) if repeat and r.random() < 0.1 else ""
    spelling.add(behind_flags + repeat, repeat)
    times = {"{0}": 0, "{2}": 2, "{2,}?": 2}.get(repeat, 1)
    if repeat[:1] in ("*", "?") and r.random() < 0.5:
        times = 0
    spelling.sample = spelling.sample[:before] + spelling.sample[before:] * times


def add_character(r: random.Random, spelling: Spelling, character: str) -> None:
    members = frozenset(cases(character) if spelling.fold else character)
    members -= {"\n"}
    spelling.add(spelled(r, character), listed(members), one_of(r, members))


def add_class(r: random.Random, spelling: Spelling) -> None:
    members: set[str] = set()
    text = ""
    for _ in range(r.randint(1, 4)):
        kind = r.choice("rrrgp")
        if kind == "r":
            low, high = sorted(r.choices(spelling.pool + "\n", k=2))
            if r.random() < 0.5:
                high = low
            own = those(lambda one, low=low, high=high: low <= one <= high)
            members |= folded(own) if spelling.fold else own
            text += in_class(r, low) + ("-" + in_class(r, high) if high != low else "")
        else:
            name = r.choice(list(GROUPS if kind == "g" else POSIX))
            members |= spelling.group(name)
            text += name
    negated = r.random() < 0.5
    final = frozenset(CHARACTERS) - members if negated else frozenset(members)
    spelling.add(f"[{'^' if negated else ''}{text}]", listed(final), one_of(r, final))


def add_group(r: random.Random, spelling: Spelling, depth: int) -> None:
    outside = spelling.fold
    head = r.choice(["(", "(?:", "(?P<n{}>", "(?i:", "(?-i:", "(?s:", "(?m-s:", "(?iU:"])
    spelling.names += 1
    spelling.add(head.format(spelling.names), "(?:")
    spelling.fold = (outside or "i" in head) and "-i" not in head
    alternatives(r, spelling, depth - 1)
    spelling.fold = outside
    spelling.add(")", ")")


def flags(r: random.Random, spelling: Spelling) -> None:
    text = r.choice(["(?i)", "(?-i)", "(?s)", "(?-m)", "(?U)"])
    spelling.fold = (spelling.fold or "i" in text) and "-i" not in text
    spelling.add(text, "(?:)")


@pytest.mark.parametrize("block", range(10))
def test_a_plan_finds_the_lines_that_re2_finds_one_by_one(block: int) -> None:
    """Each block is a thousand seeds; a failure names its own, and the pattern."""
    for seed in range(block * 1000, block * 1000 + 1000):
        spelling, ignore_case, content = case_of_use(random.Random(seed))
        try:
            plan = analyse(spelling.pattern, ignore_case=ignore_case)
            assert plan.alone == spelling.bytewise
            reference = re2.compile(spelling.reference.encode(), re2.UNICODE, 1 << 26)
            lines = [content[start:end] for start, end in lines_of(content)]
            check(plan, content, [number for number, line in enumerate(lines) if reference.contains(line)])
        except Exception as error:
            raise AssertionError(f"seed {seed}: {spelling.pattern!r}, {ignore_case=}, {content!r}") from error
