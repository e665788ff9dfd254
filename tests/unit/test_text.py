"""`_fast.text` against Python's own bytes methods and regular expressions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver._fast.text import all_crlf, nearly, occurrences, replace_all, utf8

SMALL = st.binary(max_size=40).map(lambda data: bytes(b"ab \n\t\r"[byte % 6] for byte in data))
OLD = SMALL.filter(bool)


@given(SMALL, OLD, SMALL)
def test_like_bytes(data, old, new):
    count = data.count(old)
    found, places = occurrences(data, old, 64)
    assert found == count
    assert places == [match.start() for match in re.finditer(re.escape(old), data)]
    assert replace_all(data, old, new, count) == data.replace(old, new)
    assert occurrences(data, old, 1) == (count, places[:1])


@given(SMALL)
def test_all_crlf(data):
    assert all_crlf(data) == (b"\n" in data and not re.search(rb"(?<!\r)\n", data))


@given(SMALL, OLD)
def test_nearly_like_an_expression(data, old):
    """Every place found is one that an expression finds, and none are found only where it finds none."""
    words = [re.escape(word) for word in old.split()]
    if not words:
        assert nearly(data, old, 64) == []
        return
    before = rb"(?<!\S)" if old[:1].isspace() else b""
    behind = rb"(?!\S)" if old[-1:].isspace() else b""
    want = [match.span() for match in re.finditer(before + rb"\s+".join(words) + behind, data)]
    got = nearly(data, old, 64)
    assert bool(got) == bool(want)
    assert got == sorted(set(got) & set(want))
    assert nearly(data, old, 1) == got[:1]


def test_sizes():
    """Long needles and long texts, hits at both ends."""
    old = bytes(range(256)) * 40
    data = old + b"x" * 1_000_000 + old
    assert occurrences(data, old, 2) == (2, [0, len(old) + 1_000_000])
    assert replace_all(data, old, b"", 2) == b"x" * 1_000_000
    assert nearly(b"x \t\n " * 100_000 + b"y", b"x\ny", 1) == [(499_995, 500_001)]


@pytest.mark.parametrize(
    "call",
    [
        lambda: occurrences(b"a", b"", 1),
        lambda: occurrences(b"a", b"a", 65),
        lambda: occurrences(b"a", b"a", -1),
        lambda: replace_all(b"aa", b"a", b"b", 3),
        lambda: replace_all(b"ab", b"a", b"b", 2),
        lambda: replace_all(b"ab", b"a", b"b", -1),
        lambda: nearly(b"a", b"", 1),
    ],
)
def test_refused(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize("content", ["", "a", "é\0😀", "x" * 100_000, "\u20ac" * 1000])
def test_utf8(content: str) -> None:
    view = utf8(content)
    assert bytes(view) == content.encode()
    assert view.readonly
    assert len(view) == len(content.encode())
    assert memoryview(view)[1:].tobytes() == content.encode()[1:]


def test_utf8_of_a_lone_surrogate() -> None:
    with pytest.raises(UnicodeEncodeError):
        utf8("a\ud800")


def test_utf8_outlives_its_name() -> None:
    view = utf8("".join(["ab"] * 1000))
    assert bytes(view) == b"ab" * 1000
