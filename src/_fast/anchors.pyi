"""Finding many texts in one: each by a short piece of it that is rare, in a few passes for all of them."""

from collections.abc import Iterable

class Anchors:
    """An index of patterns over a text: for each pattern one piece of 1 to 8 bytes, its anchor, and where that is.

    Wherever a pattern is, its anchor is, at the anchor's offset in it. Two passes over the text for each of the four
    widths (1, 2, 4, 8) that a pattern uses, without the GIL.
    """

    scanned: int
    """Bytes that all passes have gone over so far."""

    def __init__(self, patterns: Iterable[bytes], text: bytes, most: int) -> None:
        """A pattern whose rarest sampled piece is in the text more than `most` times gets no anchor.

        Raises ValueError for an empty pattern, MemoryError.
        """

    def anchor(self, pattern: bytes) -> tuple[int, int] | None:
        """Return the number of the pattern's anchor and its offset in the pattern; None: it has none."""

    def places(self, number: int) -> list[int]:
        """Return the offsets in the text of an anchor, in rising order."""

    def scan(self, text: bytes) -> list[tuple[int, int, int]]:
        """Return the offset, width and number of each anchor in another text."""
