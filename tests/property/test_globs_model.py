"""Generated globs against a model of the dialect, and against ripgrep where it reads them alike."""

from __future__ import annotations

import contextlib
import pathlib
import random
import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patternmodels import expand, glob

from toolserver._fast.globs import Glob

_PIECES = (
    r"a|b|c|ab|.|*|*|?|**|**/|/**|/|/|[ab]|[!a]|[^b-c]|[a-c]|[]a]|[a-]|é|[é-ü]|\*|\[|\{|\a|-|].c|"
    r"{a,b}|{,c}|{a/,b}|{a,{b,c}}"
)
PIECES = _PIECES.split("|")
_PATHS = (
    "a b ab a.c x.c é éa a/b a/ab a/b/c b/a.c a/b/c/a c/a/b .a ].c a] * [a ab/a/ab c/c/c/c ö/a - a- aé/b { "
    "b/b b/c/a aa bb/b"
)
PATHS = _PATHS.split()


def a_glob(r: random.Random, pieces: list[str]) -> str:
    return r.choice(["", "", "", "/", "./"]) + "".join(r.choices(pieces, k=r.randint(1, 6))) + r.choice(["", "", "/"])


def plain(pattern: str) -> bool:
    """Whether `**` means the same before and after the braces are multiplied out, and so in the model."""
    if any(re.search(r"\*\0+\*", one) for one in expand(pattern, "\0")):
        return False  # two of `*` that only meet then
    return all(
        not re.search(r"[^/]\*\*(/|$)|(^|/)\*\*[^/]|\*\*\*", one) for one in [pattern, *expand(pattern)]
    ) and not re.search(r"[,{]/|[{,]\./|/[},]|\}\*\*\{", pattern)


def matches(compiled: Glob, path: str) -> bool:
    directory, _, name = path.encode().rpartition(b"/")
    found = compiled.match(directory, name)
    while found and directory:
        assert compiled.may_match_below(directory), directory
        directory = directory.rpartition(b"/")[0]
    return found


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**64))
def test_against_the_model(seed: int) -> None:
    pattern = a_glob(random.Random(seed), PIECES)
    if not plain(pattern):
        return
    compiled = Glob(pattern.encode())
    assert [p for p in PATHS if matches(compiled, p)] == [p for p in PATHS if glob(pattern, p)], pattern


@given(st.binary(max_size=40))
@settings(max_examples=500, deadline=None, derandomize=True)
def test_any_bytes_are_a_glob_or_an_error(pattern: bytes) -> None:
    with contextlib.suppress(ValueError):
        compiled = Glob(pattern)
        for path in PATHS:
            matches(compiled, path)


# left out is what ripgrep reads otherwise: bytes for characters, `[!a]` for a slash, empty and nested braces, `x/`
_ALIKE = "a|b|c|ab|.|*|*|?|**/|/**|/|[ab]|[a-c]|{a,b}|{c,ab,a}"
ALIKE = _ALIKE.split("|")


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**64))
def test_against_ripgrep(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    root = tmp_path_factory.getbasetemp() / "ripgrep"
    if not root.exists():
        for path in PATHS:
            file = root / path
            if not file.is_dir():
                _make(file)
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and str(path).isascii())
    r = random.Random(seed)
    pattern = r.choice(["", "", "/"]) + "".join(r.choices(ALIKE, k=r.randint(1, 5)))
    if not plain(pattern) or pattern.endswith("/") or "//" in pattern or any("//" in one for one in expand(pattern)):
        return
    command = ["rg", "--files", "--hidden", "--no-ignore", "--no-config", "--glob", pattern]
    run = subprocess.run(command, cwd=root, capture_output=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    compiled = Glob(pattern.encode())
    assert [p for p in files if matches(compiled, p)] == [p for p in files if p in run.stdout.decode().split("\n")], (
        pattern
    )


def _make(file: pathlib.Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    except (FileExistsError, NotADirectoryError):
        pass  # a file of that name stands in the way of a folder; the other paths are enough
