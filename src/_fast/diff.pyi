"""Differences between two texts by lines, without the GIL."""

def compare(old: bytes, new: bytes, *, context: int = 3, most: int = 0) -> tuple[int, int, bytes]:
    """Return how many lines were added and removed, and the hunks of a unified diff with `context` lines around them.

    Lines end at LF; a last line without one is marked as git marks it. Hunks are written until there are `most` bytes
    of them, so the last may be cut after a line; 0 writes none. The difference is a shortest one, but for texts that
    are large and have little in common: those take about linear time.
    """
