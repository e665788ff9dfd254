"""A slow twin of the walk for tests: which files a tree shows, by our rules, and by git itself."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Iterator, Mapping

from toolserver._fast.git_index import Tracked
from toolserver._fast.ignore import Rules
from toolserver.git.rule_files import GitFiles

NEVER = {b".git", b".kd"}


def environment(home: pathlib.Path) -> dict[bytes, bytes]:
    """Return an environment in which git and we see no configuration but what lies in `home`."""
    return {
        b"HOME": os.fsencode(home),
        b"PATH": os.environb[b"PATH"],
        b"GIT_CONFIG_NOSYSTEM": b"1",
        b"XDG_CONFIG_HOME": b"",
        b"GIT_CEILING_DIRECTORIES": os.fsencode(home),
    }


def git(root: pathlib.Path, *args: str, env: Mapping[bytes, bytes], **more: object) -> bytes:
    """Run git in `root` and answer its output."""
    run = subprocess.run(["git", *args], cwd=root, env=env, check=True, capture_output=True, **more)
    output: bytes = run.stdout
    return output


def fill(root: pathlib.Path, files: Mapping[str, bytes]) -> None:
    """Write files below `root`; a name that ends in a slash makes a directory."""
    for name, content in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def git_lists(root: pathlib.Path, env: Mapping[bytes, bytes]) -> list[bytes]:
    """Return what git shows of the work tree: the measure of the specification, less what is gone or no file."""
    found = git(root, "ls-files", "-co", "--exclude-standard", "-z", env=env).split(b"\0")
    top = os.fsencode(root)
    paths = {path for path in found if path}
    return sorted(path for path in paths if _is_entry(os.path.join(top, path)))


def _is_entry(path: bytes) -> bool:
    return os.path.islink(path) or os.path.isfile(path)


def we_list(root: pathlib.Path, env: Mapping[bytes, bytes], files: GitFiles | None = None) -> list[bytes]:
    """Return what our rules show of a tree: files and links of any kind, sorted."""
    fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        rules = (files or GitFiles(env)).now(fd)
        return sorted(_walk(os.fsencode(root), b"", rules.base, rules.tracked, ignored=False))
    finally:
        os.close(fd)


def _walk(top: bytes, directory: bytes, rules: Rules, tracked: Tracked, *, ignored: bool) -> Iterator[bytes]:
    here = os.path.join(top, directory)
    if not ignored:
        rules = rules.push(directory, _rules(here, b".gitignore"), _rules(here, b".ignore"))
    for entry in os.scandir(here):
        path = os.path.join(directory, entry.name)
        is_dir = entry.is_dir(follow_symlinks=False)
        if entry.name in NEVER:
            continue
        hidden = ignored or rules.ignored(directory, entry.name, is_dir)
        if is_dir:
            if not hidden or tracked.below(directory, entry.name):
                yield from _walk(top, path, rules, tracked, ignored=hidden)
        elif not hidden or tracked.file(directory, entry.name):
            yield path


def _rules(directory: bytes, name: bytes) -> bytes | None:
    path = os.path.join(directory, name)
    if os.path.islink(path) or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read()
