"""Diffs from anybody: reading and placing answer, or raise an error of ours; what is placed is what the diff says.

The input is a file and a diff with a byte 0xFF between them; without it the diff is tried on the empty file.
"""

from toolserver._fast import udiff
from toolserver.errors import ToolError
from toolserver.patches import parser

LIMIT = 1 << 20


def target(data: bytes) -> None:
    content, _, text = data.rpartition(b"\xff")
    try:
        parts = parser.read(text).parts
    except ToolError:
        parts = []
    for part in parts:
        if part.binary is not None:
            binary(part.binary, content)
        if part.hunks is not None:
            placed(part.hunks, content)


def placed(hunks: udiff.Hunks, content: bytes) -> None:
    """Place hunks; the lines that the result has more are those that they add more than they remove."""
    try:
        result, forgiven = hunks.apply(content, LIMIT)
    except (udiff.Misplaced, udiff.TooLarge):
        return
    assert len(result) <= LIMIT
    for hunk, header, stated, line, what in forgiven:
        assert 1 <= hunk <= len(hunks)
        assert header >= 1
        assert stated >= -1
        assert 0 <= line <= content.count(b"\n") + 1
        assert what
        hunks.lost_blanks(hunk)


def binary(found: parser.Binary, content: bytes) -> None:
    if found.size > LIMIT:
        return
    try:
        data = found.inflated()
        if found.delta:
            udiff.apply_delta(content, data, LIMIT)
    except (ToolError, ValueError):
        return
