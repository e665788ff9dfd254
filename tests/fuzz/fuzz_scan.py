"""`_fast.scan` against a slow twin: any needles, any text, every kind of loop that this processor has."""

from __future__ import annotations

import contextlib

from toolserver._fast.scan import MOST, Needles

NAMES = ("plain", "sse2", "avx2")


def kinds() -> list[str]:
    """Name the loops that can run here."""
    found = []
    for name in NAMES:
        with contextlib.suppress(ValueError):
            Needles((b"x",), kind=name)
            found.append(name)
    return found


KINDS = kinds()


def lower(text: bytes, fold: bool) -> bytes:
    return text.lower() if fold else text


def spans(texts: tuple[bytes, ...], data: bytes, start: int, fold: bool) -> list[tuple[int, int]]:
    """Return where each string stands from `start` on, the leftmost first, equally left ones as they were given."""
    found = []
    shown = lower(data, fold)
    for order, text in enumerate(texts):
        at = shown.find(lower(text, fold), start)
        while at >= 0:
            found.append((at, order, at + len(text)))
            at = shown.find(lower(text, fold), at + 1)
    return [(at, end) for at, _, end in sorted(found)]


def check(texts: tuple[bytes, ...], data: bytes, start: int, fold: bool) -> None:
    """Ask every kind the same: what is found stands there, and no line that holds a string is passed over."""
    want = spans(texts, data, start, fold)
    for kind in KINDS:
        needles = Needles(texts, fold=fold, kind=kind)
        found = needles.search(data, start)
        assert needles.leftmost(data, start) == (want[0] if want else None), kind
        if not want or found is None:
            assert found is None, kind
            assert not want, kind
        else:
            assert found in want, kind
            assert b"\n" not in data[want[0][0] : found[0]] or any(b"\n" in text for text in texts), kind


def target(data: bytes) -> None:
    """Take flags, a start, the number of needles, each with its length in front, and a text."""
    if len(data) < 4:
        return
    fold, start, count, rest = bool(data[0] & 1), data[1], data[2] % (MOST + 1), data[3:]
    texts = []
    for _ in range(count):
        size = 1 + rest[0] % (9 if data[0] & 2 else 200) if rest else 0
        if not rest[1 : size + 1]:
            break
        texts.append(rest[1 : size + 1])
        rest = rest[size + 1 :]
    check(tuple(texts), rest * (1 + (data[0] >> 4)), start, fold)
