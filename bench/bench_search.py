"""First searches of the Linux source over HTTP, the page cache warm, beside the tools a shell user has."""

from __future__ import annotations

import pathlib
from typing import Any

import inputs
import pytest
from baseline import baseline_glob, baseline_grep
from serving import Served, drained
from sidebyside import side_by_side

NOTHING = "zqxjkv_no_such_word"
FIVE_WORDS = r"\w{5}\s+\w{5}\s+\w{5}\s+\w{5}\s+\w{5}"
GREPS = [
    pytest.param({"pattern": NOTHING}, 0.85, id="literal-no-hit"),
    pytest.param({"pattern": "skb_gso_cb", "ignore_case": True}, 0.90, id="ignore-case-literal"),
    pytest.param({"pattern": "[A-Z]+_RESUME", "mode": "count"}, 0.90, id="regex-with-literal"),
    pytest.param({"pattern": "TODO|FIXME|XXX", "mode": "count"}, 0.90, id="alternatives-count"),
    pytest.param({"pattern": FIVE_WORDS, "mode": "count"}, 1.30, id="no-literal-count"),
]


@pytest.fixture(scope="module")
def tree() -> pathlib.Path:
    return inputs.linux()


class Fresh:
    """A server that is started anew before each round."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.server: Served | None = None

    def start(self) -> None:
        self.server = Served(self.root)

    def stop(self) -> None:
        assert self.server
        self.server.stop()
        self.server = None

    def ask(self, tool: str, question: dict[str, Any]) -> bytes:
        assert self.server
        return self.server.connection.post(tool, **question)


def rg_flags(question: dict[str, Any]) -> list[str]:
    """The same question to ripgrep: hidden files too, ignore files without a repository, no user configuration."""
    flags = ["--no-config", "--hidden", "--no-require-git", "--max-filesize=10M"]
    flags += ["-c"] if question.get("mode") == "count" else ["-n"]
    flags += ["-i"] if question.get("ignore_case") else []
    return [*flags, "-e", question["pattern"], "."]


@pytest.mark.parametrize(("question", "bound"), GREPS)
def test_grep(benchmark: Any, tree: pathlib.Path, question: dict[str, Any], bound: float) -> None:
    """grep of the whole tree: against ripgrep 15, with Debian's ripgrep shown beside it."""
    fresh = Fresh(tree)
    flags = rg_flags(question)
    benchmark.group = "grep, Linux source, first search"
    side_by_side(
        benchmark,
        lambda: fresh.ask("grep", question),
        {
            "ripgrep 15": lambda: drained(inputs.ripgrep(), *flags, cwd=tree),
            "ripgrep (Debian)": lambda: drained(inputs.program("rg"), *flags, cwd=tree),
        },
        rounds=9,
        bound=bound,
        against=("ripgrep 15",),
        before=fresh.start,
        after=fresh.stop,
    )


def test_glob(benchmark: Any, tree: pathlib.Path) -> None:
    """glob of one ending: against fd and ripgrep's file list, the faster."""
    fresh = Fresh(tree)
    listing = ["--no-config", "--hidden", "--no-require-git", "--files", "-g", "*.c"]
    fd = inputs.program("fdfind", "fd")
    benchmark.group = "glob, Linux source, first search"
    side_by_side(
        benchmark,
        lambda: fresh.ask("glob", {"pattern": "**/*.c"}),
        {
            "fd": lambda: drained(fd, "-H", "-e", "c", cwd=tree),
            "ripgrep 15 --files": lambda: drained(inputs.ripgrep(), *listing, cwd=tree),
        },
        rounds=11,
        bound=0.40,
        before=fresh.start,
        after=fresh.stop,
    )


def test_grep_beside_others(benchmark: Any, tree: pathlib.Path) -> None:
    """The literal without a hit once more, beside everything else that searches; shown without a bound."""
    fresh = Fresh(tree)
    benchmark.group = "grep, Linux source, others"
    side_by_side(
        benchmark,
        lambda: fresh.ask("grep", {"pattern": NOTHING}),
        {
            "git grep --no-index": lambda: drained(
                inputs.program("git"), "grep", "--no-index", "-nF", NOTHING, cwd=tree
            ),
            "GNU grep -r": lambda: drained(inputs.program("grep"), "-rnF", NOTHING, ".", cwd=tree),
            "ugrep": lambda: drained(inputs.program("ugrep"), "-rnF", NOTHING, ".", cwd=tree),
            "pure Python": lambda: baseline_grep(tree, NOTHING),
        },
        rounds=3,
        before=fresh.start,
        after=fresh.stop,
    )


def test_glob_beside_pure_python(benchmark: Any, tree: pathlib.Path) -> None:
    """glob beside pathspec and os.scandir; shown without a bound."""
    fresh = Fresh(tree)
    benchmark.group = "glob, Linux source, others"
    side_by_side(
        benchmark,
        lambda: fresh.ask("glob", {"pattern": "**/*.c"}),
        {"pure Python": lambda: baseline_glob(tree, "*.c")},
        rounds=3,
        before=fresh.start,
        after=fresh.stop,
    )
