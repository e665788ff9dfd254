"""A command's output as events hold it: lines, put together per stream, or the last bytes of both streams."""

from __future__ import annotations

LONGEST = 64 * 1024
"""Bytes of a line that are kept; the rest of a longer one is dropped."""


class LineSplitter:
    """Cuts the bytes of one stream into lines: at LF, one CR before it dropped, 64 KiB of each kept."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._any = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the lines that end in them."""
        *ended, rest = data.split(b"\n")
        if ended:
            self._begun += ended[0][: LONGEST + 1 - len(self._begun)]
            ended[0] = bytes(self._begun)
            self._begun.clear()
        self._begun += rest[: LONGEST + 1 - len(self._begun)]
        self._any = bool(rest) or (self._any and not ended)
        return [line if len(line) < LONGEST and line[-1:] != b"\r" else _cut(line) for line in ended]

    def end(self) -> list[bytes]:
        """Return the last line, if it has no end."""
        line = bytes(self._begun[:LONGEST])
        self._begun.clear()
        any_left, self._any = self._any, False
        return [line] if any_left else []


def _cut(line: bytes) -> bytes:
    """Return a line that ended, without the CR before its LF, as far as it is kept."""
    return (line.removesuffix(b"\r") if len(line) <= LONGEST else line)[:LONGEST]


class OutputTail:
    """The last bytes of a run's output, both streams in the order of arrival, starting at a whole character."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._data = b""
        self._cut = False

    def feed(self, data: bytes, stream: str) -> None:
        """Take the next bytes, of whichever stream."""
        self._data += data
        if len(self._data) > self._most:
            self._data = self._data[-self._most :]
            self._cut = True

    def text(self) -> str:
        """Return them as text; ill-formed UTF-8 becomes U+FFFD; a character cut at the start is left out."""
        data = self._data
        if self._cut:
            skipped = 0
            while skipped < 3 and skipped < len(data) and data[skipped] & 0xC0 == 0x80:
                skipped += 1
            data = data[skipped:]
        return data.decode(errors="replace")
