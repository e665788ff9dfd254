"""`_fast.udiff` on texts that are nearly diffs, on deltas and on base85: what the fuzzer's target asserts."""

from __future__ import annotations

from fuzz.fuzz_udiff import any_base85, any_delta, any_diff
from hypothesis import given, settings
from hypothesis import strategies as st

_ROWS = (
    "@@ -1,2 +1,2 @@|@@ -3 +3,2 @@|@@ @@|@@ -0,0 +1 @@|@@ -1|--- a/f|+++ b/f|-- |2.39|\\ No newline at end of file| a"
    "|-a|+b|| |\r|-|+|a|```|-- sql|diff --git a/f b/f"
    "|GIT binary patch|literal 5|Binary files a and b differ|From 0123456789"
)
ROWS = st.sampled_from([row.encode() for row in _ROWS.split("|")])
DIFFS = st.builds(
    lambda rows, ends, last: b"".join(map(bytes.__add__, rows, ends)) + last,
    st.lists(ROWS, max_size=14),
    st.lists(st.sampled_from([b"\n", b"\n", b"\r\n"]), min_size=14, max_size=14),
    st.sampled_from([b"", b" a", b"+b"]),
)
CONTENTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"a\r\n", b"\n", b"a"]), max_size=8).map(b"".join)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(text=DIFFS, content=CONTENTS)
def test_any_text(text: bytes, content: bytes) -> None:
    any_diff(text, content)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(base=st.binary(max_size=20), size=st.integers(0, 40), ops=st.lists(st.binary(max_size=6), max_size=5))
def test_any_delta(base: bytes, size: int, ops: list[bytes]) -> None:
    any_delta(base, bytes([len(base), size]) + b"".join(ops))


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.binary(max_size=120))
def test_any_base85(data: bytes) -> None:
    any_base85(data)
