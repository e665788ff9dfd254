"""Random small trees and patterns: the kernel on every path against the plain twin."""

from __future__ import annotations

import os
import pathlib
import tempfile

import search_twin as twin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolserver.errors import BadArgument
from toolserver.search.pattern import analyse

LINES = st.sampled_from(
    [
        b"foo",
        b"Foo bar",
        b"",
        b"\r",
        b"x foo\r",
        b"caf\xe9",
        "\u017ftra\u00dfe Kelvin \u212a".encode(),
        b"oof" * 40,
        b"\tb",
    ]
)
TEXTS = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(LINES, max_size=12),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
).map(lambda it: it[0] + it[2].join(it[1]) + (it[2] if it[3] else b""))
WIDE = TEXTS.map(lambda text: b"\xff\xfe" + text.decode(errors="replace").encode("utf-16-le"))
DATA = st.one_of(TEXTS, TEXTS, TEXTS, WIDE, st.binary(max_size=40), TEXTS.map(lambda text: text * 60 + b"\0\nfoo\n"))
NAMES = st.sampled_from([b"a", b"a.c", b"a-b", b"B", b"\xe9", b"n\nl", b"a/x", b"a/y/z", b"d/a", b"d/0", b"d/e/f"])
TREES = st.dictionaries(NAMES, DATA, max_size=9).filter(
    lambda files: not any(other.startswith(path + b"/") for path in files for other in files)
)
PATTERNS = st.one_of(
    st.sampled_from(
        ["foo", "fo{2}|bar", r"\bfoo", "o$", "^", "^$", "[^o]$", r"\s", "(?i)\u017f", "k", r"foo\r?$", "", ".", r"\C"]
    ),
    st.text("fo.*^$|[a]b\\r", min_size=1, max_size=6),
)


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    TREES, PATTERNS, st.booleans(), st.sampled_from(["content", "files", "count"]), st.integers(0, 2), st.integers(0, 6)
)
def test_agrees_with_the_twin(
    files: dict[bytes, bytes], pattern: str, fold: bool, mode: str, context: int, most: int
) -> None:
    try:
        plan = analyse(pattern, ignore_case=fold)
    except BadArgument:
        return
    wanted = twin.expected(
        files, lambda line: not plan.never and bool(plan.compiled.contains(line)), mode, context, most
    )
    with tempfile.TemporaryDirectory() as made:
        twin.put(pathlib.Path(made), files)
        fd = os.open(made, os.O_PATH)
        try:
            for way in twin.PATHS:
                for regex in (False, True):
                    asked = {"mode": mode, "lines": context, "most": most, "ignore_case": fold}
                    assert twin.grep(fd, pattern, way=way, regex=regex, **asked) == wanted, (way, regex)
        finally:
            os.close(fd)
