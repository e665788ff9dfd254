"""Finding and replacing byte strings, without the GIL and without decoding."""

def utf8(text: str) -> memoryview:
    """Return a string as UTF-8, of an ASCII string without a copy. Raises UnicodeEncodeError for a lone surrogate."""

def occurrences(data: bytes, old: bytes, most: int) -> tuple[int, list[int]]:
    """Count the non-overlapping occurrences of `old` from the left; return also the offsets of the first `most`.

    ValueError: `old` is empty, `most` not in 0 to 64.
    """

def replace_all(data: bytes, old: bytes, new: bytes, count: int) -> bytes:
    """Return `data` with its first `count` occurrences of `old` replaced. `count` is what `occurrences` counted.

    ValueError: `old` is empty, or there are fewer. MemoryError, OverflowError: the caller bounds the answer's size.
    """

def all_crlf(data: bytes) -> bool:
    """Return whether there is an LF, and every LF follows a CR."""

def nearly(data: bytes, old: bytes, most: int) -> list[tuple[int, int]]:
    """Find `old` with every run of white space counted as one blank, and the start and end of the text as blanks too.

    Return at most `most` (to 64) pairs: the offset of the first character that is no white space, and the offset after
    the last one. Empty where `old` is all white space. White space: blank, tab, LF, VT, FF, CR. MemoryError.
    """
