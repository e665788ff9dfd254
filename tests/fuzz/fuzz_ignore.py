"""`_fast.ignore` against its model, `_fast.globs` for crashes and hangs, and an index of any bytes."""

import contextlib

from patternmodels import ignored

from toolserver._fast.git_index import Tracked, shared_index
from toolserver._fast.globs import Glob
from toolserver._fast.ignore import decide

PATHS = [b"a", b"a/b", b"a/b/", b".x", b"ab.c", b"a b/\xc3\xa9", b"b/a/a/b", b"[a]", b"\\", b"a/"]


def target(data: bytes) -> None:
    kind, data = data[:1], data[1:]
    if kind < b"\x60":
        rules, _, path = data.partition(b"\xff\xff")
        paths = [*PATHS, path.replace(b"\n", b"")]
        answer = decide(rules, b"", b"\n".join(paths))
        assert len(answer) == len(paths)
        if len(rules) < 24:
            for path, got in zip(PATHS, answer, strict=False):
                want = ignored(rules, path.removesuffix(b"/").decode("latin-1"), path.endswith(b"/"))
                assert (got == ord("1")) == want, (rules, path)
    elif kind < b"\xb0":
        with contextlib.suppress(ValueError):
            glob = Glob(data)
            for path in PATHS:
                directory, _, name = path.removesuffix(b"/").rpartition(b"/")
                if glob.match(directory, name):
                    assert glob.may_match_below(directory)
    else:
        with contextlib.suppress(ValueError):
            shared_index(data)
            Tracked(data)
        with contextlib.suppress(ValueError):
            half = len(data) // 2
            Tracked(data[:half], data[half:])
