"""RE2 as this server uses it: one way to compile, no fallback to Python's `re`, nothing on stderr.

What was measured of pyre2 0.3.14, for those who call a compiled pattern:

* `search`, `contains`, `count`, `finditer` let go of the GIL while RE2 runs and take it back for each match.
* They read `bytes`, `bytearray` and `memoryview` alike through the buffer protocol, without copying; `pos` and `endpos`
  are C ints. A match object keeps a reference to what was searched.
* `^` and `\\b` at `pos` see the byte before it; `$` and `\\b` at `endpos` see an end of text. So a line in the middle
  of a buffer is judged alone by `contains(buffer, start, end)`.
* With `endpos == pos` every method answers "no match" without asking RE2: an empty line has to be judged apart.
* `contains` makes no match object: 0.1 µs a call and 0.8 GB/s, on each of several threads; a `search` that finds
  costs 0.27 µs. Where all matches begin with one rare byte RE2 looks for that at memory speed.
* The compile cache ignores `max_mem` and keeps 100 patterns with their automata (up to 64 MiB each): it is emptied here
  after each compile, whoever keeps a pattern keeps it on purpose.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol, cast

import re2

MAX_MEMORY = 64 << 20
"""Bytes for one pattern's program and automata. Under 16 MiB five `\\w{5}` in a row leave the fast path."""

re2.set_fallback_notification(re2.FALLBACK_EXCEPTION)

MAX_PROGRAM = 5 << 18
"""Bytes RE2 may need to compile a pattern (up to about `\\w{60}`): its automaton has room for that in MAX_MEMORY.

Without room RE2 says so on stderr and matches at less than a kilobyte a second, in one call that nothing can stop."""
SMALL = 128
"""Bytes of a pattern without counted repetition that always fits: the largest class takes about a thousand states."""

Buffer = bytes | bytearray | memoryview


class Match(Protocol):
    """Where a pattern matched."""

    def start(self) -> int: ...
    def end(self) -> int: ...
    def span(self) -> tuple[int, int]: ...


class Compiled(Protocol):
    """A compiled pattern over UTF-8 bytes; see the module's text for what its methods promise and cost."""

    def search(self, string: Buffer, pos: int = 0, endpos: int = -1) -> Match | None: ...
    def contains(self, string: Buffer, pos: int = 0, endpos: int = -1) -> bool: ...
    def count(self, string: Buffer, pos: int = 0, endpos: int = -1) -> int: ...


class Refused(Exception):
    """RE2 does not take a pattern; the text is RE2's own reason."""


def compile_source(source: bytes) -> Compiled:
    """Return RE2's program for `source` (UTF-8), to MAX_PROGRAM; raise `Refused` with RE2's reason."""
    try:
        if b"{" in source or len(source) > SMALL:
            re2.compile(source, re2.UNICODE, MAX_PROGRAM)
            re2.purge()
        return cast(Compiled, re2.compile(source, re2.UNICODE, MAX_MEMORY))
    except re2.error as error:
        raise Refused(str(error)) from error
    finally:
        re2.purge()


@lru_cache(maxsize=512)
def accepts(source: bytes) -> bool:
    """Return whether RE2 takes a pattern."""
    try:
        compile_source(source)
    except Refused:
        return False
    return True
