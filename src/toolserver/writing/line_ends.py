"""Replacing a text in a file of mixed line ends, some CRLF and some LF (specification, section 4, edit)."""

from __future__ import annotations

import difflib

from toolserver._fast.text import occurrences

MOST_COMPARED = 250_000
"""Pairs of lines that are compared to find those which stay; of larger edits only those at both ends are found."""


def unix(text: bytes) -> bytes:
    """Return a text with LF for each CRLF."""
    return text.replace(b"\r\n", b"\n")


def crlf(text: bytes) -> bytes:
    """Return a text with a CR before every LF."""
    return unix(text).replace(b"\n", b"\r\n")


def span_of(content: bytes, old: bytes) -> tuple[int, int] | None:
    """Return where `old` is when CRLF counts as LF in both; None unless that is at one place only."""
    plain, wanted = unix(content), unix(old)
    count, places = occurrences(plain, wanted, 1)
    if count != 1:
        return None
    return _offset(content, places[0]), _offset(content, places[0] + len(wanted))


def _offset(content: bytes, plain: int) -> int:
    """Return the offset in a content of an offset in `unix(content)`."""
    low, high = plain, min(2 * plain, len(content))
    while low < high:
        middle = (low + high) // 2
        if middle - occurrences(content[:middle], b"\r\n", 0)[0] < plain:
            low = middle + 1
        else:
            high = middle
    # an offset between a CR and its LF stands for the one after both
    return low + 1 if low and content[low - 1 : low + 1] == b"\r\n" else low


def with_ends(content: bytes, start: int, end: int, new: bytes) -> bytes:
    """Return `new` with the line ends that it gets in the place of `content[start:end]`.

    A line that stays keeps its end; a new one takes the end of the line it follows, the first line of the file that of
    the line it replaces.
    """
    span = content[start:end]
    before = unix(span).split(b"\n")
    after = unix(new).split(b"\n")
    ends = [b"\r\n" if line.endswith(b"\r") else b"\n" for line in span.split(b"\n")[:-1]]
    if (next_feed := content.find(b"\n", end)) >= 0:  # the end of the last line is after the span
        ends.append(b"\r\n" if content[next_feed - 1 : next_feed] == b"\r" else b"\n")
    kept = _kept(before, after)
    feed = content.rfind(b"\n", 0, start)
    latest = (ends[0] if ends else b"\n") if feed < 0 else b"\r\n" if content[feed - 1 : feed] == b"\r" else b"\n"
    out: list[bytes] = []
    for number, line in enumerate(after[:-1]):
        stays = kept.get(number)
        if stays is not None and stays < len(ends):
            latest = ends[stays]
        out += (line, latest)
    return b"".join((*out, after[-1]))


def _kept(before: list[bytes], after: list[bytes]) -> dict[int, int]:
    """Return which line of `before` each line of `after` is, of those that stay."""
    most = min(len(before), len(after))
    head = 0
    while head < most and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < most - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    kept = {at: at for at in range(head)}
    kept |= {len(after) - 1 - at: len(before) - 1 - at for at in range(tail)}
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if old and new and len(old) * len(new) <= MOST_COMPARED:
        for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
            kept |= {head + block.b + at: head + block.a + at for at in range(block.size)}
    return kept
