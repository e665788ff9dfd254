"""Generated trees with generated rule files and indexes: what we show is what git shows."""

from __future__ import annotations

import os
import pathlib
import random
import re
import shutil

import pytest
from gittrees import environment, git, git_lists, we_list
from hypothesis import given, settings
from hypothesis import strategies as st
from patternmodels import ignored

from toolserver._fast.ignore import BaseRules

_NAMES = "a|b|ab|aa|abc|a.c|b.c|.a|x y|a |#a|!a|a*|[a]|a\\|é|b-|-|a]|^|ba|c|\v|\xa0a"
NAMES = _NAMES.split("|")
_PIECES = (
    "a|b|c|ab|*|*|?|**|**|/|/|/|[ab]|[!a]|[^b]|[a-c]|[]-]|[|\\|\\*|\\?|\\[|.|.c|*.c|a/|!|#| |\\ |[[:alpha:]]|"
    "[[:space:]]|[[:punct:]]|[[:x:]]|[[:alpha]|[\\a-b]|[c-a]|[a-]|[--a]|é|[é]|\\/|\\a|-|]|[/]|[a/]|[!/]|^|\t|\v"
)
PIECES = _PIECES.split("|")
_WHOLE = r"!|/|//||#|  |\|!/|*|!*|!*/|*/|**|/**|**/|**//|/*|a/**|**/a|a/**/b|!**/|.*"
WHOLE = _WHOLE.split("|")


def read_otherwise_before_git_2_52(rule: str) -> bool:
    """Whether literal text stands in front of a `**` that ends a component: older ones take it for a folder's name."""
    return re.match(r"/?[^*?\[\\]*[^*?\[\\/]\*\*+(/|\\/|$)", rule.lstrip("!")) is not None


def a_rule(r: random.Random) -> str:
    if r.random() < 0.1:
        return r.choice(WHOLE)
    rule = "".join(r.choices(PIECES, k=r.randint(1, 6)))
    front = r.choice(["", "", "", "!", "!", "/", "!/"])
    return front + rule + r.choice(["", "", "", "/"])


def a_rule_file(r: random.Random) -> bytes:
    rules = [rule for rule in (a_rule(r) for _ in range(r.randint(1, 5))) if not read_otherwise_before_git_2_52(rule)]
    end = r.choice(["\n"] * 5 + ["\r\n"])
    text = end.join(rules) + r.choice([end, "", "\r"])
    return r.choice([b""] * 11 + [b"\xef\xbb\xbf"]) + text.encode(r.choice(["utf-8"] * 4 + ["latin-1"]))


def a_tree(r: random.Random, folder: pathlib.Path, depth: int = 0) -> None:
    folder.mkdir()
    for name in set(r.choices(NAMES, k=r.randint(1, 7))):
        if r.random() < 0.45 and depth < 3:
            a_tree(r, folder / name, depth + 1)
        elif r.random() < 0.06:
            (folder / name).symlink_to("a")
        else:
            (folder / name).write_bytes(b"")
    if r.random() < 0.4:
        (folder / ".gitignore").write_bytes(a_rule_file(r))


def an_index(r: random.Random, root: pathlib.Path, env: dict[bytes, bytes]) -> None:
    files = [os.fsencode(p.relative_to(root)) for p in sorted(root.rglob("*")) if p.is_symlink() or p.is_file()]
    files = [path for path in files if not path.startswith(b".git/")]
    picked = r.sample(files, min(len(files), r.randint(0, 4)))
    add = ["update-index", "--add", "-z", "--stdin"]
    git(root, *add, env=env, input=b"\0".join(picked))
    form = r.choice(["--index-version=4", "--split-index", "--index-version=2"])
    git(root, "update-index", form, env=env)
    if picked and files:
        git(root, "update-index", "--force-remove", "-z", "--stdin", env=env, input=picked[0])
        git(root, *add, env=env, input=r.choice(files))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("home")


@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**64))
def test_generated_trees(home: pathlib.Path, seed: int) -> None:
    r = random.Random(seed)
    env = environment(home)
    root = home / "tree"
    shutil.rmtree(root, ignore_errors=True)
    a_tree(r, root)
    git(root, "init", "-q", env=env)
    (home / ".config/git").mkdir(parents=True, exist_ok=True)
    for path in (root / ".git/info/exclude", home / ".config/git/ignore"):
        path.write_bytes(a_rule_file(r) if r.random() < 0.5 else b"")
    if r.random() < 0.4:
        an_index(r, root, env)
    assert we_list(root, env) == git_lists(root, env)


PATHS = ["a", "b", "ab", "a/b", "a/ab/b", "b/a.c", ".a", "c/c/c", "a /x y", "[a]", "ab/a/b", "\\a", "a/\xe9", "-/]"]


@settings(max_examples=600, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**64))
def test_rule_files_against_the_model(seed: int) -> None:
    """The model knows the reading of `a**/b` that the installed git may not have yet."""
    r = random.Random(seed)
    text = "\n".join(a_rule(r) for _ in range(r.randint(1, 8))).encode("latin-1")
    rules = BaseRules().push(b"", text)
    for path in PATHS:
        directory, _, name = path.encode("latin-1").rpartition(b"/")
        for is_dir in (False, True):
            assert rules.ignored(directory, name, is_dir) == ignored(text, path, is_dir), (text, path, is_dir)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**64), count=st.integers(60, 300))
def test_large_rule_files_against_the_model(seed: int, count: int) -> None:
    """Many rules are asked through tables; the answer is that of asking them one by one."""
    r = random.Random(seed)
    text = "\n".join(a_rule(r) for _ in range(count)).encode("latin-1")
    rules = BaseRules().push(b"", text)
    for path in PATHS:
        directory, _, name = path.encode("latin-1").rpartition(b"/")
        assert rules.ignored(directory, name, False) == ignored(text, path, False), (text, path)
