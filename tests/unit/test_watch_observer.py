"""`watches.observer`: what is told, replayed, gives what is there; whatever happens in between."""

from __future__ import annotations

import os
import pathlib
import random
import select
import shutil
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from toolserver._fast import inotify
from toolserver._fast.git_index import Tracked
from toolserver._fast.ignore import BaseRules
from toolserver.watches import observer
from toolserver.watches.interest import Interest
from toolserver.watches.observer import Change, Observer

Start = Callable[..., Observer]


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Start]:
    """Start an observer of the given paths of `tmp_path`."""
    made: list[Observer] = []

    def begin(*targets: str, hidden_top: frozenset[bytes] = frozenset()) -> Observer:
        root = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
        wanted = [os.fsencode(target) for target in targets or ("",)]
        made.append(Observer(root, Interest(wanted, BaseRules(), Tracked(), hidden_top)))
        made[-1].start()
        return made[-1]

    yield begin
    for one in made:
        one.close()


def everything(one: Observer) -> list[Change]:
    """Collect until nothing waits."""
    out: list[Change] = []
    while got := one.collect():
        out += got
    return out


def on_disk(root: pathlib.Path) -> set[bytes]:
    return {os.fsencode(path.relative_to(root)) for path in root.rglob("*")}


def replay(before: set[bytes], changes: list[Change]) -> set[bytes]:
    """Apply what was told to a set of names; a name is created only when absent and removed only when there."""
    names = set(before)
    for path, kind in changes:
        if kind == "create":
            assert path not in names, f"{path!r} was created twice"
            names.add(path)
        elif kind == "remove":
            names.remove(path)
        else:
            assert path in names, f"{path!r} was modified but never there"
    return names


def test_file(start: Start, tmp_path: pathlib.Path) -> None:
    one = start()
    (tmp_path / "f").write_text("x")
    (tmp_path / "f").chmod(0o600)
    (tmp_path / "f").unlink()
    kinds = [kind for path, kind in everything(one) if path == b"f"]
    assert (kinds[0], kinds[-1]) == ("create", "remove")
    assert set(kinds[1:-1]) == {"modify"}


def test_made_in_the_same_instant(start: Start, tmp_path: pathlib.Path) -> None:
    """A file in directories that are as new as itself is told, and everything once."""
    one = start()
    (tmp_path / "1/2/3/4/5").mkdir(parents=True)
    (tmp_path / "1/2/3/4/5/f").touch()
    told = everything(one)
    assert [change for change in told if change[1] == "create"] == [
        (b"1", "create"),
        (b"1/2", "create"),
        (b"1/2/3", "create"),
        (b"1/2/3/4", "create"),
        (b"1/2/3/4/5", "create"),
        (b"1/2/3/4/5/f", "create"),
    ]


def test_renamed_directory(start: Start, tmp_path: pathlib.Path) -> None:
    """A renamed directory tells the files below it, and what is touched below it then has the new path."""
    (tmp_path / "old/sub").mkdir(parents=True)
    (tmp_path / "old/sub/f").write_text("x")
    one = start()
    (tmp_path / "old").rename(tmp_path / "new")
    (tmp_path / "new/sub/f").write_text("y")
    told = everything(one)
    (tmp_path / "new/sub/f").write_text("z")
    assert set(told) >= {(b"old/sub/f", "remove"), (b"new/sub/f", "create")}
    assert {path for path, _ in everything(one)} == {b"new/sub/f"}


def test_one_file_replaced(start: Start, tmp_path: pathlib.Path) -> None:
    (tmp_path / "f").write_text("x")
    one = start("f")
    for _ in range(3):
        (tmp_path / "other").write_text("y")
        (tmp_path / "other").rename(tmp_path / "f")
    assert everything(one) == [(b"f", "modify")] * 3


def test_target_that_goes_and_comes_back(start: Start, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    one = start("a/b")
    shutil.rmtree(tmp_path / "a")
    assert everything(one) == [(b"a/b", "remove")]
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/f").touch()
    (tmp_path / "a/x").touch()
    assert {path for path, _ in everything(one)} == {b"a/b", b"a/b/f"}


def test_ignored_and_hidden(start: Start, tmp_path: pathlib.Path) -> None:
    """Ignored directories, `.git`, `.kd` and hidden ones of the top raise nothing, unless they are named."""
    (tmp_path / ".gitignore").write_text("build/\n")
    for name in ("build", ".git", ".kd", ".agents", "src"):
        (tmp_path / name).mkdir()
    plain = start(hidden_top=frozenset([b".agents"]))
    named = start("", "build", ".agents", hidden_top=frozenset([b".agents"]))
    for name in ("build", ".git", ".kd", ".agents", "src"):
        (tmp_path / name / "f").touch()
    assert {path for path, _ in everything(plain)} == {b"src/f"}
    assert {path for path, _ in everything(named)} == {b"src/f", b"build/f", b".agents/f"}


def test_ignore_file_changes(start: Start, tmp_path: pathlib.Path) -> None:
    """What an edited ignore file hides raises nothing from then on, and what it shows does."""
    (tmp_path / ".gitignore").write_text("a/\n")
    for name in ("a/sub", "b/sub"):
        (tmp_path / name).mkdir(parents=True)
    one = start()
    (tmp_path / ".gitignore").write_text("b/\n")
    everything(one)
    (tmp_path / "a/sub/f").touch()
    (tmp_path / "b/sub/f").touch()
    assert {path for path, _ in everything(one)} == {b"a/sub/f"}


def disturb(root: pathlib.Path, seed: int, steps: int) -> None:
    """Make, change, move and remove files and folders at random below a folder of its own."""
    rng = random.Random(seed)
    home = root / f"t{seed}"
    home.mkdir()
    for _ in range(steps):
        there = [home, *(path for path in home.rglob("*"))]
        at = rng.choice(there)
        folder = at if at.is_dir() else at.parent
        target = folder / rng.choice("abcde")
        match rng.randrange(6):
            case 0:
                if not target.is_dir():
                    target.write_text("x")
            case 1:
                (target / "n" / "m").mkdir(parents=True, exist_ok=True) if not target.is_file() else None
            case 2:
                if at.is_file():
                    at.unlink()
                elif at != home:
                    shutil.rmtree(at)
            case 3:
                if at != home and not target.exists() and at not in target.parents:
                    at.rename(target)
            case 4:
                if at.is_file():
                    at.write_text("longer")
            case _:
                if at.is_file() and target.is_file():
                    os.replace(at, target)


@pytest.mark.parametrize("seed", range(4))
def test_storm(start: Start, tmp_path: pathlib.Path, seed: int) -> None:
    """Two threads make changes while they are collected: what was told, replayed, is what is there."""
    one = start()
    before = on_disk(tmp_path)
    threads = [threading.Thread(target=disturb, args=(tmp_path, 10 * seed + n, 300)) for n in range(2)]
    for thread in threads:
        thread.start()
    told: list[Change] = []
    while any(thread.is_alive() for thread in threads):
        select.select([one], [], [], 0.05)
        told += one.collect()
    told += everything(one)
    assert replay(before, told) == on_disk(tmp_path)


def test_overflow(start: Start, tmp_path: pathlib.Path) -> None:
    """When the kernel drops events, everything is looked at again: nothing is lost."""
    (tmp_path / "d").mkdir()
    for number in range(50):
        (tmp_path / f"d/old{number}").touch()
    one = start()
    before = on_disk(tmp_path)
    limit = int(pathlib.Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit // 2 + 100):  # each raises two events
        (tmp_path / "d" / f"f{number}").write_text("x")
    (tmp_path / "d/old7").write_text("changed while nothing was queued")
    (tmp_path / "d/old8").unlink()
    (tmp_path / "e/e").mkdir(parents=True)
    told = everything(one)
    assert replay(before, told) == on_disk(tmp_path)
    assert (b"d/old7", "modify") in told


@pytest.mark.parametrize("ahead", [3600, -3600, 0], ids=["put back", "put forward", "left alone"])
def test_a_clock_that_is_set(start: Start, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, ahead: int) -> None:
    """What changed since the last look is found by its time also when the clock was set in between."""

    class Clock:
        ahead_ns = ahead * 10**9
        monotonic_ns = staticmethod(time.monotonic_ns)

        @classmethod
        def time_ns(cls) -> int:
            return time.time_ns() + cls.ahead_ns

    monkeypatch.setattr(observer, "time", Clock)
    for name in ("changed", "left"):
        (tmp_path / name).write_text("old")
    time.sleep(2 * observer.CLOCK_STEP_NS / 1e9)
    one = start()
    assert everything(one) == []
    Clock.ahead_ns = 0
    (tmp_path / "changed").write_text("new")
    told = one.rescan()
    assert (b"changed", "modify") in told
    # what was changed in the time that was skipped cannot be told from what was changed after it
    assert ((b"left", "modify") in told) == (ahead < 0)


def test_limit(start: Start, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel allows no further watch the error names the limit, and `rescan` still finds what is new."""

    genuine = inotify.Inotify

    class Scarce:
        """An inotify that allows three watches."""

        def __init__(self) -> None:
            self._real, self._left = genuine(), 3
            self.fileno, self.close, self.read, self.remove = (
                self._real.fileno,
                self._real.close,
                self._real.read,
                self._real.remove,
            )

        def add(self, directory: int, mask: int) -> int:
            if self._left == 0:
                raise OSError(28, "No space left on device")
            self._left -= 1
            return self._real.add(directory, mask)

    monkeypatch.setattr(observer.inotify, "Inotify", Scarce)
    (tmp_path / "a").mkdir()
    one = start()
    before = on_disk(tmp_path)
    (tmp_path / "b/c/d").mkdir(parents=True)
    (tmp_path / "b/c/d/f").touch()
    with pytest.raises(observer.WatchLimit, match="max_user_watches"):
        everything(one)
    assert replay(before, one.rescan()) == on_disk(tmp_path)
    with pytest.raises(observer.WatchLimit, match="max_user_watches"):
        start()
