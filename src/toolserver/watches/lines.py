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
        out = []
        for part in ended:
            self._begun += part[: LONGEST + 1 - len(self._begun)]
            out.append(self._whole(ended=True))
        self._begun += rest[: LONGEST + 1 - len(self._begun)]
        self._any = bool(rest) or (self._any and not ended)
        return out

    def end(self) -> list[bytes]:
        """Return the last line, if it has no end."""
        return [self._whole(ended=False)] if self._any else []

    def _whole(self, *, ended: bool) -> bytes:
        line = bytes(self._begun)
        self._begun.clear()
        self._any = False
        if ended and len(line) <= LONGEST:
            line = line.removesuffix(b"\r")
        return line[:LONGEST]


class OutputTail:
    """The last bytes of a run's output, both streams as they come; it begins on a character."""

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
        """Return them as text; ill-formed UTF-8 is U+FFFD, but for a character that was cut in front."""
        data = self._data
        if self._cut:
            skipped = 0
            while skipped < 3 and skipped < len(data) and data[skipped] & 0xC0 == 0x80:
                skipped += 1
            data = data[skipped:]
        return data.decode(errors="replace")
