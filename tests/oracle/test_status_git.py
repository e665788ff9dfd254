"""Status, counts and patches of generated repositories, against the git command line."""

from __future__ import annotations

import os
import pathlib
import random
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from toolserver._fast.ignore import BaseRules
from toolserver.git import diff
from toolserver.git.changes import counted
from toolserver.git.repository import Repository
from toolserver.git.status import Memory, Status, status

NEUTRAL = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


class Work:
    """A repository, git to change it, and what is told of it."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.memory = Memory()

    def git(self, *args: str, check: bool = True, **more: str) -> bytes:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"]
        return subprocess.run(
            ["git", *identity, *args],
            cwd=self.root,
            env={**os.environ, **NEUTRAL, **more},
            check=check,
            capture_output=True,
        ).stdout

    def put(self, path: str, content: str | bytes = "") -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "x", "--allow-empty")

    def asked(self, memory: Memory | None = None) -> tuple[Repository, int, Status]:
        repository = Repository.open(os.fsencode(self.root))
        assert repository is not None
        root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        return repository, root, status(repository, root, BaseRules(), memory or Memory(), leave_agents=False)

    def told(self) -> set[tuple[bytes, str, bytes | None]]:
        """What we tell, the second time too, when something is remembered."""
        results = []
        for _ in range(2):
            _, root, found = self.asked(self.memory)
            os.close(root)
            results.append({(row.path, row.index + row.worktree, row.renamed_from) for row in found.changes})
        assert results[0] == results[1]
        return results[0]

    def expected(self) -> set[tuple[bytes, str, bytes | None]]:
        """What git tells; read first by us, since git writes the stat of files back into the index."""
        out = self.git("--no-optional-locks", "status", "--porcelain=v1", "-z", "-uall")
        fields = iter(out.split(b"\0")[:-1])
        rows = set()
        for field in fields:
            letters, path = field[:2].decode().replace(" ", "."), field[3:]
            rows.add((path, letters, next(fields) if letters[0] == "R" else None))
        return rows

    def check(self) -> None:
        assert self.told() == self.expected()


@pytest.fixture
def work(tmp_path: pathlib.Path) -> Iterator[Work]:
    made = Work(tmp_path / "work")
    yield made
    shutil.rmtree(made.root, ignore_errors=True)


def text(rng: random.Random, lines: int = 12) -> str:
    return "".join(f"line {rng.randrange(1000)}\n" for _ in range(lines))


NAMES = ["a", "b.txt", "d/e", "d/f.txt", "d/g/h", "i/j", "i/k/l", "mä", "with blank", "d-x", "d.y", "q/r/s/t"]


def step(work: Work, rng: random.Random) -> None:  # a list of what can happen
    """Change a file, the index or both."""
    files = [p for p in work.root.rglob("*") if ".git" not in p.parts and (p.is_symlink() or p.is_file())]
    one = rng.choice(files) if files else None
    match rng.randrange(11):
        case 0:
            work.put(f"new{rng.randrange(9)}/x{rng.randrange(9)}", text(rng))
        case 1 if one and not one.is_symlink():
            one.write_text(one.read_text() + "more\n")
        case 2 if one:
            one.unlink()
        case 3 if one:
            work.git("mv", "-k", str(one.relative_to(work.root)), f"moved{rng.randrange(99)}", check=False)
        case 4:
            work.git("add", "-A")
        case 5 if one:
            work.git("add", str(one.relative_to(work.root)))
        case 6 if one and not one.is_symlink():
            one.chmod(0o755 if rng.random() < 0.7 else 0o644)
        case 7 if one:
            work.git("rm", "-q", "--cached", str(one.relative_to(work.root)), check=False)
        case 8 if one:
            one.unlink()
            one.symlink_to("target")
        case 9:
            work.put("build/x", "1")
            work.put("x.log", "1")
        case 10 if one and not one.is_symlink():
            os.utime(one, (1, 1))


@pytest.mark.parametrize("seed", range(60))
def test_random_histories(work: Work, seed: int) -> None:
    """Files made, changed, moved, removed, staged or not, in any order."""
    rng = random.Random(seed)
    work.put(".gitignore", "*.log\nbuild/\n")
    for name in rng.sample(NAMES, 8):
        work.put(name, text(rng))
    if rng.random() < 0.9:
        work.commit()
    for _ in range(rng.randrange(1, 8)):
        step(work, rng)
    work.check()


def test_conflicts(work: Work) -> None:
    for name in ("both", "ours-gone", "theirs-gone"):
        work.put(name, "base\n")
    work.commit()
    work.git("checkout", "-qb", "other")
    work.put("both", "theirs\n")
    work.put("ours-gone", "theirs\n")
    (work.root / "theirs-gone").unlink()
    work.put("added", "theirs\n")
    work.commit()
    work.git("checkout", "-q", "main")
    work.put("both", "ours\n")
    (work.root / "ours-gone").unlink()
    work.put("theirs-gone", "ours\n")
    work.put("added", "ours\n")
    work.commit()
    work.git("merge", "-q", "other", check=False)
    work.check()
    assert {letters for _, letters, _ in work.told()} == {"UU", "DU", "UD", "AA"}


def test_intent_to_add(work: Work) -> None:
    work.put("a", "1\n")
    work.commit()
    work.put("new", "1\n")
    work.put("gone", "1\n")
    work.git("add", "-N", "new", "gone")
    (work.root / "gone").unlink()
    assert (b"new", ".A", None) in work.told()
    work.check()


def test_submodules(work: Work, tmp_path: pathlib.Path) -> None:
    inner = Work(tmp_path / "inner")
    inner.put("f", "1\n")
    inner.commit()
    work.git("submodule", "--quiet", "add", str(inner.root), "sub")
    work.commit()
    work.check()
    (work.root / "sub" / "f").write_text("changed\n")
    work.check()
    subprocess.run(["git", "-C", "sub", "checkout", "-q", "."], cwd=work.root, check=True)
    inside = [
        "git",
        "-C",
        "sub",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@e",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    ]
    subprocess.run(inside, cwd=work.root, check=True)
    work.check()
    work.git("add", "sub")
    work.check()


def test_repository_inside(work: Work) -> None:
    """A repository that is no submodule is shown as one thing, as git shows it."""
    work.put("a", "1\n")
    work.commit()
    inner = Work(work.root / "vendor" / "inner") if (work.root / "vendor").mkdir() is None else None
    assert inner is not None
    inner.put("f", "1\n")
    inner.commit()
    work.check()


@pytest.mark.parametrize("setting", [("core.autocrlf", "true"), ("core.autocrlf", "input"), ("core.autocrlf", "false")])
def test_line_ends(work: Work, setting: tuple[str, str]) -> None:
    work.put("lf", "a\nb\n")
    work.put("crlf", "a\r\nb\r\n")
    work.put("mixed", "a\r\nb\n")
    work.put("binary", b"a\r\n\0b\r\n")
    work.put("text.t", "a\r\nb\r\n")
    work.put("un.u", "a\r\nb\r\n")
    work.put(".gitattributes", "*.t text\n*.u -text\n")
    work.commit()
    work.git("config", *setting)
    for path in ("lf", "crlf", "mixed", "binary", "text.t", "un.u"):
        content = (work.root / path).read_bytes()
        (work.root / path).write_bytes(content)
        os.utime(work.root / path, (5, 5))
    work.put("lf", "a\r\nb\r\n")
    work.check()


def test_names_that_are_not_utf8(work: Work) -> None:
    where = os.fsencode(work.root)
    for name in (b"caf\xe9", b"t\xff/x", b"new\nline"):
        os.makedirs(os.path.dirname(where + b"/" + name), exist_ok=True)
        with open(where + b"/" + name, "wb") as file:
            file.write(b"1\n")
    work.check()
    work.git("add", "-A")
    work.check()
    work.git("commit", "-qm", "x")
    with open(where + b"/caf\xe9", "ab") as file:
        file.write(b"2\n")
    work.check()


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_versions_of_the_index(work: Work, version: str) -> None:
    for name in NAMES:
        work.put(name, name)
    work.commit()
    work.git("update-index", "--index-version", version)
    work.put("d/e", "other")
    work.put("untracked", "1")
    work.check()


def test_racy_file(work: Work) -> None:
    """Written again in the same instant and with the same size as the index has it."""
    work.put("a", "one\n")
    work.commit()
    index = work.root / ".git" / "index"
    stamp = index.stat().st_mtime_ns
    work.put("a", "two\n")
    os.utime(work.root / "a", ns=(stamp, stamp))
    work.git("update-index", "-q", "--really-refresh", check=False)
    work.check()


def test_no_commit_and_no_index(work: Work) -> None:
    work.check()
    work.put("a", "1")
    work.check()
    work.git("add", "a")
    work.check()


def numstat(work: Work, *args: str) -> dict[bytes, tuple[bytes, bytes]]:
    out = work.git("diff", "--numstat", "-z", "--no-renames", *args)
    rows = [line.split(b"\t") for line in out.split(b"\0")[:-1]]
    return {path: (added, removed) for added, removed, path in rows}


@pytest.mark.parametrize("seed", range(15))
def test_counts_and_patches(work: Work, tmp_path: pathlib.Path, seed: int) -> None:
    """The counts are those of `git diff HEAD`; git turns HEAD into the work tree with the patch."""
    rng = random.Random(seed)
    for name in NAMES:
        work.put(name, text(rng, 30))
    work.commit()
    for name in rng.sample(NAMES, 6):
        lines = (work.root / name).read_text().splitlines(keepends=True)
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(lines) + 1)
            lines[at : at + rng.randrange(3)] = [f"new {rng.randrange(9)}\n" for _ in range(rng.randrange(3))]
        if rng.random() < 0.3 and lines:
            lines[-1] = lines[-1].rstrip("\n")
        (work.root / name).write_text("".join(lines))
        if rng.random() < 0.3:
            work.git("add", name)
    (work.root / rng.choice(NAMES)).unlink()
    (work.root / "d/e").chmod(0o755) if (work.root / "d/e").exists() else None
    work.put("fresh file", "1\n2")
    work.put("empty", "")
    (work.root / "link").symlink_to("a")
    repository, root, found = work.asked()
    got = {row.path: counts for row, counts in counted(repository, root, found, Memory())}
    for path, (added, removed) in numstat(work, "HEAD").items():
        assert (b"%d" % got[path].additions, b"%d" % got[path].deletions) == (added, removed), path
    patch = diff.patch(repository, root, found, "HEAD", b"")
    os.close(root)
    copy = tmp_path / "copy"
    work.git("worktree", "add", "-q", "--detach", str(copy), "HEAD")
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=copy, input=patch.text.encode(), check=True)
    assert content(copy) == content(work.root)


def content(root: pathlib.Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if name.split("/")[0] == ".git" or (path.is_dir() and not path.is_symlink()):
            continue
        data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        found[name] = (path.lstat().st_mode & 0o170100, data)
    return found
