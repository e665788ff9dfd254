"""`_fast.grep` on small trees: every case through all code paths, against the plain twin."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import search_twin as twin

from toolserver._fast.grep import Grep
from toolserver._fast.ignore import BaseRules
from toolserver.search.engine import _matching
from toolserver.search.pattern import analyse

LONG_LINE = b"x" * 5000

FILES = {
    b"a/b/z": b"foo\n-\nfoo bar\n",
    b"a/x": b"foo",
    b"a-b": b"\r\nfoo\r\n\r\nbar foo\r",
    b"a.txt": b"one\nfoo\r\ntwo\r\n",
    b"a0": b"",
    b"bom": b"\xef\xbb\xbffoo first\nfoo",
    b"only-bom": b"\xef\xbb\xbf",
    b"binary": b"foo\n\0",
    b"late": b"foo\n" + b"y\n" * 5000 + b"\0 foo\n",
    b"wide": "\ufefffoo ≤\r\nbär 😀 foo\n".encode("utf-16-le"),
    b"wide-big": "\ufefffoo\r\n".encode("utf-16-be") + b"\xd8\x00" + "foo\n".encode("utf-16-be") + b"x",
    b"stray": b"caf\xe9 foo \xff!\n\xc3\x28\nfoo",
    b"caf\xe9/f": b"foo\n",
    b"two\nlines": b"foo\n",
    b"cr": b"foo\rbar\r\nfoo\r\r\n",
    b"many": b"foo\n" * 300,
    b"none": b"nothing\n" * 100,
    b"big": b"".join(b"%d foo %d\n" % (number, number) for number in range(40_000)),
    b"deep/" + b"d/" * 30 + b"f": b"foo\n",
}


def compact(results: list[object]) -> bytes:
    return json.dumps(results, ensure_ascii=False, separators=(",", ":")).encode()


PATTERNS = [
    "foo",
    "foo|bar",
    "^foo$",
    "foo$",
    r"fo+\b",
    "[f]oo.*r",
    "",
    "^$",
    "^",
    "$",
    "x*",
    r"\d+ foo 3",
    "foo 39",
    r"\r",
    r"o\r",
    "≤|😀",
    r"\x{FFFD}",
    r"\w+\W+\w+",
    "(?i)FOO",
    r"a\nb",
    r"\pL\C",
    "[^a-z]$",
    "zzz",
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    root = tmp_path_factory.mktemp("tree")
    twin.put(root, FILES)
    fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def judge(pattern: str) -> Callable[[bytes], bool]:
    plan = analyse(pattern)
    return lambda line: not plan.never and bool(plan.compiled.contains(line))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_agrees_with_the_twin(tree: int, pattern: str) -> None:
    for asked in (
        {"mode": "content", "lines": 0, "most": 2000},
        {"mode": "content", "lines": 2, "most": 9},
        {"mode": "content", "lines": 0, "most": 0},
        {"mode": "files", "lines": 0, "most": 3},
        {"mode": "count", "lines": 0, "most": 2000},
    ):
        wanted = twin.expected(FILES, judge(pattern), str(asked["mode"]), int(asked["lines"]), int(asked["most"]))
        for way in twin.PATHS:
            for regex in (False, True):
                assert twin.grep(tree, pattern, way=way, regex=regex, **asked) == wanted, (asked, way, regex)


@pytest.mark.parametrize("size", [4096, 4097, 9000, 70_000, 300_000])
@pytest.mark.parametrize("place", [0.0, 0.3, 1.0])
def test_a_long_line_is_cut_around_its_first_match(tmp_path: pathlib.Path, size: int, place: float) -> None:
    before = int((size - 3) * place)
    line = b"x" * before + b"foo" + b"x" * (size - 3 - before)
    (tmp_path / "f").write_bytes(b"head\n" + line + b"\r\ntail\n")
    fd = os.open(tmp_path, os.O_PATH)
    for way in twin.PATHS:
        for pattern, regex in [("foo", False), ("foo", True), ("[f]o+", True)]:
            found, _ = twin.grep(fd, pattern, way=way, regex=regex, lines=1)
            text = found[0].pop("text")
            wanted: dict[str, Any] = {"path": "f", "line": 2, "context": f"head\n{text}\ntail"}
            assert found == [wanted if size == 4096 else {**wanted, "cut": True}]
            assert len(text) == 4096
            assert "foo" in text
            assert text in line.decode()
    os.close(fd)


def test_a_match_longer_than_what_is_shown_is_shown_from_its_start(tmp_path: pathlib.Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100 + b"<" + b"y" * 9000 + b">" + b"x" * 100)
    fd = os.open(tmp_path, os.O_PATH)
    for way in twin.PATHS:
        (match,), _ = twin.grep(fd, "<.*>", way=way)
        assert match["text"] == "<" + "y" * 4095
    os.close(fd)


@pytest.mark.parametrize("limit", [2, 3, 60, 1000, 20_000])
def test_as_many_results_as_fit(tree: int, limit: int) -> None:
    everything, _ = twin.grep(tree, "foo", way={"width": 1})
    for way in twin.PATHS:
        for lines in (0, 3):
            found, truncated = twin.grep(tree, "foo", way=way, most_bytes=limit, lines=lines)
            assert truncated
            next_one, _ = twin.grep(tree, "foo", way=way, most=len(found) + 1, lines=lines)
            assert next_one[:-1] == found
            assert len(compact(found)) <= limit < len(compact(next_one))
    assert everything


def test_a_stopped_search_ends(tree: int) -> None:
    job = Grep(tree, b"", BaseRules(), **_matching(analyse(r"\w \w")))
    job.stop()
    assert job.stopped
    assert not job.work(0, 1.0)
    with pytest.raises(IndexError):
        job.work(1, 1.0)
