"""Commands when the server has no descriptor left: a clear error, nothing started, nothing leaked."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kit import Server


@pytest.mark.parametrize("more", [{}, {"detach": True}, {"pty": True}, {"cmd": ["touch", "made"]}])
def test_no_descriptor_is_left(serve: Callable[..., Server], more: dict[str, object]) -> None:
    server = serve("--capsule", "off")
    server.ok("process_wait", id=server.ok("exec", cmd="true", detach=True)["id"])
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir(f"/proc/{pid}/fd")))
    held = sorted(os.listdir(f"/proc/{pid}/fd"))
    # the call itself needs some descriptors, so one spare after another: at each step either it runs, or it says why
    for spare in range(14):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 1 + spare, before[1]))
        status, body = server.tool("exec", **{"cmd": "touch made", **more})
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        if status == 200:
            break
        assert status in (401, 500), body  # without a descriptor the token file cannot be read either
        assert "internal error" not in body["error"]
        assert not (server.root / "made").exists()
    else:
        pytest.fail(f"it never ran: {status} {body}")
    if "detach" in more:
        server.ok("process_wait", id=body["id"])
    assert (server.root / "made").exists()
    assert server.ok("exec", cmd="echo fine")["stdout"] == "fine\n"
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == held
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        assert file.read() == ""
