"""`_fast.scan` against a search one position at a time."""

from __future__ import annotations

import random

import pytest

from toolserver._fast.scan import MOST, Needles

KINDS = ["plain", "sse2", "avx2"]


def make(texts: list[bytes], kind: str, *, fold: bool = False) -> Needles:
    try:
        return Needles(tuple(texts), fold=fold, kind=kind)
    except ValueError as error:
        pytest.skip(f"{kind}: {error}")


def places(texts: list[bytes], data: bytes, fold: bool) -> set[tuple[int, int]]:
    """All places where one of the strings stands."""
    lower = data.lower() if fold else data
    found = set()
    for text in (text.lower() for text in texts) if fold else texts:
        at = lower.find(text)
        while at >= 0:
            found.add((at, at + len(text)))
            at = lower.find(text, at + 1)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fold", [False, True])
def test_agrees_with_a_plain_search(kind: str, fold: bool) -> None:
    rand = random.Random(7)
    for _ in range(1500):
        alphabet = rand.choice([b"ab", b"aAbBkK", b"a@`B[{z", bytes(range(256))])
        data = bytes(rand.choice(alphabet) for _ in range(rand.choice([0, 1, 5, 31, 33, 64, 130, 700])))
        texts = [
            bytes(rand.choice(alphabet) for _ in range(rand.randint(1, 6)))
            for _ in range(rand.choice([1, 1, 2, 5, 12]))
        ]
        found = make(texts, kind, fold=fold).search(data)
        wanted = places(texts, data, fold)
        assert (found is None) == (not wanted), (texts, data)
        assert found is None or found in wanted, (texts, data, found)
        first = make(texts, kind, fold=fold).leftmost(data)
        assert (first and first[0]) == min((start for start, _ in wanted), default=None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_is_found_at_every_place(kind: str, size: int) -> None:
    """At the very end and across the blocks of every loop too."""
    text = b"Qwertyu"[:size]
    for texts in ([text], [text, b"#!#"[: max(size, 1)]]):
        needles = make(texts, kind)
        for before in range(300):
            for after in (0, 1, 31):
                data = b"." * before + text + b"." * after
                assert needles.search(data) == (before, before + size)
                assert needles.search(data[:-1] if after == 0 else b"") is None


@pytest.mark.parametrize("kind", KINDS)
def test_starts_where_it_is_told(kind: str) -> None:
    needles = make([b"abc", b"xyz"], kind)
    data = b"abc xyz " * 20
    found, at = [], 0
    while (hit := needles.search(data, at)) is not None:
        found.append(hit[0])
        at = hit[0] + 1
    assert found == list(range(0, 160, 4))
    assert needles.search(data, len(data)) is None
    assert needles.search(data, len(data) + 1) is None


@pytest.mark.parametrize("kind", KINDS)
def test_many_strings(kind: str) -> None:
    texts = [b"word%02d" % number for number in range(MOST)]
    needles = make(texts, kind)
    for text in texts:
        assert needles.search(b"wordword" * 9 + text + b"word") == (72, 78)
    assert needles.search(b"word6" * 50) is None


def test_folds_letters_and_nothing_else() -> None:
    needles = Needles((b"a@[`{z",), fold=True)
    assert needles.search(b"..A@[`{Z") == (2, 8)
    assert needles.search(b"a`[`{z a@{`{z a@[@{z") is None
    assert Needles(("é".encode(),), fold=True).search("É".encode()) is None


def test_refuses() -> None:
    for texts in [(b"",), (b"a", b""), (b"a",) * (MOST + 1)]:
        with pytest.raises(ValueError):
            Needles(texts)
    with pytest.raises(TypeError):
        Needles(("text",))
    assert Needles(()).search(b"abc") is None
