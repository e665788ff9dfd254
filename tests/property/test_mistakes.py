"""Diffs with one mistake in each, as models make them: applied as they were meant or refused, never wrongly."""

from __future__ import annotations

import argparse
import pathlib
import sys
import sysconfig

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

import mistakes


def test_nothing_wrong() -> None:
    """By lines of context at least the share of right ones that is promised, and none that is wrong."""
    stdlib = sysconfig.get_paths()["stdlib"]
    options = argparse.Namespace(cases=40, seed=7, files=f"{stdlib}/asyncio", suffix=".py", work=None, only="ours")
    told: list[str] = []
    counts = mistakes.run(options, told.append)
    for context, share in ((3, 0.99), (1, 0.95)):
        found = [counted for key, counted in counts.items() if key[0] == context]
        total = sum(sum(counted.values()) for counted in found)
        assert total > 500
        assert sum(counted["wrong"] for counted in found) == 0, told
        assert sum(counted["right"] for counted in found) >= share * total, told
