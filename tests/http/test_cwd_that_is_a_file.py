"""A `cwd` that is no directory: the same sentence from every tool that takes one."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kit import Server

DIFF = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
CALLS = [
    ("glob", {"pattern": "*"}),
    ("grep", {"pattern": "a"}),
    ("exec", {"cmd": "true"}),
    ("exec", {"cmd": "true", "detach": True}),
    ("patch", {"diff": DIFF}),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_every_kind_of_file(server: Server, tool: str, arguments: dict[str, Any]) -> None:
    server.put("sub/file", "a\n")
    os.mkfifo(server.root / "sub/fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(server.root / "sub/socket"))
    for kind in ("file", "fifo", "socket"):
        (server.root / f"to-{kind}").symlink_to(f"sub/{kind}")
        (server.root / f"absolute-to-{kind}").symlink_to(server.root / "sub" / kind)
        for cwd in (f"sub/{kind}", f"to-{kind}", f"absolute-to-{kind}", f"{server.root}/sub/{kind}"):
            if tool == "grep" and kind == "file":
                assert server.ok(tool, **arguments, cwd=cwd)["cwd"] == "sub/file"
                continue
            status, body = server.tool(tool, **arguments, cwd=cwd)
            assert (status, body["error"]) == (500, f"{cwd} is a file, not a directory")


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_a_file_on_the_way(server: Server, tool: str, arguments: dict[str, Any]) -> None:
    server.put("file", "a\n")
    status, body = server.tool(tool, **arguments, cwd="file/below")
    assert (status, body["error"]) == (500, "file/below: a part of the path is not a directory")
