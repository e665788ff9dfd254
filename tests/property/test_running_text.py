"""Many edits of one text: the index and the parts are the same as one edit after the other over the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolserver._fast.anchors import Anchors
from toolserver.writing import running_text
from toolserver.writing.line_ends import crlf, span_of, unix, with_ends
from toolserver.writing.replacing import NoReplacement, Replacement, ResultTooLarge, replace
from toolserver.writing.running_text import RunningText

WORDS = [
    b"a",
    b"b",
    b"ab",
    b"aa",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"one two three ",
    b"one two four ",
    b"xyxyxyxyxy",
    b"0123",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=30).map(b"".join)
SHORT = st.lists(st.sampled_from(WORDS), max_size=4).map(b"".join)
STEPS = st.lists(st.builds(Replacement, SHORT.filter(bool), SHORT, st.booleans()), min_size=1, max_size=12)
LIMIT = 100_000


def edited(text: RunningText, steps: list[Replacement], limit: int, *, fresh: bool) -> list[object]:
    """Return what each step did: its note or its error, and the text after it. `fresh`: a new text for each step."""
    told: list[object] = []
    for step in steps:
        if fresh:
            text = RunningText(text.whole())
        try:
            told.append(replace(text, step, limit))
        except (NoReplacement, ResultTooLarge) as error:
            told.append((type(error), str(error)))
        told.append((text.whole(), text.size))
    return told


def sought(steps: list[Replacement]) -> set[bytes]:
    return {one.old for one in steps} | {crlf(one.old) for one in steps}


@settings(max_examples=600, deadline=None)
@given(TEXTS, STEPS, st.sampled_from([60, LIMIT]))
def test_like_one_after_the_other(content: bytes, steps: list[Replacement], limit: int) -> None:
    want = edited(RunningText(content), steps, limit, fresh=True)
    assert edited(RunningText(content, sought(steps)), steps, limit, fresh=False) == want
    assert edited(RunningText(content), steps, limit, fresh=False) == want


@settings(max_examples=300, deadline=None)
@given(TEXTS, STEPS)
def test_without_asking_between(content: bytes, steps: list[Replacement]) -> None:
    """Nothing asks for the whole text between the edits, so that their parts pile up."""
    text, model = RunningText(content, sought(steps)), content
    for step in steps:
        count = model.count(step.old)
        found, places = text.find(step.old)
        assert found == count
        if count:
            text.replace(step.old, step.new, count, places)
            model = model.replace(step.old, step.new)
        assert text.all_crlf == (0 < model.count(b"\r\n") == model.count(b"\n"))
        assert text.mixed == (0 < model.count(b"\r\n") < model.count(b"\n"))
    assert b"".join(text.pieces()) == model == text.whole()
    assert text.size == len(model)


@pytest.mark.parametrize(
    ("name", "value"), [("MOST_PLACES", 2), ("MOST_HITS", 2), ("MOST_PARTS", 3), ("MOST_BASES", 1)]
)
@settings(max_examples=100, deadline=None)
@given(content=TEXTS, steps=STEPS)
def test_beyond_the_bounds(name: str, value: int, content: bytes, steps: list[Replacement]) -> None:
    """Where the index gives up the answer is the same."""
    before = getattr(running_text, name)
    setattr(running_text, name, value)
    try:
        test_without_asking_between.hypothesis.inner_test(content, steps)  # type: ignore[attr-defined]
    finally:
        setattr(running_text, name, before)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.lists(SHORT.filter(bool), max_size=8), TEXTS)
def test_anchors(content: bytes, patterns: list[bytes], other: bytes) -> None:
    """Wherever a pattern is, its anchor is, at its offset: in the text, and in another one that is scanned."""
    anchors = Anchors(patterns, content, 1000)
    for pattern in patterns:
        number, offset = anchors.anchor(pattern) or (-1, -1)
        assert number >= 0
        places = anchors.places(number)
        assert places == sorted(set(places))
        for text, found in (
            (content, set(places)),
            (other, {at for at, _, which in anchors.scan(other) if which == number}),
        ):
            at = text.find(pattern)
            while at >= 0:
                assert at + offset in found
                at = text.find(pattern, at + 1)


def test_bytes_that_are_scanned() -> None:
    """10 000 edits that do not touch one another take a few passes over the file; without the index it is one each."""
    lines = [b"line %06d " % number + b"y" * 90 + b"\n" for number in range(20_000)]
    content = b"".join(lines)
    steps = [Replacement(b"line %06d " % at, b"LINE %06d: " % at) for at in range(0, 20_000, 2)]
    text = RunningText(content, {one.old for one in steps})
    for step in steps:
        assert replace(text, step, 10_485_760) is None
    assert text.scanned < 4 * len(content)
    want = b"".join(
        line.replace(b"line", b"LINE").replace(b" y", b": y") if number % 2 == 0 else line
        for number, line in enumerate(lines)
    )
    assert text.whole() == want


def test_edits_that_touch_one_another() -> None:
    """A chain in which each edit changes what the one before has left takes no pass for each either."""
    content = b"<0>" + b"z" * 1_000_000
    steps = [Replacement(b"<%d>" % at, b"<%d>" % (at + 1)) for at in range(500)]
    text = RunningText(content, {one.old for one in steps})
    for step in steps:
        assert replace(text, step, 10_485_760) is None
    assert text.scanned < 5 * len(content)
    assert text.whole() == b"<500>" + b"z" * 1_000_000


# --------------------------------------------------------------------------------------------------- mixed line ends

LINES = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"", b"de"]), st.sampled_from([b"\n", b"\r\n"])), max_size=8
)


@settings(max_examples=600, deadline=None)
@given(
    LINES, st.integers(0, 8), st.integers(1, 8), st.lists(st.sampled_from([b"a", b"b", b"x", b"", b"y"]), max_size=6)
)
def test_line_ends_that_stay(lines: list[tuple[bytes, bytes]], first: int, count: int, new: list[bytes]) -> None:
    """Against lines with their ends: the same lines at both ends keep theirs, new ones take that of the line before."""
    content = b"".join(text + end for text, end in lines)
    whole = lines[first : first + count]
    if not whole:
        return
    old = b"".join(text + b"\n" for text, _ in whole)
    start = sum(len(text + end) for text, end in lines[:first])
    stop = start + sum(len(text + end) for text, end in whole)
    if unix(content).count(old) != 1 or unix(content).find(old) != len(unix(content[:start])):
        return  # occurrences do not overlap, so another one may count
    assert span_of(content, old) == (start, stop)
    got = with_ends(content, start, stop, b"".join(line + b"\n" for line in new))
    shown = got.split(b"\n")
    assert shown.pop() == b""
    assert [line.removesuffix(b"\r") for line in shown] == new
    ends = [b"\r\n" if line.endswith(b"\r") else b"\n" for line in shown]
    texts = [text for text, _ in whole]
    head = 0
    while head < min(len(new), len(texts)) and new[head] == texts[head]:
        assert ends[head] == whole[head][1]
        head += 1
    tail = 0
    while tail < min(len(new), len(texts)) - head and new[-1 - tail] == texts[-1 - tail]:
        tail += 1
        assert ends[-tail] == whole[-tail][1]
    before = lines[first - 1][1] if first else whole[0][1]
    for number in range(head, len(new) - tail):
        if new[number] not in texts[head : len(texts) - tail]:
            assert ends[number] == (ends[number - 1] if number else before)


@settings(max_examples=300, deadline=None)
@given(TEXTS, SHORT.filter(bool))
def test_where_the_text_is(content: bytes, old: bytes) -> None:
    """The span is the text but for line ends, at the one place; none where there are more or none."""
    span = span_of(content, old)
    if unix(content).count(unix(old)) != 1:
        assert span is None
        return
    assert span is not None
    start, end = span
    assert unix(content[start:end]) == unix(old)
    assert unix(content[:start]) + unix(old) + unix(content[end:]) == unix(content)
