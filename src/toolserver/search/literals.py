"""Which byte strings a line must contain to match: computed bottom up, always a superset of the truth.

A piece of a pattern is summed up in `Words`: every string it matches begins with one of `prefix`, ends with one of
`suffix`, contains one of each of `needs`; and where the strings can be listed at all, they are all in `exact`. An empty
string in a set says that nothing is known there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

Strings = frozenset[bytes]

MAX_PRODUCT = 32
"""Strings in a set that was made by joining two."""
MAX_UNION = 64
"""Strings in a set that lists alternatives."""
MAX_LENGTH = 256
"""Bytes of one string."""
MAX_NEEDS = 4
"""Sets of needed strings that are kept."""
MAX_UNROLLED = 8
"""Copies of a repeated piece that are looked at."""

AT_START, AT_END = 1, 2

_NOTHING_KNOWN: Strings = frozenset([b""])
_RARITY = (
    "fffffffff55ffcffffffffffffffffff3b88fb9a777a6778678889999987a78d"
    "b787788897d977787b7778999ab9a9f4b575546775b866556955567878a9a9df"
)
"""Minus the binary logarithm of each ASCII byte's share in source code (Linux, Python's library), as hex digits."""
_BITS = [*(int(digit, 16) for digit in _RARITY), *[9] * 128]


@dataclass(frozen=True, slots=True)
class Words:
    """What is known of the strings that a piece of a pattern matches; see the module's text.

    `pure`: a piece with `exact` matches wherever one of them stands, whatever is around it.
    `empty`: it matches the empty string at the start (`AT_START`) or the end (`AT_END`) of every line.
    """

    exact: Strings | None
    prefix: Strings = _NOTHING_KNOWN
    suffix: Strings = _NOTHING_KNOWN
    needs: tuple[Strings, ...] = ()
    pure: bool = False
    empty: int = 0

    @property
    def starts(self) -> Strings:
        return self.prefix if self.exact is None else self.exact

    @property
    def ends(self) -> Strings:
        return self.suffix if self.exact is None else self.exact

    def covers(self) -> list[Strings]:
        """Return all sets of which a matching line contains one string each, best first."""
        known = {*self.needs, self.prefix, self.suffix} if self.exact is None else {self.exact}
        return sorted((one for one in known if one and b"" not in one), key=score, reverse=True)


ANYTHING = Words(None)
EMPTY = Words(_NOTHING_KNOWN, pure=True, empty=AT_START | AT_END)
NEVER = Words(frozenset(), pure=True)


def place(empty: int) -> Words:
    """Return the words of an assertion that holds at these ends of every line."""
    return Words(_NOTHING_KNOWN, empty=empty)


def one_of(strings: Iterable[bytes], *, pure: bool) -> Words:
    """Return the words of a piece that matches exactly these strings."""
    exact = frozenset(strings)
    if any(len(one) > MAX_LENGTH for one in exact):
        prefix = frozenset(one[:MAX_LENGTH] for one in exact)
        return Words(None, prefix, frozenset(one[-MAX_LENGTH:] for one in exact), (prefix,))
    return Words(exact, pure=pure, empty=EMPTY.empty if pure and b"" in exact else 0)


def joined(first: Words, second: Words) -> Words:
    """Return the words of one piece followed by another."""
    if first.exact == NEVER.exact or second.exact == NEVER.exact:
        return NEVER
    empty = first.empty & second.empty
    seam = _product(first.ends, second.starts)
    if first.exact is not None and second.exact is not None and seam is not None:
        return Words(seam, pure=first.pure and second.pure, empty=empty)
    needs = [*first.needs, *second.needs]
    if seam is None:
        needs += [first.ends, second.starts]
    elif first.exact is None and second.exact is None:
        needs.append(seam)
    prefix, suffix = first.prefix, second.suffix
    if first.exact is not None:
        prefix = _shortened(first.exact, 1) if seam is None else seam
    if second.exact is not None:
        suffix = _shortened(second.exact, -1) if seam is None else seam
    kept = first.needs if len(needs) == len(first.needs) else _best(needs)
    return Words(None, prefix, suffix, kept, empty=empty)


def either(first: Words, second: Words) -> Words:
    """Return the words of an alternative of two pieces."""
    empty = first.empty | second.empty
    if first.exact is not None and second.exact is not None:
        exact = first.exact | second.exact
        if len(exact) <= MAX_UNION:
            return Words(exact, pure=first.pure and second.pure, empty=empty)
    prefix = _shortened(first.starts | second.starts, 1)
    suffix = _shortened(first.ends | second.ends, -1)
    return Words(None, prefix, suffix, _common(first, second), empty=empty)


def repeated(piece: Words, least: int, most: int | None) -> Words:
    """Return the words of a piece repeated `least` to `most` times (None: without end)."""
    if most == 0 or (least == 0 and piece.exact == NEVER.exact):
        return EMPTY
    if least == 0:
        return either(EMPTY, piece) if most == 1 else replace(ANYTHING, empty=EMPTY.empty)
    whole = piece
    copies = 1
    while copies < min(least, MAX_UNROLLED) and whole.exact is not None:
        whole = joined(whole, piece)
        copies += 1
    if copies == least == most:
        return whole
    more = joined(whole, replace(ANYTHING, empty=EMPTY.empty))
    return more if more.exact is not None else replace(more, suffix=_shortened(piece.ends, -1), empty=piece.empty)


@lru_cache(maxsize=1024)
def bits(strings: Strings) -> float:
    """Return minus the binary logarithm of the chance that one of these strings begins at a byte of source code."""
    return min(sum(_BITS[byte] for byte in one) for one in strings) - math.log2(len(strings))


def score(strings: Strings) -> float:
    """Return how well these strings serve as a filter: rarity in bits, less half a bit for each further string."""
    return bits(strings) - (len(strings) - 1) / 2


def without_longer(strings: Strings) -> tuple[bytes, ...]:
    """Return the strings less those that contain another one, sorted."""
    kept: list[bytes] = []
    for one in sorted(strings, key=len):
        if not any(other in one for other in kept):
            kept.append(one)
    return tuple(sorted(kept))


def with_short_variants(strings: Strings) -> Strings:
    """Return the ASCII strings and, of each other one, five bytes around its first byte that is not ASCII.

    A string holds its piece, so this asks for less than `strings` does, with far fewer of them.
    """
    return frozenset(one if one.isascii() else _around_first_variant(one) for one in strings)


def _around_first_variant(string: bytes) -> bytes:
    before = next(index for index, byte in enumerate(string) if byte > 0x7F) - 1
    return string[max(before, 0) : before + 5]


def _product(first: Strings, second: Strings) -> Strings | None:
    """Return each string of the first with each of the second after it, None where that is too much."""
    if len(first) * len(second) > max(MAX_PRODUCT, len(first), len(second)):
        return None
    product = frozenset(one + other for one in first for other in second)
    return None if any(len(one) > MAX_LENGTH for one in product) else product


def _shortened(strings: Strings, direction: int) -> Strings:
    """Return the strings if they are few, else the best choice of their beginnings (direction 1) or ends (-1)."""
    if len(strings) <= MAX_UNION:
        return strings
    cuts = (
        frozenset(one[:length] if direction > 0 else one[-length:] for one in strings)
        for length in (32, 16, 8, 6, 5, 4, 3, 2)
    )
    few = [cut for cut in cuts if len(cut) <= MAX_UNION and b"" not in cut]
    return max(few, key=score, default=_NOTHING_KNOWN)


def _common(first: Words, second: Words) -> tuple[Strings, ...]:
    """Return what either of two pieces needs: the best of the one or the best of the other."""
    if first.exact == NEVER.exact or second.exact == NEVER.exact:
        return tuple(second.covers() if first.exact == NEVER.exact else first.covers())[:MAX_NEEDS]
    covers, others = first.covers(), second.covers()
    if not covers or not others:
        return ()
    both = covers[0] | others[0]
    return (both,) if len(both) <= MAX_UNION else ()


def _best(sets: list[Strings]) -> tuple[Strings, ...]:
    """Return the best few of several sets of needed strings."""
    usable = {one for one in sets if one and b"" not in one}
    return tuple(sorted(usable, key=score, reverse=True)[:MAX_NEEDS])
