"""Directories thousands of levels deep: opened at a cost in line with their number, and only where they still lie."""

from __future__ import annotations

import json
import os
import pathlib
import select
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from toolserver._fast.globs import Glob
from toolserver._fast.ignore import BaseRules
from toolserver._fast.inotify import Inotify
from toolserver._fast.listing import Listing
from toolserver._fast.walk import Moved

if TYPE_CHECKING:
    from kit import Server

OPEN = 0x20
"""inotify's IN_OPEN."""
LONG_S = 600.0
"""A slice of time that no walk uses up: nothing of what is counted depends on how fast the machine is."""


def chain(root: pathlib.Path, levels: int, name: str, *beside: str) -> int:
    """Make a chain of directories, each with the directories `beside` next to it; return the last one, open."""
    at = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        for one in (name, *beside):
            os.mkdir(one, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    return at


def remove(root: pathlib.Path) -> None:
    """Remove all that is below a folder; rmtree takes a stack frame a level, and rm the square of the levels."""
    at = os.open(root, os.O_RDONLY)
    above: list[str] = []
    while True:
        with os.scandir(at) as entries:
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        for name in found:
            if not found[name]:
                os.unlink(name, dir_fd=at)
        folders = [name for name in found if found[name]]
        if folders:
            above.append(folders[-1])
            there = os.open(folders[-1], os.O_RDONLY, dir_fd=at)
        elif above:
            there = os.open("..", os.O_RDONLY, dir_fd=at)
            os.rmdir(above.pop(), dir_fd=there)
        else:
            break
        os.close(at)
        at = there
    os.close(at)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    yield tmp_path
    remove(tmp_path)


def opened(root: pathlib.Path, **how: object) -> tuple[int, int]:
    """Walk a tree in one slice; return how often a directory was opened, and by how many bytes of path."""
    fd = os.open(root, os.O_PATH)
    listing = Listing(fd, b"", BaseRules(), None, Glob(b"**/file"), **how)
    while listing.work(0, LONG_S):
        pass
    os.close(fd)
    assert json.loads(listing.answer()[0]) == []
    return listing.opened


@pytest.mark.parametrize(("name", "few"), [("d", 1000), ("directory", 500), ("d" * 255, 200)])
@pytest.mark.parametrize("beside", [[], ["beside"]])
def test_the_cost_grows_with_the_levels(folder: pathlib.Path, name: str, few: int, beside: list[str]) -> None:
    """Four times as many levels take about four times as many calls and bytes; opened from the root it is sixteen."""
    costs = []
    for levels in (few, 4 * few):
        root = folder / str(levels)
        root.mkdir()
        os.close(chain(root, levels, name, *beside))
        costs.append(opened(root))
    (calls, size), (calls_of_four, size_of_four) = costs
    assert calls_of_four <= 6 * calls
    assert size_of_four <= 6 * size


def test_from_the_root_the_cost_grows_with_the_square(folder: pathlib.Path) -> None:
    costs = []
    for levels in (500, 2000):
        root = folder / str(levels)
        root.mkdir()
        os.close(chain(root, levels, "d"))
        costs.append(opened(root, from_root=True)[1])
    assert costs[1] > 15 * costs[0]


class Mover:
    """Moves `root/top` out of the root once the directory `level` is opened, and puts a file into the last one."""

    def __init__(self, folder: pathlib.Path, level: int, last: int) -> None:
        self.folder = folder
        self.last = last
        self.inotify = Inotify()
        watched = os.open(folder / "root" / "top" / "/".join("d" * level), os.O_PATH)
        self.inotify.add(watched, OPEN)
        os.close(watched)
        self.thread = threading.Thread(target=self._wait)
        self.thread.start()

    def _wait(self) -> None:
        select.select([self.inotify.fileno()], [], [])
        (self.folder / "root/top").rename(self.folder / "moved")
        os.close(os.open("after", os.O_CREAT | os.O_WRONLY, dir_fd=self.last))

    def put_back(self) -> None:
        self.thread.join()
        self.inotify.close()
        os.unlink("after", dir_fd=self.last)
        (self.folder / "moved").rename(self.folder / "root/top")


LEVELS, LEVEL = 1500, 300


@pytest.fixture
def last(folder: pathlib.Path) -> Iterator[int]:
    """A chain below root/top; its last directory, open."""
    (folder / "root/top").mkdir(parents=True)
    fd = chain(folder / "root/top", LEVELS, "d")
    yield fd
    os.close(fd)


@pytest.mark.parametrize("from_root", [False, True])
def test_a_chain_that_is_moved_out_meanwhile(folder: pathlib.Path, last: int, *, from_root: bool) -> None:
    """What came into being in it outside is never answered, in one slice of time too."""
    told = 0
    for _ in range(5):
        mover = Mover(folder, LEVEL, last)
        fd = os.open(folder / "root", os.O_PATH)
        listing = Listing(fd, b"", BaseRules(), None, Glob(b"**/after"), from_root=from_root)
        try:
            assert not listing.work(0, LONG_S)
        except Moved:
            told += 1
        else:
            assert json.loads(listing.answer()[0]) == []
        os.close(fd)
        mover.put_back()
    assert told == 0 if from_root else told > 0


@pytest.mark.parametrize(("tool", "arguments"), [("glob", {"pattern": "**"}), ("grep", {"pattern": "needle|x"})])
def test_the_search_of_one_is_made_again(serve: Callable[..., Server], tool: str, arguments: dict[str, str]) -> None:
    """The answer is then one of a walk that follows nothing that was moved."""
    server = serve("--capsule", "off")
    folder = server.root.parent / "deep"
    (server.root / "still").write_text("needle\n")
    (folder / "root/top").mkdir(parents=True)
    try:
        fd = chain(folder / "root/top", LEVELS, "d")
        (folder / "root").rename(server.root / "root")
        (folder / "root").symlink_to(server.root / "root")
        for _ in range(2):
            mover = Mover(folder, LEVEL, fd)
            answer = server.ok(tool, **arguments)
            assert "still" in str(answer)
            assert "after" not in str(answer)
            mover.put_back()
        os.close(fd)
    finally:
        remove(server.root)
        remove(folder)
