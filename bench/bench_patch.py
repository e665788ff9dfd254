"""patch over HTTP and its kernel alone, beside `git apply` and GNU patch; the root lies on tmpfs."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import inputs
import mistakes
import pytest
from serving import Served, serving
from sidebyside import side_by_side

from toolserver.patches import parser

MIB = 1024 * 1024
TMPFS = "/dev/shm"
NEUTRAL = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


@pytest.fixture
def root() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-", dir=TMPFS) as made:
        yield pathlib.Path(made)


@pytest.fixture
def server(root: pathlib.Path) -> Iterator[Served]:
    with serving(root) as served:
        yield served


def changed(text: bytes, edits: int, seed: int) -> bytes:
    """Change so many lines of a text, evenly spread, a few by more than their words."""
    lines = text.splitlines(keepends=True)
    chance = random.Random(seed)
    step = len(lines) // edits
    for number in range(edits):
        at = number * step + chance.randrange(max(step - 8, 1))
        kind = chance.randrange(4)
        lines[at] = b"" if kind == 0 else lines[at][:-1] + b" /* %d */\n" % number + (b"more\n" if kind == 1 else b"")
    return b"".join(lines)


def made_diff(before: bytes, after: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for side, content in (("a", before), ("b", after)):
            (pathlib.Path(folder) / side).write_bytes(content)
        text = subprocess.run(
            ["git", "diff", "--no-index", "a", "b"], cwd=folder, env=NEUTRAL, capture_output=True
        ).stdout.decode()
    return text.replace("a/a", "a/f.c").replace("b/b", "b/f.c")


class Toggle:
    """A file that a diff and its way back are applied to in turn, so that every run is one patch and nothing else."""

    def __init__(self, path: pathlib.Path, contents: tuple[bytes, bytes], apply: Callable[[int], object]) -> None:
        self.path = path
        self.contents = contents
        self.apply = apply
        self.state = 0
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(contents[0])

    def __call__(self) -> None:
        self.apply(self.state)
        self.state ^= 1

    def check(self) -> None:
        assert self.path.read_bytes() == self.contents[self.state]


def compare(
    benchmark: Any, server: Served, root: pathlib.Path, contents: tuple[bytes, bytes], *,
    rounds: int, against: tuple[str, ...], bound: float | None, in_a_row: int = 1,
) -> None:  # fmt: skip
    """Time ours and both programs on the same file, each in a folder of its own on the same tmpfs."""
    texts = (made_diff(*contents), made_diff(*contents[::-1]))
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-", dir=TMPFS) as made:
        aside = pathlib.Path(made)
        for number, text in enumerate(texts):
            (aside / f"{number}.diff").write_text(text)

        def program(*argv: str) -> Toggle:
            folder = aside / argv[0]

            def apply(state: int) -> None:
                argument = [str(aside / f"{state}.diff")]
                subprocess.run([*argv, *argument], cwd=folder, env=NEUTRAL, check=True, stdout=subprocess.DEVNULL)

            return Toggle(folder / "f.c", contents, apply)

        ours = Toggle(root / "f.c", contents, lambda state: server.connection.post("patch", diff=texts[state]))
        anchors = {"git apply": program("git", "apply"), "GNU patch": program("patch", "-p1", "-s", "-i")}
        benchmark.group = "patch"
        side_by_side(
            benchmark, ours, dict(anchors), rounds=rounds, bound=bound, against=against, in_a_row=in_a_row,
            facts={"hunks": texts[0].count("\n@@ "), "file bytes": len(contents[0]), "diff bytes": len(texts[0])},
        )  # fmt: skip
        for toggle in (ours, *anchors.values()):
            toggle.check()


@pytest.mark.parametrize(
    ("in_a_row", "rounds", "bound"), [(10, 40, 0.5), (1, 200, None)], ids=["ten in a row", "one by one"]
)
def test_one_hunk(
    benchmark: Any, server: Served, root: pathlib.Path, in_a_row: int, rounds: int, bound: float | None
) -> None:
    """A patch of one hunk; the bound holds for ten in a row, and one between other programs' runs is shown beside."""
    before = inputs.source_text(20_000, seed=4)
    contents = (before, changed(before, 1, 5))
    against = ("git apply", "GNU patch")
    compare(benchmark, server, root, contents, rounds=rounds, against=against, bound=bound, in_a_row=in_a_row)


@pytest.mark.parametrize(("against", "bound"), [("git apply", 0.02), ("GNU patch", 1.0)])
def test_5000_hunks_in_10_mib(benchmark: Any, server: Served, root: pathlib.Path, against: str, bound: float) -> None:
    before = inputs.source_text(10 * MIB - 200_000, seed=6)
    compare(benchmark, server, root, (before, changed(before, 5000, 7)), rounds=5, against=(against,), bound=bound)


@pytest.mark.parametrize("hunks", [50, 500, 5000])
@pytest.mark.parametrize("stated", ["the right lines", "line 1"])
def test_growth_of_the_kernel(benchmark: Any, hunks: int, stated: str) -> None:
    """Reading and placing alone, with the right lines and with all hunks at line 1."""
    before = inputs.source_text(hunks * 2000, seed=8)
    after = changed(before, hunks, 9)
    text = made_diff(before, after).encode()
    if stated == "line 1":
        text = mistakes.at_line_one(text, random.Random(1))

    def kernel() -> bytes:
        (part,) = parser.read(text).parts
        assert part.hunks is not None
        return part.hunks.apply(before, 20 * MIB)[0]

    assert kernel() == after
    benchmark.group = f"patch, the kernel alone, stated at {stated}"
    benchmark.extra_info["facts"] = {"hunks placed": hunks, "file bytes": len(before)}
    benchmark.pedantic(kernel, rounds=10, warmup_rounds=1)
