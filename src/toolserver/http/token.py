"""The workspace's token: read from its file on every request, compared in constant time (specification, section 2)."""

from __future__ import annotations

import hmac
import os

MAX_TOKEN = 64 * 1024
"""Bytes of a token file; a larger one holds no token."""
SCHEME = b"bearer"


class TokenFile:
    """The file that holds the token. Unreadable, blank or too large: nobody is admitted."""

    __slots__ = ("last", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.last = b""
        """What the file held when it was last read: while a request is answered, the token that it came with."""

    def read(self) -> bytes:
        """Return the file's content without the white space around it; empty where there is no usable token.

        Never waits: a FIFO or a device is no token file.
        """
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                found = os.read(fd, MAX_TOKEN + 1)
            finally:
                os.close(fd)
        except OSError:
            return b""
        self.last = b"" if len(found) > MAX_TOKEN else found.strip()
        return self.last

    def admits(self, header: bytes | None) -> bool:
        """Whether this value of the Authorization header is `Bearer` (in any case) and the token."""
        if header is None:
            return False
        scheme, _, given = header.strip(b" \t").partition(b" ")
        token = self.read()
        return hmac.compare_digest(given.strip(b" \t"), token) and scheme.lower() == SCHEME and token != b""
