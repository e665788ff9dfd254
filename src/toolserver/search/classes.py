"""Character classes: what they hold, and their RE2 source that can never match a line end.

`\\w \\d \\s` are those of Unicode's technical standard 18, annex C; RE2's own are ASCII. RE2 has no way to take
characters out of a class, so a complement stands alone (`[^\\n...]`) or, as one item of several, as ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from toolserver.search import regex, unicode16

Ranges = tuple[tuple[int, int], ...]

LINE_FEED = ord("\n")
NOTHING = b"[^\\x{0}-\\x{10FFFF}]"
"""A class without members."""

SURROGATES = range(0xD800, 0xE000)
_BLOCKS = ((0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000))
"""All characters, parted where the length of their UTF-8 changes and at the surrogates, which have none."""


@dataclass(frozen=True, slots=True)
class Set:
    """Characters by ranges of codes and by names of RE2's Unicode classes."""

    ranges: Ranges = ()
    properties: tuple[str, ...] = ()

    def items(self) -> bytes:
        """Return the set as items of a bracketed class."""
        return _items(self.ranges) + b"".join(b"\\p{%s}" % name.encode() for name in self.properties)

    def source(self) -> bytes:
        """Return the set as a class, line feed included where it is a member."""
        return b"[%s]" % self.items()

    def outside(self) -> bytes:
        """Return the class of all characters that are not in the set, but for line feed."""
        return b"[^\\n%s]" % self.items()


@dataclass(frozen=True, slots=True)
class Class:
    """A class as it stands in a pattern: the union of a set and of complements of sets, or (`negated`) all others."""

    ranges: Ranges = ()
    properties: tuple[str, ...] = ()
    complements: tuple[Set, ...] = ()
    negated: bool = False

    def source(self, *, fold: bool) -> bytes:
        """Return the RE2 source; `fold` tells whether it will stand where case is ignored."""
        if not self.negated:
            return self._union()
        if len(self.complements) == 1 and not self.ranges and not self.properties:
            only = self.complements[0]
            return Class(only.ranges, only.properties).source(fold=fold)
        own = Set(self.ranges, self.properties).items()
        return b"[^\\n%s%s]" % (own, b"".join(_complement_items(one, fold) for one in self.complements))

    def _union(self) -> bytes:
        spanning = [name for name in self.properties if _holds_line_feed(name)]
        plain = Set(without_line_feed(self.ranges), tuple(name for name in self.properties if name not in spanning))
        parts = [plain.source()] if plain.ranges or plain.properties else []
        parts += [b"[^\\n\\P{%s}]" % name.encode() for name in spanning]
        parts += [one.outside() for one in self.complements]
        if len(parts) == 1:
            return parts[0]
        return b"(?:%s)" % b"|".join(parts) if parts else NOTHING

    def members(self, most: int) -> str | None:
        """Return the characters of a class of at most `most`, without line feed; None for any other class."""
        if self.negated or self.properties or self.complements:
            return None
        codes: set[int] = set()
        for low, high in without_line_feed(self.ranges):
            if high - low >= most:
                return None
            codes.update(range(low, high + 1))
            if len(codes) > most:
                return None
        return None if any(code in SURROGATES for code in codes) else "".join(map(chr, sorted(codes)))


def without_line_feed(ranges: Ranges) -> Ranges:
    """Return the ranges less line feed."""
    parts: list[tuple[int, int]] = []
    for low, high in ranges:
        if low <= LINE_FEED <= high:
            parts += [part for part in ((low, LINE_FEED - 1), (LINE_FEED + 1, high)) if part[0] <= part[1]]
        else:
            parts.append((low, high))
    return tuple(parts)


def character_source(character: str) -> bytes:
    """Return one character as RE2 source outside a class; line feed never matches."""
    if character == "\n":
        return NOTHING
    if ord(character) in SURROGATES:
        return b"[%s]" % _item(ord(character))
    return b"\\" + character.encode() if character in "\\.+*?()|[]{}^$" else character.encode()


@lru_cache(maxsize=1024)
def variants(character: str) -> str:
    """Return the characters that RE2 takes for this one where case is ignored, itself among them."""
    if character.isascii():
        return {"k": "Kk\u212a", "s": "Ss\u017f"}.get(character.lower()) or "".join(
            {character.lower(), character.upper()}
        )
    if character.lower() == character == character.upper() or ord(character) in SURROGATES:
        return character
    folded = regex.compile_source(b"(?i)" + character.encode())
    text, found, at = _cased(), {character}, 0
    while (match := folded.search(text, at)) is not None:
        at = match.end()
        found.add(text[match.start() : at].decode())
    return "".join(sorted(found))


@cache
def _cased() -> bytes:
    """Return the text of all characters that have another case."""
    return "".join(
        character
        for character in map(chr, [*range(0x3000), *range(0xA000, 0xAC00), *range(0xF900, 0x1F200)])
        if not character.lower() == character == character.upper()
    ).encode()


@cache
def _holds_line_feed(name: str) -> bool:
    return regex.compile_source(b"\\p{%s}" % name.encode()).contains(b"\n")


def _complement_items(members: Set, fold: bool) -> bytes:
    """Return the complement of a set as items of a larger class."""
    if len(members.properties) == 1 and not members.ranges:
        return b"\\P{%s}" % members.properties[0].encode()
    return _items(_outside(members, fold))


@lru_cache(maxsize=64)
def _outside(members: Set, fold: bool) -> Ranges:
    """Return the ranges of all characters that RE2 finds outside a set: 0.1 s, for `[^\\W_]` and its like."""
    others = regex.compile_source((b"(?i)" if fold else b"") + b"[^%s]+" % members.items())
    ranges: list[tuple[int, int]] = []
    for first, end in _BLOCKS:
        text = "".join(map(chr, range(first, end))).encode()
        length = len(text) // (end - first)
        at = 0
        while (match := others.search(text, at)) is not None:
            at = match.end()
            ranges.append((first + match.start() // length, first + at // length - 1))
    return tuple(ranges)


def _items(ranges: Ranges) -> bytes:
    return b"".join(_item(low) if low == high else b"%s-%s" % (_item(low), _item(high)) for low, high in ranges)


def _item(code: int) -> bytes:
    """Return one character as it is written inside a class."""
    character = chr(code)
    if character.isascii():
        if character.isalnum():
            return character.encode()
        return b"\\" + character.encode() if " " < character < "\x7f" else b"\\x{%X}" % code
    return b"\\x{%X}" % code if code < 0xA0 or code in SURROGATES else character.encode()


def _codes(text: str) -> Ranges:
    """Read ranges from the form of the tables: hexadecimal codes, blanks between, `-` within a range."""
    pairs = (entry.partition("-") for entry in text.split())
    return tuple((int(low, 16), int(high or low, 16)) for low, _, high in pairs)


SPACE = Set(_codes("9-D 20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000"))
DIGIT = Set(_codes(unicode16.DIGITS), ("Nd",))
WORD = Set(
    _codes("200C-200D 24B6-24E9 1F130-1F149 1F150-1F169 1F170-1F189") + _codes(unicode16.WORDS),
    ("L", "M", "Nd", "Nl", "Pc"),
)
POSIX = {
    "alnum": _codes("30-39 41-5A 61-7A"),
    "alpha": _codes("41-5A 61-7A"),
    "ascii": _codes("0-7F"),
    "blank": _codes("9 20"),
    "cntrl": _codes("0-1F 7F"),
    "digit": _codes("30-39"),
    "graph": _codes("21-7E"),
    "lower": _codes("61-7A"),
    "print": _codes("20-7E"),
    "punct": _codes("21-2F 3A-40 5B-60 7B-7E"),
    "space": _codes("9-D 20"),
    "upper": _codes("41-5A"),
    "word": _codes("30-39 41-5A 5F 61-7A"),
    "xdigit": _codes("30-39 41-46 61-66"),
}
"""RE2's own named classes, ASCII."""
