"""The note on a taken port: its work grows with the text and no faster; its patterns mean what they mean to `re`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from toolserver.processes import port_notes
from toolserver.processes.command import Command
from toolserver.processes.output import Output
from toolserver.processes.port_notes import SEEN, TRIES, port_note

PATTERNS = [port_notes._TAKEN, *port_notes._IN_MESSAGE, *port_notes._IN_COMMAND]
PIECES = [
    "-",
    "--port", "port ", "port=", "PORT=", "_", "a", "a.b", ".", ":", "::", "]", "*", "localhost", "('", "', ", ",", ")",
    " ", "0", "70000",
    "3000", "http.server ", "-p ", "-http.server ", "1.2.3.4", "EADDRINUSE ", "address already in use ",
]  # fmt: skip


class Exited:
    """What the note looks at."""

    def __init__(self, cmd: str, printed: str) -> None:
        self.command = Command(cmd, {"A": cmd})
        self.stdout, self.stderr = Output(None), Output(None)
        self.stderr.ring.append(printed.encode())


class Counted:
    """A pattern of RE2 that counts the bytes it is given; RE2 looks at each a bounded number of times."""

    def __init__(self, pattern: Any) -> None:
        assert isinstance(pattern, type(re2.compile(b"x"))), "a pattern of another engine"
        self.pattern = pattern
        self.steps = 0

    def search(self, text: bytes) -> Any:
        self.steps += len(text)
        return self.pattern.search(text)

    def finditer(self, text: bytes) -> Iterator[Any]:
        for match in self.pattern.finditer(text):
            self.steps += len(text)
            yield match
        self.steps += len(text)


def steps(cmd: str, printed: str, monkeypatch: pytest.MonkeyPatch) -> int:
    counted = [Counted(pattern) for pattern in PATTERNS]
    with monkeypatch.context() as patch:
        patch.setattr(port_notes, "_TAKEN", counted[0])
        patch.setattr(port_notes, "_IN_MESSAGE", counted[1:6])
        patch.setattr(port_notes, "_IN_COMMAND", counted[6:])
        port_note(Exited(cmd, printed))
    return sum(one.steps for one in counted)


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("where", ["command", "line", "lines"])
def test_twice_the_text_is_twice_the_work(piece: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(size: int) -> int:
        text = piece * (size // len(piece))
        if where == "command":
            return steps(text, "address already in use", monkeypatch)
        line = text + " address already in use\n"
        return steps("x", line if where == "line" else line[-200:] * (size // 200), monkeypatch)

    small, large = work(8_000), work(16_000)
    assert large <= 2 * small + 2_000


def test_no_more_is_looked_at_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    most = (len(PATTERNS) + 1) * (TRIES + 1) * (SEEN + 100)
    assert steps("-" * 10_000_000, "address already in use", monkeypatch) < most
    assert steps("x", "-" * 3_000_000 + " address already in use", monkeypatch) < most


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_patterns_mean_what_they_mean_to_python(text: str) -> None:
    """Short texts, for which the backtracking engine is a second opinion."""
    data = text.encode()
    for pattern in PATTERNS:
        expected = [match.span() for match in re.finditer(pattern.pattern, data)]
        assert [match.span() for match in pattern.finditer(data)] == expected
