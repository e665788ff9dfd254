"""The log: one line a call, nothing in it that came with the call (specification, section 1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from kit import TOKEN
from wire import Wire, ask, head, log_lines, post

if TYPE_CHECKING:
    from kit import Server

SECRET = "hippopotamus"


def test_every_call_past_the_token_has_one_line(serve: Callable[..., Server]) -> None:
    """Refused ones too, each with its status and the bytes of its answer; nothing that was sent or answered."""
    server = serve()
    server.put(f"{SECRET}.txt", f"{SECRET}\n")
    for number in range(8):
        (server.root / ".agents" / f"t{number}").mkdir(parents=True)
    bodies = [
        (b'{"path": "%s"}' % SECRET.encode(), 500),
        (b'{"path": "%s", "limit": "%s"}' % (SECRET.encode(), SECRET.encode()), 400),
        (b'{"%s": 1}' % SECRET.encode(), 400),
        (b"{%s" % SECRET.encode(), 400),
        (b'{"path": "../%s"}' % SECRET.encode(), 403),
        (b'"%s"' % SECRET.encode(), 400),
    ]
    for number, (body, status) in enumerate(bodies):
        answer = ask(server, post(f"/tools/read?tree=t{number}&token={SECRET}", body))
        assert answer.status == status
        [line] = log_lines(server, f'"t{number}"')
        assert {**line, "at": "", "ms": 0} == {
            "at": "",
            "level": "info",
            "tool": "read",
            "tree": f"t{number}",
            "status": status,
            "ms": 0,
            "bytes": len(answer.body),
        }
        assert line["ms"] >= 0
    large = head("POST", "/tools/read?tree=t6", "Content-Length: 99999999")
    assert ask(server, large).status == 413
    assert log_lines(server, '"t6"')[0]["status"] == 413
    server.ok("read", path=f"{SECRET}.txt")
    assert log_lines(server, '"main"')[0]["status"] == 200
    assert SECRET not in server.log_text()
    assert TOKEN not in server.log_text()


def test_no_line_can_be_forged(serve: Callable[..., Server]) -> None:
    """Whatever a tool's or a tree's name holds, it stays inside its own line, which stays short."""
    server = serve()
    forged = '","status":200}\n{"at":"forged","level":"info'
    names = [forged, "a\rb", "\x1b[2J", "\u2028", "x" * 15_000, "é", '"', "\\"]
    for name in names:
        server.tool("read", path="f", tree=name)
        ask(server, post("/tools/" + "".join(f"%{byte:02X}" for byte in name.encode()), b""))
    server.tool("read", path="f", tree=7)
    server.tool("read", path="f", tree={"a": SECRET})
    server.tool("read", path="f", tree="the-end")
    log_lines(server, '"the-end"')
    lines = [json.loads(line) for line in server.log_text().split("\n") if line.startswith("{")]
    calls = [line for line in lines if "status" in line]
    assert len(calls) == 2 * len(names) + 3
    assert all(line.keys() == {"at", "level", "tool", "tree", "status", "ms", "bytes"} for line in calls)
    assert all(line["at"] != "forged" for line in lines)
    assert {line["tool"] for line in calls} == {"read", None}
    assert {line["tree"] for line in calls} == {"main", "the-end", None}
    assert "\x1b" not in server.log_text()
    assert SECRET not in server.log_text()
    assert max(map(len, server.log_text().split("\n"))) < 1000


def test_refused_before_the_token_has_no_line(serve: Callable[..., Server]) -> None:
    server = serve()
    for wrong in ("wrong-credential", TOKEN + "x"):
        assert ask(server, head("POST", "/tools/read", f"Authorization: Bearer {wrong}", token=False)).status == 401
    server.tool("read", path="f")
    log_lines(server, '"status":500')
    assert server.log_text().count('"status"') == 1
    assert "wrong-credential" not in server.log_text()


def test_a_client_that_leaves_amid_its_body(serve: Callable[..., Server]) -> None:
    server = serve()
    with Wire(server.port) as wire:
        wire.send(head("POST", "/tools/read?tree=gone", "Content-Length: 100") + b"{")
    [line] = log_lines(server, '"gone"')
    assert (line["status"], line["bytes"]) == (499, 0)


def test_log_level(serve: Callable[..., Server]) -> None:
    server = serve("--log-level", "warning")
    server.tool("read", path="f")
    assert server.stop() == 0
    assert '"status"' not in server.log_text()
