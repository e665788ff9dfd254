"""How first searches grow with the number of files: 10 000, 100 000, 1 000 000."""

from __future__ import annotations

import functools
from typing import Any

import inputs
import pytest
from serving import drained, serving
from sidebyside import clocked, record

SIZES = [10_000, 100_000, 1_000_000]
MEMORY_BASE = 300 * 1024 * 1024
MEMORY_A_FILE = 512
NOTHING = "zqxjkv_no_such_word"


@pytest.mark.parametrize("files", SIZES)
@pytest.mark.parametrize("tool", ["grep", "glob"])
def test_growth(benchmark: Any, tool: str, files: int) -> None:
    """Seconds and peak memory beside ripgrep on the same tree; memory has a bound, the growth is read off the plot."""
    tree = inputs.generated(files)
    question = {"pattern": NOTHING} if tool == "grep" else {"pattern": "*.py"}
    flags = ["-n", "-e", NOTHING, "."] if tool == "grep" else ["--files", "-g", "*.py"]
    rg = inputs.ripgrep()
    drained(rg, "--no-config", "--hidden", *flags, cwd=tree)  # bring the tree into the page cache
    own, theirs, memory = [], [], 0
    for _ in range(3):
        theirs.append(clocked(lambda: drained(rg, "--no-config", "--hidden", *flags, cwd=tree)))
        with serving(tree) as server:
            own.append(clocked(functools.partial(server.connection.post, tool, **question)))
            memory = max(memory, server.memory())
    benchmark.group = f"growth of {tool}"
    with serving(tree) as server:
        benchmark.pedantic(lambda: server.connection.post(tool, **question), rounds=1, iterations=1)
    allowed = MEMORY_BASE + MEMORY_A_FILE * files
    facts = {"files": files, "peak memory": memory, "memory allowed": allowed, "memory holds": memory <= allowed}
    record(benchmark, own, {"ripgrep 15": theirs}, bound=None, facts=facts)
