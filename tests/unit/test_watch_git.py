"""A watch and the repository at its root: the index and git's own rules, as they change while it runs."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable, Iterator

import pytest
from gittrees import environment, git

from toolserver.git.rule_files import GitFiles
from toolserver.watches.filter import WatchFilter
from toolserver.watches.observer import CLOCK_STEP_NS, Observer
from toolserver.watches.polling import Poller

Look = Callable[[], set[tuple[bytes, str]]]


@pytest.fixture
def home(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "root/build").mkdir(parents=True)
    (tmp_path / "root/.gitignore").write_text("build/\n")
    (tmp_path / "root/build/old").write_text("x")
    return tmp_path / "root"


@pytest.fixture(params=[Observer, Poller])
def start(request: pytest.FixtureRequest, root: pathlib.Path, home: pathlib.Path) -> Iterator[Callable[[], Look]]:
    """Start a watch of the whole root; what it returns looks for what has changed."""
    made: list[Observer | Poller] = []

    def begin() -> Look:
        read = GitFiles(environment(home)).now
        fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
        now = read(fd)
        one = request.param(fd, WatchFilter([b""], now.base, now.tracked, git=read))
        made.append(one)
        one.start()

        def look() -> set[tuple[bytes, str]]:
            changes = one.collect() if isinstance(one, Observer) else one.look()
            return {(path, kind) for path, kind, _ in changes}

        return look

    yield begin
    for one in made:
        one.close()


def test_tracked_in_an_ignored_directory(start: Callable[[], Look], root: pathlib.Path, home: pathlib.Path) -> None:
    """A directory that is ignored is watched from when something in it is tracked until nothing is."""
    env = environment(home)
    git(root, "init", "-q", env=env)
    look = start()
    (root / "build/new").touch()
    assert look() == set()
    time.sleep(3 * CLOCK_STEP_NS / 1e9)
    (root / "mark").touch()
    assert (b"mark", "create") in look()
    git(root, "add", "-f", "build/old", env=env)
    assert not {path for path, _ in look() if path != b"build/old"}
    (root / "build/later").touch()
    assert (b"build/later", "create") in look()
    git(root, "rm", "-q", "--cached", "build/old", env=env)
    look()
    (root / "build/last").touch()
    assert look() == set()


def test_checkout_into_an_ignored_directory(start: Callable[[], Look], root: pathlib.Path, home: pathlib.Path) -> None:
    """Tracked files that a checkout writes into an ignored directory are reported, though the index is written last."""
    env = environment(home) | {
        b"GIT_AUTHOR_NAME": b"t",
        b"GIT_AUTHOR_EMAIL": b"t@x",
        b"GIT_COMMITTER_NAME": b"t",
        b"GIT_COMMITTER_EMAIL": b"t@x",
    }
    git(root, "init", "-q", "-b", "one", env=env)
    git(root, "add", ".gitignore", env=env)
    git(root, "commit", "-qm", "one", env=env)
    git(root, "checkout", "-qb", "two", env=env)
    (root / "build/tracked").write_text("x")
    git(root, "add", "-f", "build/tracked", env=env)
    git(root, "commit", "-qm", "two", env=env)
    git(root, "checkout", "-q", "one", env=env)
    assert not (root / "build/tracked").exists()
    time.sleep(3 * CLOCK_STEP_NS / 1e9)
    look = start()
    look()
    git(root, "checkout", "-q", "two", env=env)
    assert (b"build/tracked", "create") in look()


def test_rules_of_a_repository_made_later(start: Callable[[], Look], root: pathlib.Path, home: pathlib.Path) -> None:
    """`info/exclude` counts once there is a repository, and as it is written."""
    (root / "src").mkdir()
    look = start()
    git(root, "init", "-q", env=environment(home))
    look()
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/exclude").write_text("src/\n")
    look()
    (root / "src/f").touch()
    assert look() == set()
