"""`_fast.globs` against its model: any pattern, over paths that its pieces may fit."""

from __future__ import annotations

import contextlib

from patternmodels import glob
from test_globs_model import PATHS, PIECES, matches, plain

from toolserver._fast.globs import Glob


def target(data: bytes) -> None:
    """Up to 0x80 each byte chooses a piece of a pattern, which the model reads too; else pattern and path are raw."""
    if data[:1] < b"\x80":
        pattern = "".join(PIECES[byte % len(PIECES)] for byte in data[1:8])
        if not pattern or not plain(pattern):
            return
        compiled = Glob(pattern.encode())
        for path in PATHS[data[0] % 8 :: 8]:
            assert matches(compiled, path) == glob(pattern, path), (pattern, path)
        return
    raw, _, path = data[1:].partition(b"\0")
    with contextlib.suppress(ValueError):
        compiled = Glob(raw)
        for one in (path.strip(b"/"), *(known.encode() for known in PATHS)):
            directory, _, name = one.rpartition(b"/")
            if compiled.match(directory, name):
                assert compiled.may_match_below(directory), one
