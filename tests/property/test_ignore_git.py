"""Generated trees with generated rule files and indexes: what we show is what git shows."""

from __future__ import annotations

import pathlib
import random
import shutil

import pytest
from generatedtrees import a_rule, a_rule_file, a_tree, an_index
from gittrees import environment, git, git_lists, we_list
from hypothesis import given, settings
from hypothesis import strategies as st
from patternmodels import ignored

from toolserver._fast.ignore import BaseRules


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
