"""Text files as numbered lines in JSON: counted, checked as UTF-8 and escaped without the GIL.

Lines end at LF and at nothing else; a final LF adds no line. In the result one CR before an LF is dropped, and one
U+FFFD stands for each maximal ill-formed part of UTF-8.
"""

def number(data: bytes, offset: int, limit: int, *, start: int = 0) -> tuple[bytes, int, bool]:
    r"""Return a window of lines as a JSON string, the number of all lines, and whether lines remain past the window.

    The string (with its quotes, ASCII and UTF-8) holds `<number>\t<text>` for the lines `offset` (from 1) and at most
    `limit` on, joined by LF. `start` is where the text begins in `data`, after a byte order mark. ValueError: offset
    below 1, limit below 0, start outside the data. Allocates for the worst case; only the part used is kept.
    """

def text_within(numbered: bytes, most: int) -> tuple[int, int, int]:
    """Find the longest part of `number`'s string that is whole lines and at most `most` bytes of text.

    Return the bytes of text (what the JSON stands for, as UTF-8), where the part ends in the string, and its lines.
    """

def utf8_of_utf16(data: bytes, *, big: bool, start: int = 0) -> bytes:
    """Return UTF-16 from `start` on as UTF-8; a lone surrogate and an odd last byte become U+FFFD each."""

def json_string(data: bytes) -> bytes:
    """Return bytes as a JSON string with its quotes, nothing dropped but ill-formed UTF-8 (as above)."""

def count(data: bytes) -> int:
    """Return how many LFs there are."""

def well_formed(data: bytes) -> int:
    """Return how many bytes at the beginning are well-formed UTF-8 that ends with a whole character."""

def kinds() -> list[str]:
    """Return the implementations that this processor can run, the one used by default last."""

def use(name: str) -> str:
    """Switch the whole process to one of `kinds`, for tests; return the one used before."""
