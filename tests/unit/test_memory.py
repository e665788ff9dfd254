"""No kernel keeps memory or a descriptor, whether a call ends well or in an error."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolserver._fast import lines, paths, text, udiff
from toolserver._fast.git_index import Tracked, shared_index
from toolserver._fast.globs import Glob
from toolserver._fast.grep import Grep
from toolserver._fast.ignore import BaseRules, decide
from toolserver._fast.inotify import Inotify
from toolserver._fast.listing import Listing
from toolserver._fast.ring import Ring
from toolserver._fast.scan import Needles
from toolserver.search.judge import judge
from toolserver.search.pattern import analyse

MOST = 192 << 10
"""Bytes that all calls of a case together may take; fewer than one byte of each lost would be."""
BIG = b"x" * 5000
RULES = BaseRules(b"*.pyc\n", None)
DIFF = b"@@ -1,2 +1,2 @@\n-a\n+b\n c\n@@ -9,2 +9,2 @@\n-a\n+b\n c\n"
INDEX = b"DIRC\0\0\0\2\0\0\0\1" + b"\xff" * 400


class Broken:
    """A regex that fails in the middle of a search."""

    def contains(self, string: memoryview) -> bool:
        return True

    def search(self, string: memoryview) -> None:
        raise OSError

    def subn(self, repl: bytes, string: memoryview) -> tuple[bytes, int]:
        raise OSError


def refused(call: Callable[..., Any], *args: Any, **more: Any) -> None:
    with pytest.raises((ValueError, TypeError, IndexError, OSError, udiff.Misplaced)):
        call(*args, **more)


def apply(content: bytes, limit: int = 1 << 20) -> None:
    hunks, _ = udiff.Diff(DIFF).hunks(0)
    with contextlib.suppress(udiff.Misplaced, udiff.TooLarge):
        hunks.apply(content, limit)


def search(root: int, *, stop: bool = False, leave: bool = False, **how: Any) -> None:
    """Search to the end, or stop the search, or drop it half done."""
    searching = Grep(root, b"", RULES, **how)
    with contextlib.suppress(OSError):
        while searching.work(0, 0.0) and not leave:
            if stop:
                searching.stop()
        searching.answer()


def listing(root: int, **how: Any) -> None:
    under_way = Listing(root, b"", RULES, None, Glob(b"**/*.txt"), **how)
    while under_way.work(0, 0.0):
        pass
    under_way.answer()


def watch(root: int) -> None:
    inotify = Inotify()
    inotify.add(root, 2)
    refused(inotify.add, -1, 2)
    inotify.close()


def ring() -> None:
    kept = Ring(100_000)
    kept.append(BIG * 30)
    kept.slice(0, kept.total)
    refused(kept.read_from, -1)


REGEX = judge(analyse("ne+dle"))
NEEDLE = Needles((b"needle",))
CASES: dict[str, tuple[int, Callable[[int], Any]]] = {
    "glob": (2000, lambda root: Glob(b"{a,b}/**/[a-c]*.py")),
    "glob refused": (2000, lambda root: refused(Glob, b"{a,[b-a]}")),
    "glob unclosed": (2000, lambda root: refused(Glob, b"x{{{{[ab")),
    "rules": (2000, lambda root: RULES.push(b"a", b"*.c\n!x\n/y/z\n", b"q\n").ignored(b"a/b", b"c", False)),
    "rules refused": (2000, lambda root: refused(RULES.push, b"a", 3, 4)),
    "decide": (2000, lambda root: decide(b"*.c\n[[:alpha:]]\n", b"", b"a.c\nb/c")),
    "index": (2000, lambda root: refused(Tracked, INDEX)),
    "split index": (2000, lambda root: refused(shared_index, INDEX)),
    "needles": (2000, lambda root: Needles((b"abc", b"def"), fold=True).search(BIG)),
    "needles refused": (2000, lambda root: refused(Needles, (b"abc", b""))),
    "text": (2000, lambda root: text.replace_all(BIG, b"x", b"yy", text.occurrences(BIG, b"x", 9)[0])),
    "text refused": (2000, lambda root: refused(text.replace_all, b"ab", b"x", b"y", 2)),
    "nearly": (2000, lambda root: text.nearly(BIG, b"x x", 9)),
    "lines": (2000, lambda root: lines.number(BIG, 1, 9)),
    "paths refused": (2000, lambda root: refused(paths.open_beneath, root, b"nope/x", 0)),
    "patch": (2000, lambda root: apply(b"a\nc\n" + b"q\n" * 6 + b"a\nc\n")),
    "patch nowhere": (2000, lambda root: apply(b"z\n" * 50)),
    "patch at several": (2000, lambda root: apply(b"a\nc\n" * 50)),
    "patch too large": (2000, lambda root: apply(b"a\nc\n" + b"q\n" * 6 + b"a\nc\n", 3)),
    "patch malformed": (2000, lambda root: refused(udiff.Diff(DIFF + b"@@ -1\n").hunks, 0)),
    "base85": (2000, lambda root: refused(udiff.Diff(b"zzzz!!!\n" * 30).base85, 0)),
    "delta": (2000, lambda root: refused(udiff.apply_delta, b"abc", b"\x03\xff\xff\x03", 99)),
    "grep by literal": (300, lambda root: search(root, needles=NEEDLE, lines=2)),
    "grep by regex": (300, lambda root: search(root, probe=REGEX.probe, mark=REGEX.mark)),
    "grep by both": (300, lambda root: search(root, needles=NEEDLE, probe=REGEX.probe, mark=REGEX.mark, mode="count")),
    "grep stopped": (300, lambda root: search(root, stop=True, probe=REGEX.probe, mark=REGEX.mark, batch=100)),
    "grep left": (300, lambda root: search(root, leave=True, probe=REGEX.probe, mark=REGEX.mark, batch=100)),
    "grep broken": (300, lambda root: search(root, probe=Broken(), mark=Broken())),
    "grep refused": (300, lambda root: refused(Grep, root, b"", RULES, needles=NEEDLE, most=-1)),
    "grep without a root": (300, lambda root: refused(Grep, -1, b"", RULES, needles=NEEDLE)),
    "glob listed": (300, lambda root: listing(root, most=2)),
    "ring": (300, lambda root: ring()),
    "inotify": (300, watch),
}


def resident() -> int:
    """Return the bytes of memory in use, what is free given back before."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A small tree with rules, links and a FIFO."""
    top = tmp_path_factory.mktemp("tree")
    for number in range(12):
        folder = top / f"s{number % 3}" / "t"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}.txt").write_bytes(b"a needle\r\nhay\n" * number * 40)
        (folder / ".gitignore").write_bytes(b"*.o\n!x\n[\n")
    (top / "link").symlink_to("s0/t/f3.txt")
    os.mkfifo(top / "fifo")
    fd = os.open(top, os.O_PATH | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer keeps what is freed")
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_kept(root: int, name: str) -> None:
    times, call = CASES[name]
    for _ in range(times // 4):
        call(root)
    descriptors = len(os.listdir("/proc/self/fd"))
    before = resident()
    for _ in range(times):
        call(root)
    assert resident() - before < MOST
    assert len(os.listdir("/proc/self/fd")) == descriptors
