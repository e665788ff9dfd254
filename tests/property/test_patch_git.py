"""What `git diff` writes of random changes to a tree, applied here and by `git apply`: the same bytes come out."""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolserver.patches import parser, staging
from toolserver.workspace.root import Workspace
from toolserver.writing.writer import Writer

NEUTRAL = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
NAMES = ["f", "a/f", "b/g.txt", "d/my file", 'd/e/quo"te', "d/e/tab\there", "ümlaut/ß", "src/x", "a b/b a", "new\nline"]
WORDS = (b"alpha", b"beta", b"", b"}", b"  tail  ", b"\tx", b"-- sql", b"++ i", b"@@ -1 +1 @@", b"\x0c", b"\\")
Tree = dict[str, tuple[int, bytes]]


def git(folder: pathlib.Path, *args: str, text: bytes | None = None) -> bytes:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *args],
        cwd=folder, env=NEUTRAL, input=text, capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout


def content(chance: random.Random) -> bytes:
    kind = chance.randrange(8)
    if kind == 0:
        return b""
    if kind == 1:
        return chance.randbytes(chance.randrange(1, 3000)) + b"\0"
    lines = [
        chance.choice(WORDS) + (b" %d" % chance.randrange(50) if chance.random() < 0.7 else b"")
        for _ in range(chance.randrange(1, 60))
    ]
    end = b"\r\n" if kind == 2 else b"\n"
    text = end.join(lines)
    return text if kind == 3 else text + end


def edited(before: bytes, chance: random.Random) -> bytes:
    if b"\0" in before:
        at = chance.randrange(len(before))
        return before[:at] + chance.randbytes(chance.randrange(1, 20)) + before[at + chance.randrange(20) :]
    lines = before.splitlines(keepends=True) or [b""]
    end = b"\r\n" if b"\r\n" in before else b"\n"  # lines of a diff without any CR would get the file's ends
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(lines))
        if chance.random() < 0.4 and len(lines) > 1:
            del lines[at : at + chance.randrange(1, 4)]
        else:
            lines.insert(at, b"added %d" % chance.randrange(100) + end)
        lines = lines or [b""]
    text = b"".join(lines)
    if chance.random() < 0.2:
        text = text.removesuffix(end) if text.endswith(end) else text + end
    return text


def changed(tree: Tree, chance: random.Random) -> Tree:
    """Modify, remove, rename, copy, make and re-mode some files."""
    after = dict(tree)
    for name in list(tree):
        mode, data = after[name]
        free = [other for other in NAMES if other not in after]
        match chance.randrange(9):
            case 0:
                del after[name]
            case 1 if free:
                del after[name]
                after[chance.choice(free)] = (mode, data)
            case 2 if free:
                del after[name]
                after[chance.choice(free)] = (mode, edited(data, chance))
            case 3 if free:
                after[chance.choice(free)] = (mode, data)
            case 4:
                after[name] = (0o755 if mode == 0o644 else 0o644, data)
            case 5 | 6:
                after[name] = (mode, edited(data, chance))
    for name in NAMES:
        if name not in after and name not in tree and chance.random() < 0.2:
            after[name] = (chance.choice((0o644, 0o755)), content(chance))
    return after


def put(folder: pathlib.Path, tree: Tree) -> None:
    for entry in folder.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for name, (mode, data) in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)


def taken(folder: pathlib.Path) -> Tree:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).parts[0] not in (".git", ".kd"):
            found[str(path.relative_to(folder))] = (path.stat().st_mode & 0o777, path.read_bytes())
    return found


@contextlib.contextmanager
def folders(*names: str) -> Iterator[list[pathlib.Path]]:
    with tempfile.TemporaryDirectory() as made:
        found = [pathlib.Path(made).resolve() / name for name in names]
        for folder in found:
            folder.mkdir()
        yield found


def apply(folder: pathlib.Path, text: bytes) -> staging.Outcome:
    """Apply a diff as the tool does, without a server."""
    workspace = Workspace(str(folder))
    writer = Writer(workspace.root)
    try:
        diff = parser.read(text)
        with workspace.tree("main") as tree:
            staging.places(tree, b"", diff)
            return writer.apply(tree, lambda batch: staging.stage(batch, b"", diff))
    finally:
        writer.close()


PROSE = [
    b"--- a note", b"+++ another", b"- an item", b"- [ ] x", b"+ one more", b"-----", b"---", b"-- ",
    b"@@ in a sentence", b"@@ -1,2 +1,2 @@", b"@@@ signs", b"  --- a/x", b"  +++ b/x", b"  @@ -1 +1 @@", b"  -a",
    b"  +b", b"index of words", b"new mode of work", b"rename from here to there", b"GIT binary patch",
    b"Binary files a and b differ", b"", b"", b"words",
]  # fmt: skip
"""Lines of messages, most of which begin as lines of a diff do."""


def message(chance: random.Random) -> bytes:
    return b"\n".join([b"subject", b"", *chance.choices(PROSE, k=chance.randrange(12)), b"end", b""])


FORMS = ["-M", "-C", "-C --find-copies-harder", "--no-renames", "-U0", "-U1", "-U10", "--full-index -M50%"]


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def start(repository: pathlib.Path, tree: Tree) -> None:
    git(repository, "init", "-q")
    put(repository, tree)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "--allow-empty", "-m", "one")


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), form=st.sampled_from(FORMS))
def test_same_as_git_apply(seed: int, form: str) -> None:
    chance = random.Random(seed)
    before = {name: (chance.choice((0o644, 0o755)), content(chance)) for name in chance.sample(NAMES, 5)}
    after = changed(before, chance)
    with folders("repository", "ours", "theirs") as (repository, ours, theirs):
        start(repository, before)
        put(repository, after)
        git(repository, "add", "-A")
        text = git(repository, "diff", "--cached", "--binary", *form.split())
        if not text:
            return
        put(ours, before)
        put(theirs, before)
        zero = ["--unidiff-zero"] if form == "-U0" else []
        git(theirs, "apply", *zero, "--whitespace=nowarn", "-", text=text)
        assert taken(theirs) == after
        outcome = apply(ours, text)
        assert taken(ours) == after
        assert outcome.notes == []
        moved = {name for name in {**before, **after} if before.get(name) != after.get(name)}
        assert {os.fsdecode(path) for path in outcome.files} == moved


def takes(folder: pathlib.Path, series: bytes) -> bool:
    try:
        git(folder, "am", "-q", "--keep-cr", text=series)
    except subprocess.CalledProcessError:
        return False
    return True


@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_series_of_mails(seed: int) -> None:
    """A series as `git format-patch` writes it gives what was committed, whatever its messages look like.

    `git am` does so too, but for messages that it takes for a part of the diff.
    """
    chance = random.Random(seed)
    tree = {name: (0o644, content(chance)) for name in chance.sample(NAMES, 5)}
    with folders("repository", "ours", "theirs") as (repository, ours, theirs):
        for folder in (repository, theirs):
            start(folder, tree)
        put(ours, tree)
        for _ in range(3):
            tree = changed(tree, chance)
            put(repository, tree)
            git(repository, "add", "-A")
            git(repository, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "-", text=message(chance))
        first = git(repository, "rev-list", "--max-parents=0", "HEAD").decode().strip()
        series = git(repository, "format-patch", "-q", "--stdout", chance.choice(["-M", "-C"]), first)
        if not series:
            return
        if takes(theirs, series):
            assert taken(theirs) == tree
        outcome = apply(ours, series)
        assert taken(ours) == tree
        assert outcome.notes == []


BLOCKS = [
    b"- one", b"- two", b"+ three", b"-----", b"--- a note\nof mine", b"+++ another\nof yours", b"@@ signs\nof a hunk",
    b"  --- a/x\n  +++ b/x\n  @@ -1 +1 @@\n  -a\n  +b", b"", b"Words:", b"-- \nJohn",
]  # fmt: skip


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=6), st.booleans())
def test_text_between_parts(blocks: list[bytes], git_headers: bool) -> None:
    """After an empty line lists, rules, quoted diffs, halves of headers and @@ are text and change no part."""
    header = b"diff --git a/%s b/%s\n" if git_headers else b""
    part = header + b"--- a/%s\n+++ b/%s\n@@ -1,2 +1,2 @@\n x\n-a\n+b\n"
    one, two = (part.replace(b"%s", name) for name in (b"f", b"g"))
    read = parser.read(b"\n".join([one, *blocks, b"", two])).parts
    assert [found.new.raw for found in read if found.new] == [b"b/f", b"b/g"]
    for found in read:
        assert found.hunks is not None
        assert found.hunks.apply(b"x\na\n\nend\n", 1 << 20) == (b"x\nb\n\nend\n", [])
