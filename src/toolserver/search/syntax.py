"""RE2 syntax as a flat list of tokens: what a pattern says, with every spelling of a character resolved.

RE2 judges structure (parentheses, repetition sizes); this scanner resolves what RE2 reads within one token, by RE2's
rules, so that the tokens can be spelled anew (see `pattern`). The list is flat, so no nesting is too deep for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolserver.errors import BadArgument
from toolserver.search import regex
from toolserver.search.classes import DIGIT, POSIX, SPACE, WORD, Class, Set
from toolserver.search.tokens import GROUP, LINE_END, LINE_START, AnyByte, Bar, Close, Edge, Flags, Repeat, Text, Token

_PLAIN = re.compile(r"[^\\\[(){|*+?.^$]+")
_COUNTED = re.compile(r"\{(0|[1-9][0-9]{0,8})(,(0|[1-9][0-9]{0,8})?)?\}")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_HEXADECIMAL = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})")
_PROPERTY = re.compile(r"\^?[A-Za-z_]+")
_REPEATS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "f": "\f", "v": "\v"}
_PERL = {"d": DIGIT, "s": SPACE, "w": WORD}

_UNSUPPORTED_GROUPS = (
    ("=", "look-ahead"),
    ("!", "look-ahead"),
    ("<=", "look-behind"),
    ("<!", "look-behind"),
    ("*", "an alphabetic assertion, look-around by name,"),
    ("P=", "a back-reference"),
    ("P>", "recursion"),
    ("&", "recursion"),
    ("R", "recursion"),
    (">", "an atomic group"),
    ("(", "a conditional group"),
    ("|", "a branch reset"),
    ("#", "a comment"),
    ("'", "a group name in quotes"),
    ("^", "resetting the flags"),
)
_UNSUPPORTED_ESCAPES = {
    "k": "a back-reference",
    "g": "a back-reference",
    "K": "keeping out what came before",
    "G": "the end of the last match",
    "X": "a character with its marks",
    "R": "any line end",
    "h": "horizontal white space",
    "H": "all but horizontal white space",
    "N": "all but line ends",
    "Z": "the end before a last line end",
    "e": "the escape character by letter",
    "c": "a control character by letter",
    "u": "a code without braces",
    "U": "a code without braces",
    "o": "an octal code in braces",
}


def scan(pattern: str) -> Iterator[Token]:
    """Yield the tokens of a pattern; raise `BadArgument` at one that RE2 does not know."""
    return _Scanner(pattern).run()


class _Scanner:
    """One walk over one pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.names: set[str] = set()

    def run(self) -> Iterator[Token]:
        pattern, size = self.pattern, len(self.pattern)
        while self.at < size:
            plain = _PLAIN.match(pattern, self.at)
            if plain is not None:
                self.at = plain.end()
                yield Text(plain.group())
                continue
            sign = pattern[self.at]
            if sign == "\\":
                yield self._escaped()
            elif sign == "[":
                yield self._class()
            elif sign == "(":
                yield self._open()
            elif sign == "{":
                yield self._counted()
            else:
                self.at += 1
                yield self._sign(sign)

    def _sign(self, sign: str) -> Token:
        if sign in _REPEATS:
            return self._repeat(*_REPEATS[sign], sign)
        if sign == ".":
            return Class(negated=True)
        if sign == "^":
            return LINE_START
        if sign == "$":
            return LINE_END
        return Bar() if sign == "|" else Close()

    def _repeat(self, least: int, most: int | None, source: str) -> Repeat:
        if self.pattern[self.at : self.at + 1] == "?":
            self.at += 1
            source += "?"
        return Repeat(least, most, source)

    def _counted(self) -> Token:
        """Take `{n}`, `{n,}` or `{n,m}`; any other `{` is a character, by RE2's rules also with more than 9 digits."""
        found = _COUNTED.match(self.pattern, self.at)
        if found is None:
            self.at += 1
            return Text("{")
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] is not None else None
        self.at = found.end()
        return self._repeat(least, most, found.group())

    # ---------------------------------------------------------------- groups

    def _open(self) -> Token:
        pattern, start = self.pattern, self.at
        if not pattern.startswith("(?", start):
            self.at += 1
            if pattern.startswith("*", self.at):
                raise self._malformed("nothing to repeat; verbs such as (*UTF) are not supported", start)
            return GROUP
        rest = start + 2
        for sign, what in _UNSUPPORTED_GROUPS:
            if pattern.startswith(sign, rest):
                raise self._unsupported(what, pattern[start : rest + len(sign)])
        if re.match(r"[+-]?\d", pattern[rest : rest + 2]):
            raise self._unsupported("recursion", pattern[start : rest + 2])
        if pattern.startswith(("P<", "<"), rest):
            return self._named(start, pattern.index("<", rest) + 1)
        return self._flags(start, rest)

    def _named(self, start: int, name_at: int) -> Token:
        """Take `(?P<name>` or, as newer versions of RE2 do, `(?<name>`."""
        end = self.pattern.find(">", name_at)
        name = self.pattern[name_at:end]
        if end < 0 or not re.fullmatch(r"\w+", name):
            shown = _shown(self.pattern[start : end + 1 or None])
            raise self._malformed(f"a malformed group name: {shown}", start)
        if name in self.names:
            raise self._malformed(f"two groups have the name {_shown(name)}", start)
        self.names.add(name)
        self.at = end + 1
        return GROUP

    def _flags(self, start: int, at: int) -> Token:
        on, off, negated, any_since = "", "", False, False
        while True:
            sign = self.pattern[at : at + 1]
            at += 1
            if sign and sign in "imsU":
                on, off = (on.replace(sign, ""), off + sign) if negated else (on + sign, off.replace(sign, ""))
                any_since = True
            elif sign == "-" and not negated:
                negated, any_since = True, False
            elif sign and sign in ":)" and (any_since or not negated):
                self.at = at
                return Flags(on, off, opens=sign == ":")
            elif sign == "x":
                raise self._unsupported("the flag x, a pattern with blanks and comments,", self.pattern[start:at])
            else:
                raise self._malformed(f"unknown kind of group: {_shown(self.pattern[start:at])}", start)

    # ---------------------------------------------------------------- escapes

    def _escaped(self) -> Token:
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter == "Q":
            return self._quoted()
        if letter and letter in "bBAzC":
            self.at += 2
            if letter == "C":
                return AnyByte()
            return {"A": LINE_START, "z": LINE_END}.get(letter) or Edge(b"\\" + letter.encode())
        group = self._group_escape()
        if group is None:
            return Text(self._character_escape())
        complement, members = group
        return Class(complements=(members,)) if complement else Class(members.ranges, members.properties)

    def _quoted(self) -> Token:
        """Take `\\Q...\\E`, whose end may be missing; an empty one still parts what stands left and right of it."""
        end = self.pattern.find("\\E", self.at + 2)
        text = self.pattern[self.at + 2 : end if end >= 0 else None]
        self.at = end + 2 if end >= 0 else len(self.pattern)
        return Text(text) if text else Flags("", "")

    def _group_escape(self) -> tuple[bool, Set] | None:
        """Take `\\d`, `\\W`, `\\pL`, `\\P{Greek}` and the like; answer whether it is a complement, and of what."""
        if not self.pattern.startswith("\\", self.at):
            return None
        letter = self.pattern[self.at + 1 : self.at + 2]
        members = _PERL.get(letter.lower())
        if members is not None:
            self.at += 2
            return letter.isupper(), members
        if letter not in ("p", "P"):
            return None
        start = self.at
        name = self.pattern[start + 2 : start + 3]
        self.at += 3
        if name == "{":
            end = self.pattern.find("}", self.at)
            name = self.pattern[self.at : end] if end >= 0 else ""
            self.at = end + 1
        plain = name.removeprefix("^")
        members = Set(properties=(plain,))
        if not _PROPERTY.fullmatch(name) or not regex.accepts(members.source()):
            raise self._malformed(
                f"unknown Unicode class: {_shown(self.pattern[start : max(self.at, start + 2)])}", start
            )
        return (letter == "P") != (plain != name), members

    def _character_escape(self) -> str:
        """Take the escape of one character, in a class or not."""
        start = self.at
        letter = self.pattern[start + 1 : start + 2]
        self.at += 2
        if not letter:
            raise self._malformed("a backslash at the end", start)
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter in "01234567":
            digits = _OCTAL.match(self.pattern, start + 1)
            if digits is not None:
                self.at = digits.end()
                return chr(int(digits.group(), 8))
        if letter == "x":
            digits = _HEXADECIMAL.match(self.pattern, start + 2)
            if digits is None or int(digits[1] or digits[2], 16) > 0x10FFFF:
                raise self._malformed(f"malformed code: {_shown(self.pattern[start : start + 12])}", start)
            self.at = digits.end()
            return chr(int(digits[1] or digits[2], 16))
        if letter.isascii() and not letter.isalnum():
            return letter
        if letter in "123456789":
            raise self._unsupported("a back-reference", f"\\{letter}")
        if letter in _UNSUPPORTED_ESCAPES:
            raise self._unsupported(_UNSUPPORTED_ESCAPES[letter], f"\\{letter}")
        raise self._malformed(f"unknown escape: {_shown(self.pattern[start : self.at])}", start)

    # ---------------------------------------------------------------- classes

    def _class(self) -> Class:
        """Take a bracketed class."""
        pattern, start = self.pattern, self.at
        self.at += 1
        negated = pattern.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        properties: list[str] = []
        complements: list[Set] = []
        first = True
        while first or not pattern.startswith("]", self.at):
            first = False
            if self.at >= len(pattern):
                raise self._malformed("a class is not closed: missing ]", start)
            group = self._posix() or self._group_escape()
            if group is None:
                ranges.append(self._range(start))
            elif group[0]:
                complements.append(group[1])
            else:
                ranges.extend(group[1].ranges)
                properties.extend(group[1].properties)
        self.at += 1
        return Class(tuple(ranges), tuple(properties), tuple(complements), negated=negated)

    def _posix(self) -> tuple[bool, Set] | None:
        """Take `[:name:]` or `[:^name:]` inside a class; without its end it is no name but characters."""
        if not self.pattern.startswith("[:", self.at):
            return None
        end = self.pattern.find(":]", self.at + 2)
        if end < 0:
            return None
        start, name = self.at, self.pattern[self.at + 2 : end]
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise self._malformed(f"unknown class: {_shown(self.pattern[start : end + 2])}", start)
        self.at = end + 2
        return name.startswith("^"), Set(ranges)

    def _range(self, start: int) -> tuple[int, int]:
        begin = self.at
        low = high = self._class_character(start)
        following = self.pattern[self.at : self.at + 2]
        if len(following) == 2 and following[0] == "-" and following[1] != "]":
            self.at += 1
            high = self._class_character(start)
            if high < low:
                raise self._malformed(f"an upside-down range: {_shown(self.pattern[begin : self.at])}", begin)
        return ord(low), ord(high)

    def _class_character(self, start: int) -> str:
        if self.at >= len(self.pattern):
            raise self._malformed("a class is not closed: missing ]", start)
        if self.pattern[self.at] == "\\":
            return self._character_escape()
        self.at += 1
        return self.pattern[self.at - 1]

    # ---------------------------------------------------------------- errors

    def _malformed(self, reason: str, at: int) -> BadArgument:
        return BadArgument(f"pattern: {reason} (at character {at + 1})")

    def _unsupported(self, what: str, text: str) -> BadArgument:
        return BadArgument(f"pattern: {what} {_shown(text)} is not supported by RE2, whose syntax this is")


def _shown(text: str) -> str:
    """Return a piece of a pattern for a sentence, cut to 60 characters."""
    return f"`{text}`" if len(text) <= 60 else f"`{text[:60]}...`"
