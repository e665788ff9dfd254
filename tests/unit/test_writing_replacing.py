"""Replacing in bytes, and the sentences about what is not there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.writing.replacing import NoReplacement, Replacement, ResultTooLarge, replace
from toolserver.writing.running_text import RunningText

LIMIT = 10_000_000


def done(content: bytes, old: bytes, new: bytes, every: bool = False) -> bytes:
    text = RunningText(content)
    replace(text, Replacement(old, new, every), LIMIT)
    return text.whole()


def refusal(content: bytes, old: bytes, new: bytes = b"new", every: bool = False) -> str:
    with pytest.raises(NoReplacement) as told:
        replace(RunningText(content), Replacement(old, new, every), LIMIT)
    return str(told.value)


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", b"a\nb", b"c\nd\ne", b"c\r\nd\r\ne\r\n"),
        (b"a\r\nb\r\n", b"b", b"c\nd", b"a\r\nc\r\nd\r\n"),
        (b"a\r\nb\r\n", b"b", b"c\r\nd\n", b"a\r\nc\r\nd\r\n\r\n"),
        (b"a\r\nb\r\n", b"a\r\nb", b"c\nd", b"c\nd\r\n"),
        (b"a\r\nb\n", b"b", b"c\nd", b"a\r\nc\nd\n"),
        (b"a\nb\n", b"b", b"c\r\nd", b"a\nc\r\nd\n"),
        (b"ab", b"b", b"c\nd", b"ac\nd"),
        (b"a\r\nb\r\nc", b"a\nb\r\nc", b"x", b"x"),
        (b"aaa", b"aa", b"b", b"ba"),
        (b"\xff\xfea\x00b\x00", b"a", b"c", b"\xff\xfec\x00b\x00"),
    ],
    ids=repr,
)
def test_line_ends(content, old, new, after):
    """§4 in a CRLF file, and in no other, LF stands for the file's line end; what is there literally goes first."""
    assert done(content, old, new) == after


def model(content: bytes, old: bytes, new: bytes, every: bool) -> bytes | None:
    """Say the rules of the specification once more, with whole strings; None: refused."""
    crlf = b"\n" in content and content.count(b"\n") == content.count(b"\r\n")

    def ends(text: bytes) -> bytes:
        return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") if crlf else text

    if content.count(old) == 0:
        old, new = ends(old), ends(new)
    elif b"\n" not in old:
        new = ends(new)
    count = content.count(old)
    if count == 0 or (count > 1 and not every):
        return None
    return content.replace(old, new)


PIECES = st.lists(st.sampled_from([b"a", b"b", b"ab", b"\n", b"\r\n", b"\r", b" "]), max_size=12).map(b"".join)
LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"ab"]), max_size=6)
CONTENTS = PIECES | LINES.map(b"\n".join) | LINES.map(b"\r\n".join)


@given(CONTENTS, PIECES.filter(bool), PIECES, st.booleans())
def test_like_the_model(content, old, new, every):
    try:
        after = done(content, old, new, every)
    except NoReplacement:
        after = None
    if 0 < content.count(b"\r\n") < content.count(b"\n") and b"\n" in old and old not in content:
        return  # mixed line ends have tests of their own
    assert after == model(content, old, new, every)


@pytest.mark.parametrize("every", [False, True])
def test_size_before_it_is_made(every):
    """§4 the error tells the size that the file would have had."""
    content = b"a" * 1000 if every else b"a" + b"b" * 999
    with pytest.raises(ResultTooLarge) as told:
        replace(RunningText(content), Replacement(b"a", b"x" * 5_000_000, every), 4_999_999)
    assert told.value.size == (5_000_000_000 if every else 5_000_999)


@pytest.mark.parametrize(
    ("content", "old", "told"),
    [
        (
            b"one\n\tfoo  = 1\n",
            b"    foo = 1",
            "old is not in the file; line 2 nearly matches, but for white space, tabs against blanks: "
            'line 2 has "\\tfoo  = 1" where old has "    foo = 1"',
        ),
        (
            b"def f():\n\treturn 1\n",
            b"def f():\n    return 1\n",
            "old is not in the file; line 1 nearly matches, but for the indentation, tabs against blanks: "
            'line 2 has "\\treturn 1" where old has "    return 1"',
        ),
        (
            b"alpha\ngamma \ndelta\n",
            b"gamma\ndelta",
            "old is not in the file; line 2 nearly matches, but for blanks at the line's end: "
            'line 2 has "gamma " where old has "gamma"',
        ),
        (
            b"x = 1\ny = 2\n",
            b"x = 1\r\ny = 2\r\n",
            "old is not in the file; line 1 nearly matches, but for the line end, CRLF against LF: "
            'line 1 has "x = 1" where old has "x = 1\\r"',
        ),
        (
            b"f(a, b)\n",
            b"f(a,\n  b)",
            "old is not in the file; line 1 nearly matches, but for line breaks: "
            'line 1 has "f(a, b)" where old has "f(a,"',
        ),
        (
            b"a  b\nx\na\tb\n",
            b"a b",
            "old is not in the file; line 1 nearly matches, but for white space: "
            'line 1 has "a  b" where old has "a b"; so does line 3',
        ),
        (
            b"a\nb\n",
            b"\n\na\nb",
            "old is not in the file; line 1 nearly matches, but for blank lines before or after it",
        ),
        (
            b"a\nfirst\nsecond\n",
            b"2\tfirst\n3\tsecond\n",
            "old is not in the file, but without the line numbers that read puts in front of each line it is on line 2",
        ),
        (
            b"a\r\nfirst\r\nsecond\r\n",
            b"2\tfirst\n3\tsecond",
            "old is not in the file, but without the line numbers that read puts in front of each line it is on line 2",
        ),
        (
            b"a\n  first\n",
            b"2\tfirst ",
            "old is not in the file; old has line numbers as read puts them in front of each line; without them line 2 "
            'nearly matches, but for blanks at the line\'s end: line 2 has "first" where old has "first "',
        ),
        (b"a\n", b"b", "old is not in the file"),
        (b"a\n", b" \n", "old is not in the file"),
        (b"", b"1\t\n", "old is not in the file"),
    ],
    ids=repr,
)
def test_what_nearly_matches(content, old, told):
    """§4 the error names the nearest lines and the difference."""
    assert refusal(content, old) == told


def test_many():
    """§4 the count and the first lines."""
    told = refusal(b"w w\n\nw\n" * 10, b"w")
    assert told.startswith("old is in the file 30 times, on lines 1, 1, 3, 4, 4, …: ")
    assert refusal(b"w\nw\n", b"w").startswith("old is in the file 2 times, on lines 1, 2: ")


def test_long_lines_are_cut():
    """The line is shown around the difference, however long it is."""
    told = refusal(b"x" * 5000 + b"  y" + b"z" * 5000, b"x" * 5000 + b" y" + b"z" * 5000)
    assert len(told) < 500
    assert "x  yz" in told
    assert "x yz" in told


def note(content: bytes, old: bytes, new: bytes) -> str | None:
    return replace(RunningText(content), Replacement(old, new), LIMIT)


def test_same():
    """§4 an edit that changes nothing is told, also where only the file's line ends make the texts the same."""
    assert note(b"a", b"a", b"a") == "changed nothing: old and new are the same text"
    assert "CRLF" in (note(b"a\r\nb\r\n", b"a\nb", b"a\r\nb") or "")
    assert "keep theirs" in (note(b"a\r\nb\nc\n", b"a\nb\nc", b"a\nb\r\nc") or "")
    assert note(b"a", b"a", b"b") is None
    assert refusal(b"a", b"b", b"b") == "old is not in the file"
