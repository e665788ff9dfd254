"""Finding any of a few byte strings, the case of ASCII letters ignored on demand."""

from typing import Literal

MOST: int
"""How many strings a set may hold."""

class Needles:
    """A set of byte strings to look for, none of them empty.

    `fold` ignores the case of ASCII letters and of nothing else. `kind` is for tests: the loops to use; by default the
    best that the processor has. Raises ValueError for an empty string, more than `MOST` and an unavailable kind.
    """

    fold: bool
    def __init__(
        self, texts: tuple[bytes, ...], *, fold: bool = False, kind: Literal["plain", "sse2", "avx2"] | None = None
    ) -> None: ...
    def search(self, data: bytes, start: int = 0) -> tuple[int, int] | None:
        """Return where one of the strings stands in `data` from `start` on, as (begin, end), or None.

        Of several strings that overlap or stand within a few bytes of one another it is not always the leftmost.
        """
    def leftmost(self, data: bytes, start: int = 0) -> tuple[int, int] | None:
        """Return the leftmost, of those that begin there the one given first. Slow."""
