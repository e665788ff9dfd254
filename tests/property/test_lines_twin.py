"""`_fast.lines` equals its slow twin for arbitrary bytes, offsets and limits."""

from __future__ import annotations

import json

import pytest
from fuzz.fuzz_lines import check, twin
from hypothesis import given, settings
from hypothesis import strategies as st

from toolserver._fast import lines

# What the kernel tells apart, and lengths around the edges of its lanes (16, 32), blocks (64) and last bytes (128).
PIECES = st.one_of(
    st.sampled_from(
        [b"\n", b"\r", b"\r\n", b"\t", b'"', b"\\", b"\0", b"\x1f", b"\x7f", b"\x80", b"\xff", b"\xc0\x80"]
    ),
    st.sampled_from([b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xef\xbb\xbf", b"\xef\xbf\xbd"]),
    st.sampled_from([b"\xe2\x82", b"\xf0\x9f", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\xaf"]),
    st.builds(lambda byte, times: byte * times, st.sampled_from([b"x", b"\t", b"\n", b"\x80"]), st.integers(1, 140)),
    st.binary(max_size=20),
)
TEXTS = st.lists(PIECES, max_size=24).map(b"".join)
COUNTS = st.one_of(st.integers(0, 40), st.sampled_from([99, 100, 101, 2000, 2**31, 2**63 - 1]))


@settings(max_examples=400, derandomize=True, deadline=None)
@given(data=TEXTS, offset=COUNTS, limit=COUNTS, start=st.integers(0, 3))
def test_twin(data: bytes, offset: int, limit: int, start: int) -> None:
    check(data, max(offset, 1), limit, min(start, len(data)))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(data=TEXTS, before=st.integers(0, 200))
def test_every_alignment(data: bytes, before: int) -> None:
    """What stands in front moves the text through the blocks and changes nothing else."""
    plain = lines.json_string(data)[1:-1]
    assert lines.json_string(b"x" * before + b" " + data) == b'"' + b"x" * before + b" " + plain + b'"'


@settings(max_examples=60, derandomize=True, deadline=None)
@given(data=TEXTS, cut=st.integers(1, 30))
def test_windows_make_up_the_whole(data: bytes, cut: int) -> None:
    """Windows of `cut` lines, one after the other, are the whole file."""
    whole, total, _ = twin(data, 1, 2**62)
    windows = [twin(data, offset, cut) for offset in range(1, total + 1, cut)]
    got = [lines.number(data, offset, cut) for offset in range(1, total + 1, cut)]
    assert [(text.decode(), more) for text, _, more in got] == [
        (lines.json_string(text.encode()).decode(), more) for text, _, more in windows
    ]
    assert "\n".join(text for text, _, _ in windows) == whole


@settings(max_examples=200, derandomize=True, deadline=None)
@given(data=TEXTS, offset=st.integers(1, 12), most=st.integers(0, 400))
def test_text_within(data: bytes, offset: int, most: int) -> None:
    """The longest whole lines that have at most so many bytes as text, told in both measures."""
    numbered, _, _ = lines.number(data, offset, 1000)
    shown = json.loads(numbered).split("\n") if len(numbered) > 2 else []
    kept: list[str] = []
    while len(kept) < len(shown) and len("\n".join(shown[: len(kept) + 1]).encode()) <= most:
        kept = shown[: len(kept) + 1]
    text, end, count = lines.text_within(numbered, most)
    assert json.loads(numbered[:end] + b'"') == "\n".join(kept)
    assert (text, count) == (len("\n".join(kept).encode()), len(kept))


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 300_000])
def test_large_texts(size: int) -> None:
    """Beyond what is done under the GIL, and with numbers of every length."""
    line = b'\tif (a < "b\\n") {\t\t\t\t\t\t\t\t\t\t/* \xc3\xa9 \xff */\r\n'
    data = (b"\n" * 1200 + line * (size // len(line)) + b"x" * size)[:size]
    check(data, 1, 2**63 - 1)
    check(data, 1195, 20)


def test_numbers_grow_a_digit() -> None:
    for power in (10, 100, 1000, 10_000, 100_000, 1_000_000):
        content, total, truncated = lines.number(b"\n" * (power + 1), power - 1, 3)
        assert content == f'"{power - 1}\\t\\n{power}\\t\\n{power + 1}\\t"'.encode()
        assert (total, truncated) == (power + 1, False)


@pytest.mark.parametrize(("offset", "limit", "start"), [(0, 1, 0), (-1, 1, 0), (1, -1, 0), (1, 1, -1), (1, 1, 4)])
def test_refused(offset: int, limit: int, start: int) -> None:
    with pytest.raises(ValueError, match="counts from 1"):
        lines.number(b"abc", offset, limit, start=start)
