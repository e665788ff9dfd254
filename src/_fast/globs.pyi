"""The glob dialect (specification, section 5), compiled."""

MAX_PATTERN: int
"""Bytes of a pattern."""
MAX_ALTERNATIVES: int
"""Alternatives that its braces may stand for, multiplied out."""
MAX_TOKENS: int
"""Characters and wildcards of all these alternatives together."""

class Glob:
    """One compiled pattern; immutable, any number of threads may ask it without the GIL (see the pxd).

    Raises ValueError for a malformed or too large pattern, worded to follow a name for it: `it has a [ that is not …`.
    The time to match is bounded by the size of the pattern times that of the path, whatever the pattern.
    """

    def __init__(self, pattern: bytes) -> None: ...
    def match(self, directory: bytes, name: bytes) -> bool:
        """Whether the file `name` in `directory`, relative to cwd (empty = cwd itself), matches."""

    def may_match_below(self, directory: bytes) -> bool:
        """False = nothing below `directory`, relative to cwd, can match."""
