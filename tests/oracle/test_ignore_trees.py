"""Real trees, their own rule files and some widespread ones: what we show is what git shows."""

from __future__ import annotations

import os
import pathlib
import random
import re

import pytest
from gittrees import environment, git, git_lists, we_list
from realtrees import copy, debian_source, npm_package, site_packages

EXCLUDES = {
    "python": "__pycache__/\n*.py[cod]\n*$py.class\n*.so\n/lib/\n*.egg-info/\n!pip*/\n*.dist-info/*\n"
    "!*.dist-info/RECORD\n",
    "node": "dist/\n*.map\n.nyc_output\n**/test/**\n!**/test/index.js\n/node_modules/*/lib\n*.md\n!README.md\n",
    "editors": "*~\n.*.sw[a-p]\n\\#*\\#\n.\\#*\n[._]*\n!.gitignore\nTags\n*.[oa]\n",
    "a-few-kept": "*\n!*/\n!*.py\n!*.c\n!/*.md\n",
    "folders": "/*/\n!/docs\n!/pip\n!/node_modules\ncontrib/**/t\n**/src/**/*.h\n",
}


def lines_of(tree: pathlib.Path) -> list[tuple[pathlib.Path, str]]:
    found = []
    for file in sorted(tree.rglob(".gitignore")):
        if file.is_file() and not file.is_symlink():
            found += [(file.parent, line) for line in file.read_text(errors="replace").splitlines()]
    return found


def grow(tree: pathlib.Path, r: random.Random) -> None:
    """Make, beside what a tree comes with, files that its own rules speak of, and some that nearly fit."""
    for folder, line in lines_of(tree):
        name = re.sub(r"\[(.)[^]]*\]", r"\1", line.lstrip("!").strip()).replace("*", "x").replace("?", "y")
        name = name.replace("\\", "").strip("/")
        if not name or name.startswith("#") or len(name) > 100:
            continue
        for path in (folder / name, folder / r.choice(["deep", "other/deep"]) / name, folder / (name + "z")):
            if not any(part.exists() and not part.is_dir() for part in (path, *path.parents)) and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"")


@pytest.mark.parametrize("rules", EXCLUDES)
def test_site_packages(rules: str, tmp_path: pathlib.Path) -> None:
    tree = site_packages()
    env = environment(tmp_path)
    (tmp_path / ".config/git").mkdir(parents=True)
    (tmp_path / ".config/git/ignore").write_text(EXCLUDES[rules])
    git(tmp_path, "init", "-q", "repository", env=env)
    own = {**env, b"GIT_DIR": os.fsencode(tmp_path / "repository/.git"), b"GIT_WORK_TREE": os.fsencode(tree)}
    shown = we_list(tree, env)
    assert shown == git_lists(tree, own)
    assert len(shown) > 20


@pytest.mark.parametrize("source", [npm_package, debian_source], ids=["npm", "debian"])
def test_fetched_trees(source: object, tmp_path: pathlib.Path) -> None:
    assert callable(source)
    tree = copy(source(), tmp_path / "tree")
    r = random.Random(1)
    grow(tree, r)
    env = environment(tmp_path)
    git(tree, "init", "-q", env=env)
    everything = we_list(tree, env)
    assert everything == git_lists(tree, env)
    (tmp_path / ".config/git").mkdir(parents=True)
    for rules in EXCLUDES.values():
        (tmp_path / ".config/git/ignore").write_text(rules)
        assert we_list(tree, env) == git_lists(tree, env)
    (tree / ".ignore").write_text("!*\n")
    assert len(we_list(tree, env)) > len(everything) // 2
    (tree / ".ignore").unlink()
    paths = [os.path.relpath(path, tree) for path in tree.rglob("*") if path.is_file() or path.is_symlink()]
    picked = r.sample(sorted(path for path in paths if not path.startswith(".git/")), len(paths) // 3)
    git(tree, "update-index", "--add", "-z", "--stdin", env=env, input="\0".join(picked).encode())
    for form in ("--index-version=4", "--split-index"):
        git(tree, "update-index", form, env=env)
        shown = we_list(tree, env)
        assert shown == git_lists(tree, env)
        assert len(shown) >= len(picked)
