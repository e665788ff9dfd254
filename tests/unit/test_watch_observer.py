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
from toolserver.watches.events import Change
from toolserver.watches.filter import WatchFilter
from toolserver.watches.observer import Observer

Start = Callable[..., Observer]
Told = list[tuple[bytes, str]]


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Start]:
    """Start an observer of the given paths of `tmp_path`."""
    made: list[Observer] = []

    def begin(*targets: str, hidden_top: frozenset[bytes] = frozenset()) -> Observer:
        root = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
        wanted = [os.fsencode(target) for target in targets or ("",)]
        made.append(Observer(root, WatchFilter(wanted, BaseRules(), Tracked(), hidden_top)))
        made[-1].start()
        return made[-1]

    yield begin
    for one in made:
        one.close()


def told_by(changes: list[Change]) -> Told:
    """Return the path and the kind of each change."""
    return [(path, kind) for path, kind, _ in changes]


def everything(one: Observer) -> Told:
    """Collect until nothing waits."""
    out: Told = []
    while got := one.collect():
        out += told_by(got)
    return out


def on_disk(root: pathlib.Path) -> set[bytes]:
    return {os.fsencode(path.relative_to(root)) for path in root.rglob("*")}


def replay(before: set[bytes], changes: Told) -> set[bytes]:
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


def test_ignore_file_in_a_burst(start: Start, tmp_path: pathlib.Path) -> None:
    """An ignore file that changes leaves the kinds of what changes beside it alone, and loses nothing."""
    (tmp_path / "w").mkdir()
    one = start()
    (tmp_path / "w/.gitignore").write_text("x/\n")
    assert everything(one) == [(b"w/.gitignore", "create"), (b"w/.gitignore", "modify")]
    (tmp_path / "w/.gitignore").write_text("y/\n")
    (tmp_path / "w/c.txt").write_text("new")
    (tmp_path / "w/d").mkdir()
    (tmp_path / "w/d/e.txt").touch()
    told = everything(one)
    assert {change for change in told if change[1] == "create"} == {
        (b"w/c.txt", "create"),
        (b"w/d", "create"),
        (b"w/d/e.txt", "create"),
    }
    assert (b"w/.gitignore", "modify") in told


@pytest.mark.parametrize("removed", [False, True])
def test_shown_in_a_burst(start: Start, tmp_path: pathlib.Path, removed: bool) -> None:
    """What is made in a directory after the rules show it is reported; what lay there before is not."""
    (tmp_path / ".gitignore").write_text("a/\n")
    (tmp_path / "a/sub").mkdir(parents=True)
    (tmp_path / "a/sub/old").write_text("x")
    one = start()
    time.sleep(3 * observer.CLOCK_STEP_NS / 1e9)
    (tmp_path / "a/sub/while hidden").write_text("x")
    everything(one)
    time.sleep(3 * observer.CLOCK_STEP_NS / 1e9)
    if removed:
        (tmp_path / "other").touch()
        everything(one)  # the moment from which on changes are looked for
        (tmp_path / ".gitignore").unlink()
    else:
        (tmp_path / ".gitignore").write_text("")
    (tmp_path / "a/sub/new").write_text("x")
    (tmp_path / "a/made/deep").mkdir(parents=True)
    (tmp_path / "a/made/deep/f").touch()
    told = [change for change in everything(one) if change[0].startswith(b"a")]
    created = [change for change in told if change[1] == "create"]
    assert sorted(created) == [(path, "create") for path in (b"a/made", b"a/made/deep", b"a/made/deep/f", b"a/sub/new")]
    assert {path for path, _ in told} == {path for path, _ in created}


def test_hidden_in_a_burst(start: Start, tmp_path: pathlib.Path) -> None:
    """What was removed before its directory was hidden is reported, also where rules were written twice."""
    for name in ("a/b/f", "c/f"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    one = start()
    (tmp_path / ".gitignore").write_text("x/\n")
    (tmp_path / "a/b/f").unlink()
    shutil.rmtree(tmp_path / "c")
    (tmp_path / ".gitignore").write_text("a/\nc/\n")
    assert {change for change in everything(one) if change[1] == "remove"} == {
        (b"a/b/f", "remove"),
        (b"c/f", "remove"),
        (b"c", "remove"),
    }


def test_rules_above_a_watched_path(start: Start, tmp_path: pathlib.Path) -> None:
    """An ignore file above the path that is watched holds below it, too, once it changes."""
    for name in ("a/x", "a/y"):
        (tmp_path / name).mkdir(parents=True)
    one = start("a")
    (tmp_path / ".gitignore").write_text("x/\n")
    assert everything(one) == []
    (tmp_path / "a/x/f").touch()
    (tmp_path / "a/y/f").touch()
    assert {path for path, _ in everything(one)} == {b"a/y/f"}


def test_half_written_rules(start: Start, tmp_path: pathlib.Path) -> None:
    """An ignore file that is being rewritten keeps its rules until it is closed."""
    (tmp_path / ".gitignore").write_text("a/\n")
    (tmp_path / "a").mkdir()
    one = start()
    with (tmp_path / ".gitignore").open("w") as file:
        everything(one)
        (tmp_path / "a/f").touch()
        assert (b"a/f", "create") not in everything(one)
        file.write("a/\n")
    everything(one)
    (tmp_path / "a/g").touch()
    assert everything(one) == []


def test_overflow_with_new_rules(start: Start, tmp_path: pathlib.Path) -> None:
    """Rules that changed among events that the kernel dropped hold once everything is looked at again."""
    for name in ("a", "b", "d"):
        (tmp_path / name).mkdir()
    (tmp_path / ".gitignore").write_text("a/\n")
    one = start()
    limit = int(pathlib.Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit // 2 + 100):
        (tmp_path / "d" / f"f{number}").write_text("x")
    (tmp_path / ".gitignore").write_text("b/\n")
    everything(one)
    (tmp_path / "a/f").touch()
    (tmp_path / "b/f").touch()
    assert {path for path, _ in everything(one)} == {b"a/f"}


def test_moved_into_a_new_directory(start: Start, tmp_path: pathlib.Path) -> None:
    """A directory that is moved into one made in the same burst stays watched."""
    (tmp_path / "a/b").mkdir(parents=True)
    one = start()
    (tmp_path / "n").mkdir()
    (tmp_path / "a").rename(tmp_path / "n/a")
    assert replay({b"a", b"a/b"}, everything(one)) == {b"n", b"n/a", b"n/a/b"}
    (tmp_path / "n/a/b/f").touch()
    assert (b"n/a/b/f", "create") in everything(one)


def test_made_again_while_events_were_dropped(start: Start, tmp_path: pathlib.Path) -> None:
    """A directory that was removed and made again among dropped events is watched, also with its old inode number."""
    (tmp_path / "d/sub").mkdir(parents=True)
    (tmp_path / "many").mkdir()
    one = start()
    limit = int(pathlib.Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit // 2 + 100):
        (tmp_path / "many" / f"f{number}").write_text("x")
    shutil.rmtree(tmp_path / "d")
    (tmp_path / "d/sub").mkdir(parents=True)
    everything(one)
    (tmp_path / "d/sub/f").touch()
    assert (b"d/sub/f", "create") in everything(one)


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
    told: Told = []
    while any(thread.is_alive() for thread in threads):
        select.select([one], [], [], 0.05)
        told += told_by(one.collect())
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
    told = told_by(one.rescan())
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
    assert replay(before, told_by(one.rescan())) == on_disk(tmp_path)
    with pytest.raises(observer.WatchLimit, match="max_user_watches"):
        start()
