"""`_fast.grep` over files of any bytes, in every way it can be asked, against RE2 asked about each line alone."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import orjson
from fuzz_lines import utf16
from fuzz_pattern import lines_of

from toolserver._fast.grep import Grep
from toolserver._fast.ignore import BaseRules
from toolserver._fast.scan import MOST, Needles
from toolserver.errors import BadArgument
from toolserver.search.judge import judge
from toolserver.search.pattern import Plan, analyse

NAMES = ("a", "b", "c")
MODES = ("content", "files", "count", "content")
LONG = 4096
TREE = pathlib.Path("build/fuzz-trees") / str(os.getpid())
TREE.mkdir(parents=True, exist_ok=True)
ROOT = os.open(TREE, os.O_PATH | os.O_DIRECTORY)
RULES = BaseRules()


def as_searched(content: bytes) -> bytes | None:
    """Return a file's text in UTF-8; None: it is binary."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return utf16(content[2:], "little" if content[0] == 0xFF else "big").encode()
    content = content.removeprefix(b"\xef\xbb\xbf")
    return None if b"\0" in content[:8192] else content


def shown(line: bytes) -> str | None:
    """Return a line's text; None: it is cut, and where is not told here."""
    return line.decode("utf-8", "replace") if len(line) <= LONG else None


def found(plan: Plan, name: str, content: bytes | None, mode: str, context: int) -> list[Any]:
    """Return a file's results as they are to be, cut texts as None."""
    if not content:
        return []
    view = memoryview(content)
    spans = lines_of(content)
    lines = [shown(content[start:end]) for start, end in spans]
    hits = [number for number, span in enumerate(spans) if plan.matches_line(view, *span)]
    if mode != "content":
        return ([name] if mode == "files" else [{"path": name, "count": len(hits)}]) if hits else []
    results = []
    for number in hits:
        around = lines[max(number - context, 0) : number + context + 1]
        text = "\n".join(str(line) for line in around) if context and None not in around else None
        results.append({"path": name, "line": number + 1, "text": lines[number], "context": text})
    return results


def answered(search: Grep, mode: str) -> tuple[list[Any], bool]:
    """Run a search to its end and answer its results, cut texts as None."""
    while search.work(0, 1.0):
        pass
    raw, truncated = search.answer()
    results = orjson.loads(raw)
    for result in results if mode == "content" else ():
        if result.pop("cut", False):
            assert 0 < len(result["text"].encode("utf-8", "replace")) <= 3 * LONG
            result["text"] = None
    return results, truncated


def asked(plan: Plan, how: int) -> dict[str, Any]:
    """Return what the kernel is told: literals alone, a regex about lines with a literal, or about all of them."""
    usable = plan.literals is not None and len(plan.literals) <= MOST
    needles = Needles(plan.literals, fold=plan.fold) if usable and plan.literals is not None and how != 2 else None
    if plan.exact and how == 0 and needles is not None:
        return {"needles": needles}
    both = judge(plan)
    return {"needles": needles, "probe": both.probe, "mark": both.mark}


def check(plan: Plan, files: list[bytes], mode: str, context: int, most: int, **how: Any) -> None:
    """Search files and compare."""
    want = []
    for name, content in zip(NAMES, files, strict=False):
        (TREE / name).write_bytes(content)
        want += found(plan, name, as_searched(content), mode, context)
    for name in NAMES[len(files) :]:
        (TREE / name).unlink(missing_ok=True)
    search = Grep(ROOT, b"", RULES, None, None, mode=mode, lines=context, most=most, **how)
    got, truncated = answered(search, mode)
    assert truncated == (len(want) > most)
    want = want[:most]
    if mode == "content":
        assert [(one["path"], one["line"], one["text"]) for one in got] == [
            (one["path"], one["line"], one["text"]) for one in want
        ]
        for one, other in zip(got, want, strict=True):
            assert other["context"] in (None, one["context"])
            assert (one["context"] is None) == (context == 0)
    else:
        assert got == want


def target(data: bytes) -> None:
    """Take four bytes of choices, a pattern up to the first NUL, and files with `<>` between them."""
    if len(data) < 5:
        return
    flags, batch, around, times = data[:4]
    pattern, _, rest = data[4:].partition(b"\0")
    try:
        plan = analyse(
            pattern[:60].decode("utf-8", "surrogateescape"), literal=bool(flags & 2), ignore_case=flags & 1 > 0
        )
    except BadArgument:
        return
    if plan.never:
        return
    files = [part * (1 + times) for part in rest.split(b"<>")[: len(NAMES)]]
    check(
        plan,
        files,
        MODES[flags >> 2 & 3],
        around & 3,
        around >> 2 if around & 128 else 10**6,
        batch=batch,
        **asked(plan, flags >> 4 & 3),
    )
