"""Searching the files of a walk: literals at once, everything else as batches for a regex; answers as JSON."""

from typing import Literal, Protocol, type_check_only

from toolserver._fast.git_index import Tracked
from toolserver._fast.globs import Glob
from toolserver._fast.ignore import BaseRules
from toolserver._fast.scan import Needles
from toolserver._fast.walk import Walk

@type_check_only
class Regex(Protocol):
    """What is asked of a compiled pattern (pyre2's)."""

    def contains(self, string: memoryview, /) -> bool: ...
    def search(self, string: memoryview, /) -> object | None: ...
    def subn(self, repl: bytes, string: memoryview, /) -> tuple[bytes, int]: ...

class Grep(Walk):
    """A search under way; see `Walk` for what it walks.

    * `needles`: every matching line holds one of these strings; None: no such strings are known.
    * `probe`, `mark`: the regex that judges a line, and the same followed by `[^\\n]*`; both None: the strings alone
      decide. They are given many lines at once, joined by LF and without the CR of CRLF, and never match an LF.
    * `mode`: `content` answers lines with `lines` lines around them, `files` paths, `count` numbers of lines.
    * `most`: results that are answered; `most_bytes`: bytes of the list of them in JSON.
    * `batch`: for tests, bytes after which the regex is asked; 0: the usual 1 MiB.
    """

    def __init__(
        self,
        root: int,
        cwd: bytes,
        rules: BaseRules,
        tracked: Tracked | None = None,
        glob: Glob | None = None,
        *,
        file: bytes | None = None,
        leave_agents: bool = False,
        from_root: bool = False,
        width: int = 1,
        run: int = 256,
        mode: Literal["content", "files", "count"] = "content",
        lines: int = 0,
        most: int = 2000,
        most_bytes: int = 10485760,
        needles: Needles | None = None,
        probe: Regex | None = None,
        mark: Regex | None = None,
        batch: int = 0,
    ) -> None: ...
    def work(self, index: int, seconds: float) -> bool:
        """Work as worker `index`, from 0, for about `seconds`; answer whether there is more to do for it.

        Each worker is driven by one thread at a time, different ones at the same time. Raises MemoryError; the search
        is then over.
        """
    def answer(self) -> tuple[bytes, bool]:
        """Return the list of results as JSON, as many as `most` and `most_bytes` allow, and whether there are more.

        Only after every worker has answered that there is no more to do.
        """
