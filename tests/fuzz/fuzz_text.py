"""`_fast.text` against Python's bytes and regular expressions: any text, any needle."""

from __future__ import annotations

import re

from toolserver._fast import text


def check(data: bytes, old: bytes, new: bytes, most: int) -> None:
    """Ask the kernel and its twin the same and compare."""
    count = data.count(old)
    places = [match.start() for match in re.finditer(re.escape(old), data)]
    assert text.occurrences(data, old, most) == (count, places[:most])
    assert text.replace_all(data, old, new, count) == data.replace(old, new)
    assert text.all_crlf(data) == (b"\n" in data and not re.search(rb"(?<!\r)\n", data))
    words = [re.escape(word) for word in old.split()]
    before = rb"(?<!\S)" if old[:1].isspace() else b""
    behind = rb"(?!\S)" if old[-1:].isspace() else b""
    want = [match.span() for match in re.finditer(before + rb"\s+".join(words) + behind, data)] if words else []
    got = text.nearly(data, old, most)
    assert got == sorted(set(got) & set(want))
    assert bool(got) == bool(want and most)


def target(data: bytes) -> None:
    """The first bytes say how long needle and replacement are, and how many places are asked for."""
    if len(data) >= 4 and 0 < data[0] <= len(data) - 3:
        rest = data[3:]
        check(rest[data[0] :], rest[: data[0]], rest[: data[1] % 8], data[2] % 65)
