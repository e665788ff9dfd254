"""Real trees to compare on, fetched once into a cache outside the work tree; a test skips where it cannot."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable

import pytest

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "toolserver-tests"
DEBIAN_PACKAGE = "git"
NPM_PACKAGE = "express@4"
MINUTES = 5


def run(*command: str, cwd: pathlib.Path) -> str:
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=60 * MINUTES).stdout


def cached(name: str, make: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """Return the folder `name` of the cache, made in a temporary place and moved there when whole."""
    found = CACHE / name
    if found.exists():
        return found
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        made = pathlib.Path(scratch) / "made"
        made.mkdir()
        try:
            make(made)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            said = getattr(error, "stderr", None) or error
            pytest.skip(f"{name} cannot be fetched: {said}")
        made.rename(found)
    return found


def site_packages() -> pathlib.Path:
    """The packages of the environment that runs the tests."""
    return pathlib.Path(sysconfig.get_path("purelib"))


def npm_package() -> pathlib.Path:
    """A package of npm with all it depends on in `node_modules`."""

    def make(where: pathlib.Path) -> None:
        (where / "package.json").write_text('{"name": "tree", "version": "1.0.0", "private": true}')
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        run("npm", "install", *options, NPM_PACKAGE, cwd=where)

    return cached("npm", make)


def debian_source() -> pathlib.Path:
    """A source package of Debian, unpacked: from the archives this system is set up with, their sources turned on."""

    def make(where: pathlib.Path) -> None:
        scratch = where.parent / "apt"
        (scratch / "lists/partial").mkdir(parents=True)
        (scratch / "archives/partial").mkdir(parents=True)
        targets = run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", cwd=scratch)
        lines = {f"deb-src {line}\n" for line in targets.splitlines() if line.endswith(" main") and "debian" in line}
        (scratch / "sources.list").write_text("".join(sorted(lines)))
        options = [
            f"-oDir::Etc::SourceList={scratch}/sources.list",
            "-oDir::Etc::SourceParts=/dev/null",
            f"-oDir::State::Lists={scratch}/lists",
            f"-oDir::Cache={scratch}",
            "-oAPT::Sandbox::User=root",
        ]
        run("apt-get", *options, "update", cwd=scratch)
        run("apt-get", *options, "source", "--download-only", DEBIAN_PACKAGE, cwd=scratch)
        archive = next(scratch.glob("*.orig.tar.*z*"))
        run("tar", "-xf", str(archive), "-C", str(where), "--strip-components=1", cwd=scratch)

    return cached(f"debian-{DEBIAN_PACKAGE}", make)


def copy(tree: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """Copy a tree of the cache, to change it."""
    shutil.copytree(tree, to, symlinks=True)
    return to
