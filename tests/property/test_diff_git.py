"""Differences by lines: patch gives back the new text, the counts are git's."""

from __future__ import annotations

import pathlib
import random
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolserver._fast.diff import compare


def applied(old: bytes, hunks: bytes) -> bytes:
    """Apply hunks by their numbers alone, and check every context and removed line."""
    lines, out, at = old.splitlines(keepends=True), [], 0
    lines = list(old.split(b"\n"))
    lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    rows = hunks.split(b"\n")[:-1]
    place = 0
    while place < len(rows):
        _, minus, _, _ = rows[place].split(b" ")
        first, _, count = minus[1:].partition(b",")
        start = int(first) - (1 if count != b"0" else 0)
        out += lines[at:start]
        at = start
        place += 1
        while place < len(rows) and not rows[place].startswith(b"@@"):
            sign, text = rows[place][:1], rows[place][1:] + b"\n"
            if place + 1 < len(rows) and rows[place + 1].startswith(b"\\"):
                text = text[:-1]
                place += 1
            if sign != b"+":
                assert lines[at] == text
                at += 1
            if sign != b"-":
                out.append(text)
            place += 1
    return b"".join(out + lines[at:])


texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"c\n", b"dd\n", b"e", b"\r\n"]), max_size=40).map(b"".join)


@settings(max_examples=1000, deadline=None)
@given(texts, texts, st.integers(0, 4))
def test_the_hunks_lead_from_one_to_the_other(old, new, context):
    _added, _removed, hunks = compare(old, new, context=context, most=1 << 30)
    assert applied(old, hunks) == new
    assert bool(hunks) == (old != new)


def least(old: bytes, new: bytes) -> int:
    """The length of a shortest difference, by dynamic programming."""
    a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    row = list(range(len(b) + 1))
    for line in a:
        before, row[0] = row[0], row[0] + 1
        for k, other in enumerate(b, 1):
            before, row[k] = row[k], before if line == other else 1 + min(row[k], row[k - 1])
    return row[-1]


small = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=30).map(b"".join)


@settings(max_examples=1000, deadline=None)
@given(small, small)
def test_it_is_a_shortest_one(old, new):
    added, removed, _ = compare(old, new)
    assert added + removed == least(old, new)
    assert len(new.splitlines()) - len(old.splitlines()) == added - removed


@pytest.mark.parametrize("seed", range(6))
def test_large_texts_with_little_in_common(seed):
    """The search is given up, and the hunks are right all the same."""
    rng = random.Random(seed)
    words = [b"%d\n" % rng.randrange(40) for _ in range(6000)]
    other = [b"%d\n" % rng.randrange(40) for _ in range(6000)]
    old, new = b"".join(words), b"".join(other)
    assert applied(old, compare(old, new, most=1 << 30)[2]) == new


@pytest.mark.parametrize("seed", range(20))
def test_the_counts_are_those_of_git(tmp_path: pathlib.Path, seed: int):
    rng = random.Random(seed)
    old = [f"line {rng.randrange(60)}\n" for _ in range(rng.randrange(200))]
    new = list(old)
    for _ in range(rng.randrange(20)):
        at = rng.randrange(len(new) + 1)
        new[at : at + rng.randrange(3)] = [f"line {rng.randrange(60)}\n" for _ in range(rng.randrange(3))]
    (tmp_path / "old").write_text("".join(old))
    (tmp_path / "new").write_text("".join(new))
    told = subprocess.run(
        ["git", "diff", "--no-index", "--numstat", "--minimal", "old", "new"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    ).stdout
    added, removed, _ = compare("".join(old).encode(), "".join(new).encode())
    assert told.split()[:2] == ([str(added), str(removed)] if old != new else [])
