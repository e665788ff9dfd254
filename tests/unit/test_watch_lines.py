"""`watches.lines`: a command's lines and the tail of its output, however its bytes are cut into pieces."""

from __future__ import annotations

import random

import pytest

from toolserver.watches.lines import LONGEST, LineSplitter, OutputTail

CASES = [
    (b"", []),
    (b"one", [b"one"]),
    (b"one\n", [b"one"]),
    (b"one\r\ntwo\r", [b"one", b"two\r"]),
    (b"\n\n\r\n\r\r\n", [b"", b"", b"", b"\r"]),
    (b"x" * LONGEST + b"\ny", [b"x" * LONGEST, b"y"]),
    (b"x" * LONGEST + b"\r\ny\n", [b"x" * LONGEST, b"y"]),
    (b"x" * (LONGEST - 1) + b"\r\n", [b"x" * (LONGEST - 1)]),
    (b"x" * (3 * LONGEST) + b"\r\nend\n", [b"x" * LONGEST, b"end"]),
    (b"y\n" + b"x" * (LONGEST + 5), [b"y", b"x" * LONGEST]),
]


@pytest.mark.parametrize(("data", "lines"), CASES, ids=range(len(CASES)))
def test_lines(data: bytes, lines: list[bytes]) -> None:
    """Whole, byte by byte where that is short, and in random pieces."""
    rng = random.Random(len(data))
    cuts = [[], sorted(rng.sample(range(len(data) + 1), min(7, len(data)))), range(len(data) if len(data) < 100 else 0)]
    for cut in cuts:
        splitter, got = LineSplitter(), []
        for begin, end in zip([0, *cut], [*cut, len(data)], strict=True):
            got += splitter.feed(data[begin:end])
        assert got + splitter.end() == lines
        assert splitter.end() == []


def test_tail() -> None:
    """The last bytes, from a whole character on; ill-formed ones are U+FFFD."""
    tail = OutputTail(5)
    tail.feed("aé".encode(), "stdout")
    assert tail.text() == "aé"
    tail.feed("bcdé".encode()[:-1], "stderr")
    assert tail.text() == "bcd\ufffd"
