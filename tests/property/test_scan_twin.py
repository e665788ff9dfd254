"""`_fast.scan` equals its slow twin for arbitrary strings and texts, with every kind of loop."""

from __future__ import annotations

from fuzz.fuzz_scan import KINDS, check
from hypothesis import given, settings
from hypothesis import strategies as st

LETTERS = st.sampled_from([b"a", b"A", b"b", b"k", b"K", b"@", b"`", b"{", b"[", b"\n", b"\xff", b"\0", b"ab", b"e"])
WORDS = st.lists(LETTERS, min_size=1, max_size=6).map(b"".join)
TEXTS = st.lists(
    st.one_of(LETTERS, st.builds(lambda one, times: one * times, LETTERS, st.integers(1, 150))), max_size=12
).map(b"".join)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(texts=st.lists(WORDS, max_size=20), data=TEXTS, start=st.integers(0, 40), fold=st.booleans())
def test_twin(texts: list[bytes], data: bytes, start: int, fold: bool) -> None:
    check(tuple(texts), data, start, fold)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(text=WORDS, before=st.integers(0, 300), behind=st.integers(0, 300), fold=st.booleans())
def test_every_place(text: bytes, before: int, behind: int, fold: bool) -> None:
    """One string, wherever it stands in the blocks and however near the end."""
    check((text,), b"." * before + text.upper() + b"." * behind, 0, fold)
    check((text, b"zz"), b"." * before + text + b"." * behind, 0, fold)


def test_there_are_loops() -> None:
    assert "plain" in KINDS
