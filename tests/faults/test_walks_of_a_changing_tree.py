"""Files that grow, shrink, vanish, become FIFOs, links or folders while they are searched; folders that go and come."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import shutil
import threading
import time
from collections.abc import Callable

import pytest
import search_twin as twin

from toolserver._fast.globs import Glob
from toolserver._fast.ignore import BaseRules
from toolserver._fast.listing import Listing

SECONDS = 1.2
NAMES = [f"{folder}/{name}" for folder in ("a", "b", "b/c") for name in ("f", "g", "h")]


def change(root: pathlib.Path, rand: random.Random) -> None:
    """Make something else of one name, in one of the ways there are."""
    path = root / rand.choice(NAMES)
    with contextlib.suppress(OSError):
        way = rand.randrange(9)
        if way < 3:
            with path.open("ab") as file:
                file.write(b"foo\n" * rand.randrange(1, 30_000))
            return
        if way == 3:
            os.truncate(path, rand.choice([0, 3, 5000, 200_000]))
            return
        target = path.parent if way == 4 else path
        shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        match way:
            case 5:
                os.mkfifo(path)
            case 6:
                path.mkdir()
                (path / "x").write_bytes(b"foo\n")
            case 7:
                path.symlink_to(rand.choice(["/etc/hostname", "../a/f", "..", "g"]))
            case 8:
                path.write_bytes(b"foo\r\n" * rand.randrange(100_000))


@pytest.fixture
def changing(tmp_path: pathlib.Path) -> Callable[[], bool]:
    """Return whether the tree is still being changed, which it is for SECONDS."""
    rand = random.Random(5)
    end = time.monotonic() + SECONDS

    def go() -> None:
        while time.monotonic() < end:
            change(tmp_path, rand)

    thread = threading.Thread(target=go)
    thread.start()
    return thread.is_alive


@pytest.mark.parametrize("pattern", ["foo", "[f]oo", "fo+$"])
def test_every_answer_of_grep_is_one(tmp_path: pathlib.Path, changing: Callable[[], bool], pattern: str) -> None:
    fd = os.open(tmp_path, os.O_PATH)
    rounds = 0
    while changing():
        for way in twin.PATHS[1:]:
            found, _ = twin.grep(fd, pattern, way=way, most=500, lines=1)
            assert all("foo" in match["text"] for match in found)
            places = [(twin.order(match["path"].encode()), match["line"]) for match in found]
            assert places == sorted(places)
            rounds += 1
    os.close(fd)
    assert rounds > 3


def test_every_answer_of_glob_is_one(tmp_path: pathlib.Path, changing: Callable[[], bool]) -> None:
    fd = os.open(tmp_path, os.O_PATH)
    while changing():
        answer, truncated = twin.drive(Listing(fd, b"", BaseRules(), None, Glob(b"**"), width=2, run=1)).answer()
        paths = json.loads(answer)
        assert not truncated
        assert len(set(paths)) == len(paths)
    os.close(fd)


@pytest.mark.parametrize("width", [1, 2])
def test_a_folder_that_is_moved_out_of_the_tree_is_not_followed(tmp_path: pathlib.Path, width: int) -> None:
    """A listing between two of its steps: what lies outside now, and came into being there, is never shown."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    for number in range(60):
        folder = root / f"moved/{number:02}/deep"
        folder.mkdir(parents=True)
        (folder / "before").touch()
    fd = os.open(root, os.O_PATH)
    listing = Listing(fd, b"", BaseRules(), None, Glob(b"**"), width=width)
    for _ in range(2):  # 16 looks a step: some of the folders have been read then
        assert listing.work(0, 0)
    (root / "moved").rename(outside / "moved")
    for number in range(60):
        (outside / f"moved/{number:02}/deep/after").touch()
        (outside / f"moved/{number:02}/after").touch()
    paths = json.loads(twin.drive(listing).answer()[0])
    os.close(fd)
    assert len(paths) < 60
    assert not [path for path in paths if path.endswith("after")]


def test_nothing_is_left_open(tmp_path: pathlib.Path, changing: Callable[[], bool]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    fd = os.open(tmp_path, os.O_PATH)
    while changing():
        twin.grep(fd, "foo|bar", way={"width": 3, "run": 1})
    os.close(fd)
    assert len(os.listdir("/proc/self/fd")) == before
