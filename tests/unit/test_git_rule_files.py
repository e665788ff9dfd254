"""Which rule files hold in a tree and what its index holds, against git itself."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator

import pytest
from gittrees import environment, fill, git, git_lists, we_list

from toolserver._fast.git_index import Tracked, shared_index
from toolserver.git.rule_files import GitFiles

FILES = {"a.log": b"", "b.txt": b"", "sub/c.log": b"", "sub/d": b"", "out/deep/e": b"", "out/f": b""}


class World:
    """A tree with a repository, a home folder, and the environment both have."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.home = folder / "home"
        self.root = folder / "tree"
        self.home.mkdir()
        self.root.mkdir()
        self.env = environment(self.home)
        self.files = GitFiles(self.env)
        fill(self.root, FILES)

    def git(self, *args: str) -> bytes:
        return git(self.root, *args, env=self.env)

    def shown(self) -> list[bytes]:
        """What we show now, which is what git shows, asked by one long-lived object and by a new one."""
        found = we_list(self.root, self.env, self.files)
        assert found == we_list(self.root, self.env) == git_lists(self.root, self.env)
        return found


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    world = World(tmp_path)
    world.git("init", "-q")
    return world


ALL = sorted(name.encode() for name in FILES)
NO_LOGS = [path for path in ALL if not path.endswith(b".log")]


@pytest.mark.parametrize(
    ("home", "own"),
    [
        ({".config/git/ignore": b"*.log\n"}, {}),
        ({".gitconfig": b"[core]excludesFile = ~/mine\n", "mine": b"*.log\n"}, {}),
        ({".config/git/config": b"[core]excludesFile = ~/mine\n", "mine": b"*.log\n"}, {}),
        ({"../tree/.git/mine": b"*.log\n"}, {"core.excludesFile": ".git/mine"}),
        (
            {".gitconfig": b"[core]excludesFile = ~/other\n", "../tree/.git/mine": b"*.log\n", "other": b"*"},
            {"core.excludesFile": ".git/mine"},
        ),
        ({".gitconfig": b"[include]path = more\n", "more": b"[core]excludesFile = ~/mine\n", "mine": b"*.log\n"}, {}),
        (
            {
                ".gitconfig": b'[includeIf "gitdir:tree/"]path = more\n',
                "more": b"[core]excludesFile = ~/mine\n",
                "mine": b"*.log\n",
            },
            {},
        ),
    ],
)
def test_excludes_file(world: World, home: dict[str, bytes], own: dict[str, str]) -> None:
    assert world.shown() == ALL
    fill(world.home, home)
    for key, value in own.items():
        world.git("config", key, value)
    assert world.shown() == NO_LOGS


@pytest.mark.parametrize("named", ["~/mine", "../home/mine", "{home}/mine", ".git/link", ".git/folder/mine", "link"])
@pytest.mark.parametrize("how", ["excludes file", "include", "condition", "include of an include"])
def test_the_repositorys_own_configuration_leads_nowhere_outside(world: World, named: str, how: str) -> None:
    """A command may write `.git/config`: neither it nor a link in the tree makes the server read other files."""
    named = named.format(home=world.home)
    rules = b"*.log\n"
    if how != "excludes file":
        fill(world.root, {".git/rules": rules})
        rules = b"[core]excludesFile = .git/rules\n"
    fill(world.home, {"mine": rules})
    for link, to in {".git/link": "mine", ".git/folder": "", "link": "mine"}.items():
        (world.root / link).symlink_to(world.home / to)
    target = named if named.startswith(("~", "/")) else f"{world.root}/{named}"
    if how == "excludes file":
        world.git("config", "core.excludesFile", target)
    elif how == "include":
        world.git("config", "include.path", target)
    elif how == "condition":
        world.git("config", f"includeIf.gitdir:{world.root}/.path", target)
    else:
        fill(world.root, {".git/more": f"[include]path = {target}\n".encode()})
        world.git("config", "include.path", "more")
    assert git_lists(world.root, world.env) == sorted([b"link", *NO_LOGS])
    assert we_list(world.root, world.env) == sorted([b"link", *ALL])


@pytest.mark.parametrize("named", [".git/link", "{root}/.git/mine", ".git/folder/../mine"])
def test_the_repositorys_own_configuration_leads_inside_by_any_way(world: World, named: str) -> None:
    fill(world.root, {".git/mine": b"*.log\n", ".git/folder/": b""})
    (world.root / ".git/link").symlink_to(world.root / ".git/mine")
    world.git("config", "core.excludesFile", named.format(root=world.root))
    assert world.shown() == NO_LOGS


def test_an_excludes_file_that_is_put_outside_is_read_no_more(world: World) -> None:
    """What was read of a file inside is not used for the place that its name leads to later."""
    fill(world.root, {".git/mine": b"*.log\n"})
    fill(world.home, {"mine": b"*.log\n"})
    world.git("config", "core.excludesFile", ".git/mine")
    assert world.shown() == NO_LOGS
    (world.root / ".git/mine").unlink()
    (world.root / ".git/mine").symlink_to(world.home / "mine")
    assert we_list(world.root, world.env, world.files) == ALL


@pytest.mark.parametrize("value", ["~/missing", "", "/dev/null"])
def test_a_configured_excludes_file_replaces_the_default_though_missing(world: World, value: str) -> None:
    fill(world.home, {".config/git/ignore": b"*.log\n"})
    assert world.shown() == NO_LOGS
    world.git("config", "core.excludesFile", value)
    assert world.shown() == ALL


def test_xdg_config_home(world: World, tmp_path: pathlib.Path) -> None:
    fill(tmp_path / "xdg", {"git/ignore": b"*.log\n"})
    fill(world.home, {".config/git/ignore": b"*\n"})
    world.env[b"XDG_CONFIG_HOME"] = os.fsencode(tmp_path / "xdg")
    assert world.shown() == NO_LOGS


def test_system_and_global_files_by_variable(world: World) -> None:
    fill(world.home, {"system": b"[core]excludesFile = ~/one\n", "one": b"*.log\n", "two": b"*.txt\n"})
    del world.env[b"GIT_CONFIG_NOSYSTEM"]
    world.env[b"GIT_CONFIG_SYSTEM"] = os.fsencode(world.home / "system")
    assert world.shown() == NO_LOGS
    fill(world.home, {"global": b"[core]excludesFile = ~/two\n", ".gitconfig": b"[core]excludesFile = ~/none\n"})
    world.env[b"GIT_CONFIG_GLOBAL"] = os.fsencode(world.home / "global")
    assert b"b.txt" not in world.shown()
    world.env[b"GIT_CONFIG_NOSYSTEM"] = b"true"
    world.env[b"GIT_CONFIG_GLOBAL"] = b"/dev/null"
    assert world.shown() == ALL


def test_rule_files_may_be_links_but_gitignore_may_not(world: World) -> None:
    fill(world.home, {"rules": b"*.log\n", "late": b"*.txt\n", ".config/git/": b""})
    (world.home / ".config/git/ignore").symlink_to(world.home / "rules")
    info = world.root / ".git/info/exclude"
    info.unlink()
    info.symlink_to(world.home / "late")
    (world.root / ".gitignore").symlink_to(world.home / "rules")
    assert world.shown() == sorted([b".gitignore", *(path for path in NO_LOGS if path != b"b.txt")])


def test_special_rule_files_do_not_hang(world: World) -> None:
    fill(world.home, {".config/git/": b""})
    os.mkfifo(world.home / ".config/git/ignore")
    info = world.root / ".git/info/exclude"
    info.unlink()
    os.mkfifo(info)
    assert we_list(world.root, world.env) == ALL


def test_a_linked_worktree(world: World, tmp_path: pathlib.Path) -> None:
    fill(world.root, {".git/info/exclude": b"*.log\n"})
    world.git("add", "b.txt")
    world.git("-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "one")
    world.git("worktree", "add", "-q", str(tmp_path / "linked"))
    world.root = tmp_path / "linked"
    fill(world.root, FILES)
    assert world.shown() == NO_LOGS
    world.git("add", "-f", "a.log")
    assert world.shown() == sorted([b"a.log", *NO_LOGS])
    world.git("config", "extensions.worktreeConfig", "true")
    fill(world.root, {"mine": b"*.txt\nsub/\nmine\n"})
    world.git("config", "--worktree", "core.excludesFile", "mine")
    assert world.shown() == [b"a.log", b"b.txt", b"out/deep/e", b"out/f"]


def test_a_repository_that_comes_and_goes(world: World) -> None:
    fill(world.root, {".git/info/exclude": b"*.log\n"})
    assert world.shown() == NO_LOGS
    (world.root / ".git").rename(world.home / "aside")
    assert we_list(world.root, world.env, world.files) == ALL
    (world.home / "aside").rename(world.root / ".git")
    assert world.shown() == NO_LOGS
    (world.root / ".git/HEAD").unlink()
    assert we_list(world.root, world.env, world.files) == ALL


def test_a_git_link_and_a_git_file(world: World) -> None:
    fill(world.root, {".git/info/exclude": b"*.log\n"})
    world.git("add", "-f", "a.log")
    (world.root / ".git").rename(world.home / "aside")
    (world.root / ".git").symlink_to(world.home / "aside")
    assert world.shown() == sorted([b"a.log", *NO_LOGS])
    (world.root / ".git").unlink()
    (world.root / ".git").write_bytes(b"gitdir: ../home/aside\n")
    assert world.shown() == sorted([b"a.log", *NO_LOGS])


# --------------------------------------------------------------------------------------------------------- the index


def version(world: World) -> int:
    return (world.root / ".git/index").read_bytes()[7]


@pytest.fixture(params=["2", "3", "4", "split", "split-4", "sha256", "sha256-4"])
def indexed(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[World]:
    """A world whose index is kept in one of the forms there are; everything in it is ignored."""
    world = World(tmp_path)
    form = request.param
    world.git("init", "-q", *(["--object-format=sha256"] if form.startswith("sha256") else []))
    fill(world.root, {".git/info/exclude": b"*\n"})
    if form.startswith("split"):
        world.git("config", "splitIndex.maxPercentChange", "100")
        world.git("config", "core.splitIndex", "true")
    if form[-1] in "234":
        world.git("update-index", "--index-version", form[-1])
    if form == "3":
        world.git("add", "-f", "-N", "sub/d")
        assert version(world) == 3
    yield world
    assert version(world) == (4 if form.endswith("4") else 2)
    assert any(world.root.glob(".git/sharedindex.*")) == form.startswith("split")


def test_every_form_of_index(indexed: World) -> None:
    start = indexed.shown()
    assert start in ([], [b"sub/d"])
    indexed.git("add", "-f", "a.log", "out/deep/e", "sub")
    assert indexed.shown() == [b"a.log", b"out/deep/e", b"sub/c.log", b"sub/d"]
    indexed.git("rm", "-q", "--cached", "a.log", "sub/c.log")
    assert indexed.shown() == [b"out/deep/e", b"sub/d"]
    indexed.git("add", "-f", "a.log", "out")
    (indexed.root / "sub/d").write_bytes(b"changed")
    indexed.git("add", "-f", "sub/d")
    assert indexed.shown() == [b"a.log", b"out/deep/e", b"out/f", b"sub/d"]
    (indexed.root / "a.log").unlink()
    (indexed.root / "a.log").mkdir()
    (indexed.root / "a.log/x").write_bytes(b"")
    assert indexed.shown() == [b"out/deep/e", b"out/f", b"sub/d"]


def test_unmerged_paths_and_submodules(world: World) -> None:
    fill(world.root, {".git/info/exclude": b"*\n"})
    blob = world.git("hash-object", "-w", "a.log").decode().strip()
    lines = [f"100644 {blob} {stage}\tb.txt" for stage in (1, 2, 3)]
    lines += [f"160000 {blob} 0\tsub", f"120000 {blob} 0\tlink"]
    git(world.root, "update-index", "--index-info", env=world.env, input="\n".join(lines).encode())
    (world.root / "link").symlink_to("a.log")
    assert world.shown() == [b"b.txt", b"link"]
    fd = os.open(world.root, os.O_PATH)
    tracked = world.files.now(fd).tracked
    os.close(fd)
    assert tracked.paths() == [b"b.txt", b"link"]
    assert len(tracked) == 2


def test_where_a_path_lies(world: World) -> None:
    fill(world.root, {"sub.d": b"", "sub-d": b"", "sub0": b""})
    world.git("add", ".")
    tracked = Tracked((world.root / ".git/index").read_bytes())
    assert tracked.file(b"", b"sub-d")
    assert tracked.file(b"out/deep", b"e")
    assert not tracked.file(b"", b"sub")
    assert not tracked.file(b"out", b"deep")
    assert not tracked.file(b"out/deep", b"")
    assert tracked.below(b"", b"sub")
    assert tracked.below(b"out", b"deep")
    assert tracked.below(b"out/deep", b"")
    assert tracked.below(b"", b"")
    assert not tracked.below(b"", b"su")
    assert not tracked.below(b"", b"sub.d")
    assert not tracked.below(b"out/deep", b"e")
    assert not Tracked().below(b"", b"")


def test_a_broken_index_counts_as_empty(world: World) -> None:
    fill(world.root, {".git/info/exclude": b"*\n"})
    world.git("add", "-f", "a.log", "sub")
    index = (world.root / ".git/index").read_bytes()
    for broken in [b"", b"DIRC", index[:40], b"X" + index[1:], index[:8] + b"\0\1\0\0" + index[12:], index[:-60]]:
        (world.root / ".git/index").write_bytes(broken)
        assert we_list(world.root, world.env, world.files) == []
    (world.root / ".git/index").write_bytes(index)
    assert world.shown() == [b"a.log", b"sub/c.log", b"sub/d"]


def survives(index: bytes, shared: bytes | None = None) -> None:
    """Reading any bytes as an index is an answer or the one error there is."""
    with contextlib.suppress(ValueError):
        shared_index(index)
    with contextlib.suppress(ValueError):
        assert Tracked(index, shared).paths() == sorted(set(Tracked(index, shared).paths()))


@pytest.mark.parametrize("form", ["2", "4", "split"])
def test_any_damage_is_an_error_or_an_answer(world: World, form: str) -> None:
    world.git("update-index", *(["--split-index"] if form == "split" else ["--index-version", form]))
    world.git("add", "-f", ".")
    world.git("rm", "-q", "--cached", "a.log")
    index = (world.root / ".git/index").read_bytes()
    shared = next((path.read_bytes() for path in world.root.glob(".git/sharedindex.*")), None)
    for whole in filter(None, (index, shared)):
        for at in range(len(whole)):
            for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
                if whole is index:
                    survives(damaged, shared)
                else:
                    survives(index, damaged)


# ------------------------------------------------------------------------------------------------------ what is kept


def now(world: World) -> object:
    fd = os.open(world.root, os.O_PATH)
    try:
        return world.files.now(fd)
    finally:
        os.close(fd)


def test_the_same_object_as_long_as_nothing_changed(world: World) -> None:
    world.git("add", "-f", "a.log")
    first = now(world)
    assert now(world) is first
    os.utime(world.root / ".git/index")
    assert now(world) is first
    world.git("add", "-f", "sub")
    second = now(world)
    assert second is not first
    assert second.base is first.base
    fill(world.root, {".git/info/exclude": b"*.log\n"})
    assert now(world) is not second


def test_a_change_that_leaves_size_and_mtime_is_seen(world: World) -> None:
    info = world.root / ".git/info/exclude"
    info.write_bytes(b"*.log\n")
    old = info.stat()
    os.utime(info, ns=(0, 10**18))
    assert world.shown() == NO_LOGS
    info.write_bytes(b"*.txt\n")
    os.utime(info, ns=(0, 10**18))
    assert info.stat().st_ino == old.st_ino
    assert b"b.txt" not in world.shown()
