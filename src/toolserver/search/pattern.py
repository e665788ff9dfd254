"""From the pattern of a call to a plan: RE2 source that cannot cross line ends, and literals that spare calls of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from toolserver.errors import BadArgument
from toolserver.search import literals, regex
from toolserver.search.classes import SURROGATES, Class, character_source, variants
from toolserver.search.literals import AT_END, AT_START, Words
from toolserver.search.regex import Compiled, Refused
from toolserver.search.syntax import scan
from toolserver.search.tokens import LINE_START, AnyByte, Bar, Close, Edge, Flags, Repeat, Text, Token

MAX_PATTERN = 65_000
"""Bytes of a pattern."""
MAX_PIECES = 65_000
"""Characters of a pattern with its counted repetitions written out. RE2 makes one repetition of like pieces in a row
(`a*aaa` is `a{3,}`), and ends the whole process where that makes more than 65 535 of one."""
MAX_SOURCE = 8 << 20
"""Bytes of RE2 source for a pattern's classes; `\\w` alone is 2 KB."""
MAX_MEMBERS = 16
"""Members of a class that are tried one by one as part of a literal."""
MAX_VARIANTS = 8
"""Literals that are kept whole where case is ignored: each k and s doubles them (U+212A and U+017F fold to these)."""
MIN_BITS = 7
"""Literals that are more common, such as one frequent letter, make most lines candidates: RE2 alone is faster."""
MIN_ALSO = 3
"""Bytes of a literal that only serves as a further condition."""


@dataclass(frozen=True, eq=False)
class Plan:
    """How to find the lines that a pattern matches. Everything here holds for text as lines are seen (section 6).

    What the caller owes: a BOM at a file's start is left out; the CR of a CRLF is not part of the text, so either it is
    taken out of the buffer that is searched (files joined by LF, each without its final LF, empty files left out), or
    each line is judged alone, `matches_line(buffer, start, end)` with `end` before the CR. UTF-16 is decoded before.

    * `source`: bytes pattern for RE2 in UTF-8. Over a buffer of many lines it matches within one line only, and exactly
      in the lines where the caller's pattern matches that line alone.
    * `alone`: the above does not hold (the pattern has `\\C`): lines must be judged one by one.
    * `literals`: every matching line contains one of these strings, none of which is empty or holds LF. With `fold`
      they are in lower case and ASCII letters stand for both cases; other characters are listed in each case.
      None: nothing is known.
    * `also`: further such sets, each a necessary condition of its own (for a filter that can ask many).
    * `bits`: minus the binary logarithm of the chance that one of `literals` begins at a byte of source code.
    * `exact`: a line matches if and only if it contains one of `literals`, whether or not the CR of its CRLF is still
      there; RE2 need not be asked.
    * `every`: all lines match. `never`: no line can match.
    """

    source: bytes
    literals: tuple[bytes, ...] | None = None
    also: tuple[tuple[bytes, ...], ...] = ()
    bits: float = 0.0
    fold: bool = False
    exact: bool = False
    every: bool = False
    never: bool = False
    alone: bool = False
    _judged: Compiled | None = field(default=None, repr=False)

    @cached_property
    def compiled(self) -> Compiled:
        """RE2's program, made when first asked for (a plain text needs none); see `_re2` for costs."""
        return self._judged or _compile(self.source)

    @cached_property
    def matches_empty(self) -> bool:
        """Whether an empty line matches: pyre2 cannot be asked about one inside a buffer."""
        return self.compiled.contains(b"")

    def matches_line(self, buffer: regex.Buffer, start: int, end: int) -> bool:
        """Return whether the line `buffer[start:end]`, without its line end, matches. Nothing is copied."""
        return self.compiled.contains(buffer, start, end) if end > start else self.matches_empty


@lru_cache(maxsize=4)
def analyse(pattern: str, *, literal: bool = False, ignore_case: bool = False) -> Plan:
    """Return the plan of a pattern; raise `BadArgument` for what RE2 does not take.

    Costs 15 µs for a plain text, 30 to 60 µs for a usual pattern (RE2's own compiling included), 0.5 ms for each `\\w`,
    0.1 s once where a class such as `[^\\W_]` is met first, and a second or two at the size limits: not for the event
    loop. The last four plans are kept with RE2's automata, up to 64 MiB each, until `analyse.cache_clear()`.
    """
    try:
        size = len(pattern.encode())
    except UnicodeEncodeError as error:
        raise BadArgument("pattern: half a surrogate pair, which no text holds") from error
    if size > MAX_PATTERN:
        raise BadArgument(f"pattern: {size} bytes are too large, at most {MAX_PATTERN} are taken")
    if literal:
        parts: list[Token] = [Text(pattern)] if pattern else []
    else:
        parts = list(scan(pattern))
    plain = all(isinstance(part, Text) for part in parts)
    counted = sum(max(part.least, part.most or 0) for part in parts if isinstance(part, Repeat))
    if len(pattern) + counted > MAX_PIECES:
        raise BadArgument("pattern: it compiles too large")
    fold = ignore_case or any(isinstance(part, Flags) and "i" in part.on for part in parts)
    reader = _Reader(ignore_case=ignore_case, fold_all=fold)
    reader.read(parts)
    source = b"".join(reader.out)
    return replace(
        _plan(reader.words, source, fold),
        alone=any(isinstance(part, AnyByte) for part in parts),
        _judged=None if plain else _compile(source),
    )


def _plan(words: Words, source: bytes, fold: bool) -> Plan:
    """Return the plan for what is known of the strings that match."""
    if words.exact == literals.NEVER.exact:
        return Plan(source, never=True)
    if words.empty:
        return Plan(source, every=True)
    covers = words.covers()
    if not covers:
        return Plan(source)
    best = covers[0]
    exact = words.exact is not None and words.pure and not any(one.endswith(b"\r") for one in best)
    if fold and len(best) > MAX_VARIANTS:
        best, exact = literals.with_short_variants(best), False
    chosen, *more = [literals.without_longer(one) for one in (best, *covers[1 : literals.MAX_NEEDS])]
    also = tuple(one for one in more if min(map(len, one)) >= MIN_ALSO)
    bits = literals.bits(frozenset(chosen))
    if bits < MIN_BITS and not exact:
        return Plan(source)
    return Plan(source, chosen, also, bits, fold=fold, exact=exact)


def _compile(source: bytes) -> Compiled:
    try:
        return regex.compile_source(source)
    except Refused as refused:
        reason = str(refused)
        if "too large" in reason:
            raise BadArgument("pattern: it compiles too large") from refused
        raise BadArgument(f"pattern: {reason}") from refused


@dataclass(slots=True)
class _Group:
    """An open group: the flag to go back to, the alternatives so far, the current one without its last piece, that."""

    fold_outside: bool
    alternatives: Words | None = None
    before: Words = literals.EMPTY
    last: Words | None = None

    def push(self, words: Words) -> None:
        if self.last is not None:
            self.before = literals.joined(self.before, self.last)
        self.last = words

    def bar(self) -> None:
        whole = self.before if self.last is None else literals.joined(self.before, self.last)
        self.alternatives = whole if self.alternatives is None else literals.either(self.alternatives, whole)
        self.before, self.last = literals.EMPTY, None

    def close(self) -> Words:
        self.bar()
        assert self.alternatives is not None
        return self.alternatives


class _Reader:
    """Spells tokens anew as RE2 source (`out`) and sums up their words on the way, with its own stack for groups.

    The source has the pattern's structure token by token, so RE2 finds the same faults in it; but groups do not capture
    (RE2 is faster without), `^` and `$` are line ends whatever the flags, and nothing in it matches LF.
    """

    def __init__(self, *, ignore_case: bool, fold_all: bool) -> None:
        self.fold = ignore_case
        self.fold_all = fold_all
        self.out = [b"(?mi)" if ignore_case else b"(?m)"]
        self.room = MAX_SOURCE
        self.groups = [_Group(ignore_case)]
        self.after_repeat = ""
        self.words = literals.EMPTY

    def read(self, parts: Iterable[Token]) -> None:
        for part in parts:
            if isinstance(part, Repeat):
                self._repeat(part)
                continue
            self.after_repeat = ""
            if isinstance(part, Flags):
                self._flags(part)
            elif isinstance(part, Bar):
                self.out.append(b"|")
                self.groups[-1].bar()
            elif isinstance(part, Close):
                self._close()
            elif isinstance(part, Text):
                self._text(part.text)
            else:
                self.groups[-1].push(self._piece(part))
        if len(self.groups) > 1:
            raise BadArgument("pattern: a group is not closed: missing )")
        self.words = self.groups[0].close()

    def _text(self, text: str) -> None:
        """Write characters, the last as a piece of its own, which a repetition may follow, also behind flags."""
        self.out.extend(map(character_source, text))
        for part in (text[:-1], text[-1]):
            if part:
                self.groups[-1].push(self._literal(part))

    def _piece(self, part: Class | Edge | AnyByte) -> Words:
        """Write a token that matches something; answer its words."""
        if isinstance(part, Class):
            source = part.source(fold=self.fold)
            self.out.append(source)
            self.room -= len(source)
            if self.room < 0:
                raise BadArgument("pattern: it compiles too large")
            members = part.members(MAX_MEMBERS)
            return literals.ANYTHING if members is None else self._class(members)
        if isinstance(part, AnyByte):
            self.out.append(b"\\C")
            return literals.ANYTHING
        self.out.append(part.source)
        if part.source.startswith(b"\\"):
            return literals.place(0)
        return literals.place(AT_START if part is LINE_START else AT_END)

    def _literal(self, text: str) -> Words:
        if "\n" in text:
            return literals.NEVER
        if ord(text[0]) in SURROGATES:  # only an escape can say one, and escapes stand alone
            return literals.ANYTHING
        if not self.fold_all:
            return literals.one_of([text.encode()], pure=True)
        if not self.fold:
            return self._run(text)
        words, run = literals.EMPTY, ""
        for character in text:
            if character.isascii() and character not in "kKsS":
                run += character
                continue
            words = literals.joined(literals.joined(words, self._run(run)) if run else words, self._class(character))
            run = ""
        return literals.joined(words, self._run(run)) if run else words

    def _run(self, text: str) -> Words:
        """Return the words of characters that have no other case than the one ASCII has."""
        data = text.encode()
        return literals.one_of([data.lower()], pure=self.fold or data.lower() == data.upper())

    def _class(self, members: str) -> Words:
        """Return the words of a class of a few members."""
        if self.fold:
            members = "".join(map(variants, members))
        if not self.fold_all:
            return literals.one_of((one.encode() for one in members), pure=True)
        pure = all(one.swapcase() in members for one in members if one.isascii())
        return literals.one_of((one.encode().lower() for one in members), pure=pure)

    def _repeat(self, part: Repeat) -> None:
        group = self.groups[-1]
        if self.after_repeat:
            twice = f"`{self.after_repeat}{part.source}`"
            what = "a possessive repetition" if part.source == "+" else "a repetition of a repetition"
            raise BadArgument(f"pattern: {what} {twice} is not supported by RE2, whose syntax this is")
        if group.last is None:
            raise BadArgument(f"pattern: a repetition `{part.source}` has nothing to repeat")
        if part.most is not None and part.most < part.least:
            raise BadArgument(f"pattern: an upside-down repetition `{part.source}`")
        self.out.append(part.source.encode())
        group.last = literals.repeated(group.last, part.least, part.most)
        self.after_repeat = part.source

    def _flags(self, part: Flags) -> None:
        """Write flags with `m`, without which `$` is the buffer's end, and less `s`, as `.` is written as a class."""
        if part.opens:
            self.groups.append(_Group(self.fold))
        on = "m" + "".join(sign for sign in part.on if sign in "iU")
        off = "".join(sign for sign in part.off if sign in "iU")
        self.out.append(f"(?{on}{'-' if off else ''}{off}{':' if part.opens else ')'}".encode())
        self.fold = (self.fold or "i" in on) and "i" not in off

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise BadArgument("pattern: a group is closed that was not opened: unexpected )")
        self.out.append(b")")
        group = self.groups.pop()
        self.fold = group.fold_outside
        self.groups[-1].push(group.close())
