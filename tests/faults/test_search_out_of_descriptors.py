"""Searches when the server has no descriptor left: the whole answer or a clear error, never a part of it."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kit import Server

CASES = [
    ("glob", {"pattern": "**/*"}, "paths"),
    ("glob", {"pattern": "*", "cwd": "a/b"}, "paths"),
    ("grep", {"pattern": "needle"}, "matches"),
    ("grep", {"pattern": "nee[d]le", "mode": "files"}, "files"),
    ("grep", {"pattern": "needle", "cwd": "a/b/c/far"}, "matches"),
]


@pytest.mark.parametrize(("tool", "arguments", "field"), CASES)
def test_no_descriptor_is_left(serve: Callable[..., Server], tool: str, arguments: dict[str, Any], field: str) -> None:
    """The limit rises by one from what the server holds: at each step the answer is the whole one, or an error."""
    server = serve("--capsule", "off")
    below = server.root / "a/b/c"
    below.mkdir(parents=True)
    for place in (server.root, below.parent, below):
        (place / ".gitignore").write_text("hidden*\n")
        (place / "hidden").write_text("needle\n")
        (place / "far").write_text("needle\n")
        (place / "link").symlink_to("far")
    whole = server.ok(tool, **arguments)
    assert len(whole[field]) >= 1
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    held = sorted(map(int, os.listdir(f"/proc/{pid}/fd")))
    told = False
    for spare in range(20):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (held[-1] + 1 + spare, before[1]))
        status, body = server.tool(tool, **arguments)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        if status == 200:
            assert body == whole
        elif status != 401:  # without a descriptor the token file cannot be read either
            assert status == 500
            assert "too many open files" in body["error"]
            told = True
    assert status == 200
    assert told
    assert server.ok(tool, **arguments) == whole
    assert sorted(map(int, os.listdir(f"/proc/{pid}/fd"))) == held
