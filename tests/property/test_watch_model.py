"""A watch against a model: the changes of a burst lead from the old listing to the new one, whatever rules change."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolserver._fast.git_index import Tracked
from toolserver._fast.ignore import BaseRules, Rules
from toolserver.watches.events import Change, Coalescer
from toolserver.watches.filter import WatchFilter
from toolserver.watches.observer import Observer
from toolserver.watches.polling import Poller

FOLDERS = ["", "a", "b", "a/a", "a/b", "b/a", "a/b/a"]
NAMES = ["a", "b", "f", "g"]
PATHS = [f"{folder}/{name}".lstrip("/") for folder in FOLDERS for name in NAMES]
RULES = ["", "a/\n", "b/\n", "/a/b/\n", "*\n!a/\n", "!b/\n", "f\n"]

PATH = st.sampled_from(PATHS)
RULE_FILE = st.builds("{}/{}".format, st.sampled_from([".", "a", "b"]), st.sampled_from([".gitignore", ".ignore"]))
NONE = st.just("")
STEP = st.one_of(
    st.tuples(st.sampled_from(["write", "save", "mkdir", "remove"]), PATH, NONE),
    st.tuples(st.just("move"), PATH, PATH),
    st.tuples(st.sampled_from(["write", "save"]), RULE_FILE, st.sampled_from(RULES)),
    st.tuples(st.sampled_from(["remove", "collect"]), RULE_FILE, NONE),
)
BURST = st.lists(STEP, min_size=1, max_size=8)


class Tree:
    """A folder that steps change, and what of it is hidden by rules."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self._count = 0

    def take(self, step: str, path: str, extra: str) -> None:
        """Do a step, if it can be done."""
        target = self.root / path
        self._count += 1
        text = extra if ".gitignore" in path or ".ignore" in path else "x" * self._count
        match step:
            case "write" if target.parent.is_dir() and not target.is_dir():
                target.write_text(text)
            case "save" if target.parent.is_dir() and not target.is_dir():
                temporary = target.parent / f".{target.name}.tmp"
                temporary.write_text(text)
                temporary.rename(target)
            case "mkdir" if target.parent.is_dir() and not target.exists():
                target.mkdir()
            case "remove" if target.is_dir():
                shutil.rmtree(target)
            case "remove" if target.exists():
                target.unlink()
            case "move" if target.exists() and (self.root / extra).parent.is_dir() and not extra.startswith(path + "/"):
                to = self.root / extra
                if not to.exists():
                    target.rename(to)

    def on_disk(self) -> dict[bytes, tuple[bool, int, int]]:
        """Return every path: whether it is a directory, its inode and its time."""
        found = {}
        for path in self.root.rglob("*"):
            status = path.lstat()
            found[os.fsencode(path.relative_to(self.root))] = path.is_dir(), status.st_ino, status.st_ctime_ns
        return found

    def hidden(self) -> set[bytes]:
        """Return the topmost directories that the rules hide."""
        found: set[bytes] = set()
        todo: list[tuple[bytes, Rules]] = [(b"", BaseRules())]
        while todo:
            path, above = todo.pop()
            folder = self.root / os.fsdecode(path)
            files = [folder / name for name in (".gitignore", ".ignore")]
            rules = above.push(path, *(file.read_bytes() if file.is_file() else None for file in files))
            for entry in folder.iterdir():
                if not entry.is_dir():
                    continue
                below = os.fsencode(entry.relative_to(self.root))
                if rules.ignored(path, os.fsencode(entry.name), True):
                    found.add(below)
                else:
                    todo.append((below, rules))
        return found


def lies_in(path: bytes, folders: set[bytes]) -> bool:
    """Tell whether a path is one of the folders or lies below one."""
    return any(path == folder or path.startswith(folder + b"/") for folder in folders)


Watching = tuple[Callable[[], list[Change]], Callable[[], None]]


def observing(root: pathlib.Path) -> Watching:
    watched = WatchFilter([b""], BaseRules(), Tracked())
    one = Observer(os.open(root, os.O_PATH | os.O_DIRECTORY), watched)
    one.start()
    return one.collect, one.close


def polling(root: pathlib.Path) -> Watching:
    watched = WatchFilter([b""], BaseRules(), Tracked())
    one = Poller(os.open(root, os.O_PATH | os.O_DIRECTORY), watched)
    one.start()
    return one.look, one.close


def check(tree: Tree, look: Callable[[], list[Change]], burst: list[tuple[str, str, str]]) -> None:
    """Take the steps of one burst and compare what is reported with what has become of the tree."""
    before, hidden = tree.on_disk(), tree.hidden()
    sometimes, always, there = set(hidden), set(hidden), set(before)
    coalescer = Coalescer()

    def collect() -> bool:
        changes = look()
        for change in changes:
            coalescer.add(change)
        return bool(changes)

    for step, path, extra in burst:
        if step == "collect":
            collect()
        else:
            tree.take(step, path, extra)
            hidden = tree.hidden()
            sometimes |= hidden
            always &= hidden
            there.update(tree.on_disk())
    while collect():
        pass
    batch = coalescer.take()
    after = tree.on_disk()
    reported: dict[bytes, list[str]] = {}
    for path, kind in batch:
        reported.setdefault(path, []).append(kind)
    for path in reported:
        assert not lies_in(path, always), f"{path!r} was ignored all the time"
    for path in before.keys() | after.keys() | reported.keys():
        kinds = reported.get(path, [])
        if not lies_in(path, sometimes):
            assert kinds == expected(before.get(path), after.get(path)), path
        else:  # what happened while it was ignored is not told apart from what happened before
            assert not kinds or path in there, f"{path!r} was never there"


def expected(before: tuple[bool, int, int] | None, after: tuple[bool, int, int] | None) -> list[str]:
    """Return the kinds that are reported of a path that was visible all the time."""
    if before is None or after is None:
        return [] if before == after else ["remove" if after is None else "create"]
    if before[0] != after[0]:
        return ["remove", "create"]
    return ["modify"] if before != after and not after[0] else []


@pytest.mark.parametrize("start", [observing, polling])
@settings(deadline=None)
@given(bursts=st.lists(BURST, min_size=2, max_size=4))
def test_bursts(start: Callable[[pathlib.Path], Watching], bursts: list[list[tuple[str, str, str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(pathlib.Path(folder))
        for place in FOLDERS[1:]:
            (tree.root / place).mkdir()
            (tree.root / place / "f").write_text("x")
        look, close = start(tree.root)
        try:
            for burst in bursts:
                check(tree, look, burst)
        finally:
            close()
