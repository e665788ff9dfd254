"""`watches.polling`: what is found by comparing a tree again and again."""

from __future__ import annotations

import os
import pathlib
import shutil
import threading
from collections.abc import Callable, Iterator

import pytest

from toolserver._fast.git_index import Tracked
from toolserver._fast.ignore import BaseRules
from toolserver.watches.events import Change
from toolserver.watches.filter import WatchFilter
from toolserver.watches.polling import PAUSE, Poller, Scout

Start = Callable[..., Poller]


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Start]:
    """Start a poller of the given paths of `tmp_path`."""
    made: list[Poller] = []

    def begin(*targets: bytes) -> Poller:
        root = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
        made.append(Poller(root, WatchFilter(targets or [b""], BaseRules(), Tracked())))
        made[-1].start()
        return made[-1]

    yield begin
    for one in made:
        one.close()


def seen(one: Poller) -> set[Change]:
    return set(one.look())


def test_kinds(start: Start, tmp_path: pathlib.Path) -> None:
    """Files are created, modified (their mode, too) and removed; directories only created and removed."""
    for name in ("changed", "chmod", "gone", "left", "replaced"):
        (tmp_path / name).write_text("x")
    shutil.copytree(tmp_path, tmp_path / "old")
    one = start()
    (tmp_path / "changed").write_text("longer")
    (tmp_path / "chmod").chmod(0o600)
    (tmp_path / "gone").unlink()
    (tmp_path / "new").touch()
    (tmp_path / "other").write_text("y")
    (tmp_path / "other").rename(tmp_path / "replaced")
    (tmp_path / "old").rename(tmp_path / "moved")
    names = (b"changed", b"chmod", b"gone", b"left", b"replaced")
    assert seen(one) == {
        (b"changed", "modify", False),
        (b"chmod", "modify", False),
        (b"gone", "remove", False),
        (b"new", "create", False),
        (b"replaced", "modify", False),
        (b"old", "remove", True),
        (b"moved", "create", True),
        *((b"old/" + name, "remove", False) for name in names),
        *((b"moved/" + name, "create", False) for name in names),
    }
    assert one.look() == []


def test_names_that_are_not_utf8(start: Start, tmp_path: pathlib.Path) -> None:
    one = start()
    folder = os.fsencode(tmp_path)
    os.mkdir(folder + b"/d\xff")
    os.close(os.open(folder + b"/d\xff/\xfe", os.O_CREAT | os.O_WRONLY, 0o644))
    assert one.look() == [(b"d\xff", "create", True), (b"d\xff/\xfe", "create", False)]


def test_ignored_directories(start: Start, tmp_path: pathlib.Path) -> None:
    """An ignored directory raises nothing, not even when it is removed; a file in its place does."""
    (tmp_path / ".gitignore").write_text("build/\n")
    for name in ("build", ".git", ".kd"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").touch()
    one = start()
    for name in ("build", ".git", ".kd"):
        shutil.rmtree(tmp_path / name)
    assert one.look() == []
    (tmp_path / "build").touch()
    assert one.look() == [(b"build", "create", False)]


def test_a_file_becomes_a_directory(start: Start, tmp_path: pathlib.Path) -> None:
    (tmp_path / "f").touch()
    one = start()
    (tmp_path / "f").unlink()
    (tmp_path / "f").mkdir()
    (tmp_path / "f/g").touch()
    assert one.look() == [(b"f", "remove", False), (b"f", "create", True), (b"f/g", "create", False)]


def test_watched_path_that_goes_and_comes_back(start: Start, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    one = start(b"a/b")
    shutil.rmtree(tmp_path / "a")
    assert one.look() == [(b"a/b", "remove", True)]
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/f").touch()
    (tmp_path / "a/x").touch()
    assert one.look() == [(b"a/b", "create", True), (b"a/b/f", "create", False)]


def test_shown_later(start: Start, tmp_path: pathlib.Path) -> None:
    """What an ignore file hid is not reported when it is shown, but what has changed since is."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/old").touch()
    (tmp_path / ".ignore").write_text("a/\n")
    one = start()
    (tmp_path / ".ignore").unlink()
    assert one.look() == [(b".ignore", "remove", False)]
    (tmp_path / "a/old").write_text("x")
    (tmp_path / "a/new").touch()
    assert seen(one) == {(b"a/old", "modify", False), (b"a/new", "create", False)}


def test_pause(start: Start) -> None:
    """A look over little is followed by the shortest pause."""
    one = start()
    one.look()
    assert one.pause == PAUSE


def test_scout(tmp_path: pathlib.Path) -> None:
    """It wakes the poller at a change, in a directory made later, too, until it is stopped."""
    (tmp_path / "f").touch()
    seen, enough = threading.Event(), threading.Event()
    scout = Scout([bytes(tmp_path)], seen.set)
    number = 0
    while not seen.wait(0.1):  # it does not say when its first look is over
        number += 1
        (tmp_path / f"d{number}").mkdir()
        assert scout.alive
    scout.stop()
    while scout.alive:
        enough.wait(0.01)


def test_scout_that_cannot_look(tmp_path: pathlib.Path) -> None:
    """A path that is missing ends it, without an exception that anyone has to catch."""
    scout, enough = Scout([bytes(tmp_path / "none")], lambda: None), threading.Event()
    while scout.alive:
        enough.wait(0.01)
