"""Reading the headers of a diff is linear: twice the input takes twice the steps, counted and not timed."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from regexsteps import steps
from test_patch_git import apply, folders

from toolserver.errors import BadArgument
from toolserver.patches import headers, messages, names, parser, staging

MODULES = (headers, messages, names, parser, staging)
USES = {
    (headers, "_OCTAL"): "fullmatch",
    (headers, "_INDEX"): "fullmatch",
    (messages, "_NORMAL"): "fullmatch",
    (names, "_STAMP"): "fullmatch",
    (names, "_QUOTED"): "match",
    (names, "_ESCAPE"): "sub",
    (parser, "_BINARY"): "fullmatch",
}
"""How each expression is used."""
PIECES = st.sampled_from(
    [b"", b" ", b"0", b"1970-01-01 00:00:00.", b"1970-01-01 ", b'"', b"\\", b"\\0", b"a", b"+0000", b"x"]
)


@pytest.fixture(autouse=True)
def deep() -> Any:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(limit)


def test_every_expression_is_counted() -> None:
    found = {
        (module, name) for module in MODULES for name, value in vars(module).items() if isinstance(value, re.Pattern)
    }
    assert found == set(USES)
    for module in MODULES:
        assert not re.search(r"\bre\.(?!compile|Pattern|Match|DOTALL)\w", inspect.getsource(module))


def test_the_count_shows_what_grows() -> None:
    """The counter itself: blanks before something that fails grow with the square, a possessive repeat does not."""
    for text, grows in ((rb" +x", 3), (rb" ++x", 3), (rb"(?:a| )+x", 3)):
        once, twice = (steps(re.compile(text), "search", b" " * count) for count in (50, 100))
        assert twice > grows * once
    once, twice = (steps(re.compile(rb" ++x"), "match", b" " * count) for count in (50, 100))
    assert twice < 2.2 * once


@settings(
    max_examples=300, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(use=st.sampled_from(sorted(USES, key=str)), first=PIECES, again=PIECES, last=PIECES)
def test_expressions_are_linear(use: tuple[Any, str], first: bytes, again: bytes, last: bytes) -> None:
    pattern = getattr(*use)
    once, twice = (steps(pattern, USES[use], first + again * count + last) for count in (60, 120))
    assert twice <= 2.2 * once + 100


def lines_run(work: Callable[[], object]) -> int:
    """Return how many lines of the package are run for some work, which may be refused."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace if "toolserver" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except BadArgument:
        pass
    finally:
        sys.settrace(before)
    return count


STARTS = [
    "--- a/f",
    "--- a/f\t",
    '--- "a/f',
    "diff --git ",
    'diff --git "a',
    "rename from ",
    "index ",
    "GIT binary patch\n",
]
WORDS = [
    " ",
    "x ",
    " x",
    '"',
    "\\\\",
    "\\0",
    " 1970-01-01",
    "a/x b/x ",
    "0",
    "\n",
    "\n--- x",
    "\n@@ x\n\n",
    "\n- x\n\n",
]


@settings(max_examples=300, derandomize=True, deadline=None)
@given(start=st.sampled_from(STARTS), word=st.sampled_from(WORDS), end=st.sampled_from(["", "x", "\n", "\n+++ b/f\n"]))
def test_reading_is_linear(start: str, word: str, end: str) -> None:
    texts = [f"diff --git a/f b/f\n{start}{word * count}{end}".encode() for count in (200, 400)]
    once, twice = (lines_run(functools.partial(parser.read, text)) for text in texts)
    assert twice <= 2.2 * once + 200


def test_a_series_is_linear() -> None:
    """What earlier mails have left is looked at once, however many mails come after."""
    mail = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\n\n---\n--- /dev/null\n+++ b/f{{}}\n@@ -0,0 +1 @@\n+x\n"
    runs = []
    for count in (50, 100):
        with folders("root") as (root,):
            text = "".join(map(mail.format, range(count))).encode()
            runs.append(lines_run(functools.partial(apply, root, text)))
    assert runs[1] <= 2.2 * runs[0]
