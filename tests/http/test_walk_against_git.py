"""Generated trees over HTTP: glob shows the files that git shows, from the root and from any folder that git shows."""

from __future__ import annotations

import os
import pathlib
import random
import shutil
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from generatedtrees import a_rule_file, a_tree, an_index
from gittrees import environment, git, git_lists

if TYPE_CHECKING:
    from kit import Server


def real_files(root: pathlib.Path, paths: list[bytes]) -> list[str]:
    """Of what git shows, what a tool shows too: git lists links that lead nowhere or to folders as well."""
    return sorted(os.fsdecode(path) for path in paths if (root / os.fsdecode(path)).is_file())


def hidden(root: pathlib.Path, folder: str, env: dict[bytes, bytes]) -> bool:
    """Whether a rule of git hides a folder, or one above it."""
    command = ["git", "check-ignore", "-q", "--no-index", "--", folder]
    return subprocess.run(command, cwd=root, env=env, check=False).returncode == 0


@pytest.mark.parametrize("start", [0, 1000])
def test_glob_shows_what_git_shows(serve: Callable[..., Server], tmp_path: pathlib.Path, start: int) -> None:
    env = environment(tmp_path)
    root = tmp_path / "root"
    root.mkdir()
    server = serve(root=root, env={os.fsdecode(key): os.fsdecode(value) for key, value in env.items()})
    (tmp_path / ".config/git").mkdir(parents=True)
    for seed in range(start, start + 25):
        r = random.Random(seed)
        server.empty()
        a_tree(r, root / "top")
        for entry in (root / "top").iterdir():
            entry.rename(root / entry.name)
        shutil.rmtree(root / "top")
        git(root, "init", "-q", env=env)
        for path in (root / ".git/info/exclude", tmp_path / ".config/git/ignore"):
            path.write_bytes(a_rule_file(r) if r.random() < 0.5 else b"")
        if seed % 2:
            an_index(r, root, env)
        want = real_files(root, git_lists(root, env))
        assert sorted(server.ok("glob", pattern="**/*")["paths"]) == want, seed
        for folder in sorted({os.path.dirname(path) for path in want} - {""}):
            below = [path for path in want if path.startswith(folder + "/")]
            if hidden(root, folder, env):  # then all of it is searched
                below = real_files(root, [os.fsencode(p.relative_to(root)) for p in (root / folder).rglob("*")])
            assert sorted(server.ok("glob", pattern="*", cwd=folder)["paths"]) == below, (seed, folder)
