"""`_fast.udiff` places hunks as the slow model does, and writes what it writes."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from udiff_model import Hunk, Model

from toolserver._fast import udiff

LINES = [b"a", b"b", b"c", b"a ", b"", b" ", b"b\t", b"x"]


def kernel(content: bytes, hunks: list[Hunk]) -> bytes | udiff.Misplaced:
    diff = udiff.Diff(b"".join(hunk.text() for hunk in hunks))
    read, end = diff.hunks(0)
    assert end == len(diff)
    assert len(read) == len(hunks)
    try:
        return read.apply(content, 1 << 20)[0]
    except udiff.Misplaced as error:
        return error


@st.composite
def files_and_hunks(draw: st.DrawFn) -> tuple[bytes, list[Hunk]]:
    """A small file over few lines, and hunks cut out of it, some with wrong lines, some with a wrong text."""
    alphabet = draw(st.sampled_from([LINES[:3], LINES[:4], LINES]))
    lines = draw(st.lists(st.sampled_from(alphabet), max_size=12))
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    content = b"".join(line + end for line in lines)
    unended = bool(lines) and draw(st.booleans())
    if unended:
        content = content[: -len(end)]
        unended = bool(content) and not content.endswith(b"\n")
    hunks = []
    at = 0
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(len(lines), 1)))
        if draw(st.booleans()):
            start = at + start % 3
        old = lines[start : start + draw(st.integers(0, 3))]
        if draw(st.integers(0, 9)) == 0:
            old = draw(st.lists(st.sampled_from(alphabet), max_size=2))
        elif draw(st.integers(0, 4)) == 0:
            old = [line.rstrip() + draw(st.sampled_from([b"", b" ", b"\t"])) for line in old]
        body = [(draw(st.sampled_from(" -")), line) for line in old]
        for _ in range(draw(st.integers(0 if any(sign == "-" for sign, _ in body) else 1, 2))):
            body.insert(draw(st.integers(0, len(body))), ("+", draw(st.sampled_from([b"new", b"a"]))))
        stated = draw(st.sampled_from([start + bool(old)] * 2 + [1, draw(st.integers(0, 14))] + [None] * bool(old)))
        last = body[-1][0]
        last_old = next((sign for sign, _ in reversed(body) if sign != "+"), "")
        may_end = unended and start + len(old) == len(lines) and (last_old == "-" or last == " ")
        old_unended = may_end and draw(st.booleans())
        hunks.append(Hunk(stated, body, old_unended, last == "+" and draw(st.integers(0, 5)) == 0))
        if old_unended and last == " ":
            hunks[-1].new_unended = True
        at = start + len(old)
    return content, hunks


@settings(max_examples=1500, derandomize=True, deadline=None)
@given(files_and_hunks())
@example((b"x \ny\n-\nx\ny\n", [Hunk(1, [(" ", b"x"), ("-", b"y"), ("+", b"Y")])]))
def test_places_and_result(case: tuple[bytes, list[Hunk]]) -> None:
    content, hunks = case
    model = Model(content, hunks)
    got = kernel(content, hunks)
    refused = model.refusal()
    if refused is None:
        assert got == model.result()
        return
    assert isinstance(got, udiff.Misplaced), (refused.kind, got)
    assert got.kind == refused.kind
    if refused.hunk >= 0:
        assert got.hunk == refused.hunk + 1
    if refused.places is not None:
        first = bool(hunks[refused.hunk].old)
        assert got.places == [place + first for place in refused.places][:10]
