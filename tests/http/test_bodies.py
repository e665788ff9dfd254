"""Bodies: their size, their speed, their JSON (specification, section 2)."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import pathlib
import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from kit import TOKEN
from wire import Wire, ask, head, post

if TYPE_CHECKING:
    from kit import Server

LIMIT = 14_680_064
CHUNKED = "Transfer-Encoding: chunked"


def peak(server: Server) -> int:
    """The most memory that the server has had so far, in bytes."""
    [line] = re.findall(r"VmHWM:\s*(\d+) kB", pathlib.Path(f"/proc/{server.process.pid}/status").read_text())
    return int(line) * 1024


def padded(size: int) -> bytes:
    """A read of `f` of exactly that many bytes."""
    start, end = b'{"path": "f", "padding": "', b'"}'
    return start + b"p" * (size - len(start) - len(end)) + end


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("length", [True, False], ids=["Content-Length", "chunked"])
def test_the_limit(server: Server, over: int, length: bool) -> None:
    """14 MiB are taken, one byte more is not; a client that sends all of it before it reads gets the answer too."""
    server.put("f", "here\n")
    body = padded(LIMIT + over)
    with Wire(server.port) as wire:
        if length:
            wire.send(post("/tools/read", body))
        else:
            pieces = [body[at : at + 1_000_000] for at in range(0, len(body), 1_000_000)]
            wire.send(head("POST", "/tools/read", CHUNKED) + b"".join(map(chunk, pieces)) + b"0\r\n\r\n")
        answer = wire.answer()
        assert answer.status == (413 if over else 200)
        if over:
            assert str(LIMIT) in answer.error
        # what was not read does not turn up as the next request
        wire.send(head("GET", "/healthz", token=False))
        assert wire.answer().status == 200


def test_the_413_comes_while_the_client_still_sends(server: Server) -> None:
    """And what follows is not kept: the server's memory stays where it was."""

    def resident() -> int:
        with open(f"/proc/{server.process.pid}/statm") as file:
            return int(file.read().split()[1]) * 4096

    filler = chunk(b"p" * 1_000_000)
    with Wire(server.port) as wire:
        wire.send(head("POST", "/tools/read", CHUNKED))
        sent = 0
        while not wire.answered():
            wire.send(filler)
            sent += 1
            assert sent < 100
        assert wire.answer().status == 413
        before = resident()
        for _ in range(100):
            wire.send(filler)
        assert resident() - before < 50_000_000


@pytest.mark.parametrize(("token", "status"), [(True, 413), (False, 401)])
def test_no_100_continue_for_a_body_nobody_wants(server: Server, token: bool, status: int) -> None:
    lines = (f"Content-Length: {LIMIT + 1}", "Expect: 100-continue")
    assert ask(server, head("POST", "/tools/read", *lines, token=token)).status == status


def test_100_continue(server: Server) -> None:
    server.put("f", "here\n")
    body = b'{"path": "f"}'
    with Wire(server.port) as wire:
        wire.send(head("POST", "/tools/read", f"Content-Length: {len(body)}", "Expect: 100-continue"))
        assert wire.answer(bodyless=True).status == 100
        wire.send(body)
        assert wire.answer().json["content"] == "1\there"


def test_a_body_byte_by_byte_holds_up_nobody(server: Server) -> None:
    """While bodies and heads trickle in, others are answered; the slow ones are in the end too."""
    server.put("f", "here\n")
    request = post("/tools/read", b'{"path": "f"}')
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(Wire(server.port)) for _ in range(20)]
        for byte in range(len(request)):
            for wire in slow:
                wire.send(request[byte : byte + 1])
            if byte % 10 == 0:
                assert server.ok("read", path="f")["content"] == "1\there"
        for wire in slow:
            assert wire.answer().json["content"] == "1\there"


def test_two_hundred_connections_at_once(server: Server) -> None:
    """All open before any is used, all answered, none mixed up with another."""
    for number in range(200):
        server.put(f"f{number}", f"line of {number}\n")
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(server.port)) for _ in range(200)]
        for _ in range(3):
            for number, wire in enumerate(wires):
                wire.send(post("/tools/read", b'{"path": "f%d"}' % number))
            for number, wire in enumerate(wires):
                assert wire.answer().json["content"] == f"1\tline of {number}"


def test_parallel_clients(server: Server) -> None:
    for number in range(32):
        server.put(f"f{number}", f"{number}\n" * 100)

    def calls(number: int) -> int:
        with Wire(server.port) as wire:
            for _ in range(20):
                wire.send(post("/tools/read", b'{"path": "f%d", "limit": 1}' % number))
                assert wire.answer().json["content"] == f"1\t{number}"
        return number

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert sorted(pool.map(calls, range(32))) == list(range(32))


def test_pipelined_requests(server: Server) -> None:
    """Answered in order, refusals among them."""
    for name in "abc":
        server.put(name, name)
    with Wire(server.port) as wire:
        wire.send(
            post("/tools/read", b'{"path": "a"}')
            + post("/tools/none", b"{}")
            + post("/tools/read", b'{"path": "b"}')
            + head("GET", "/nothing")
            + post("/tools/read", b'{"path": "c"}')
        )
        answers = [wire.answer() for _ in range(5)]
    assert [answer.status for answer in answers] == [200, 404, 200, 404, 200]
    assert [answers[at].json["content"] for at in (0, 2, 4)] == ["1\ta", "1\tb", "1\tc"]


@pytest.mark.parametrize(("version", "line"), [("1.0", ""), ("1.1", "Connection: close\r\n")])
@pytest.mark.parametrize("target", ["/healthz", "/tools/none"])
def test_a_connection_for_one_request(server: Server, version: str, line: str, target: str) -> None:
    with Wire(server.port) as wire:
        method = "GET" if target == "/healthz" else "POST"
        wire.send(f"{method} {target} HTTP/{version}\r\nAuthorization: Bearer {TOKEN}\r\n{line}\r\n".encode())
        assert wire.answer().headers["connection"] == ["close"]
        assert wire.ends()


@pytest.mark.parametrize(
    "body",
    [
        b'{"path": NaN}',
        b'{"path": "f", "x": Infinity}',
        b'{"path": "f", "x": -Infinity}',
        '{"path": "f"}'.encode("utf-16"),
        '{"path": "f"}'.encode("utf-16-le"),
        '{"path": "f"}'.encode("utf-32"),
        b'{"path": "f"} {}',
        b'{"path": "f"}\0',
        b'{"path": "\xc3\x28"}',
        b'{"path": "\xed\xa0\x80"}',
        b'{"path": "\\ud800"}',
        b'{"path": "f", "x": "\\udc00\\ud800"}',
        b'{"path": "f", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"path": "f", "x": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
        b'{"path": "f", "x": 01}',
        b'{"path": "f", "x": +1}',
        b'{"path": "f", "x": .5}',
        b'{"path": "f", "x": 0x10}',
        b'{"path": "f" /* c */}',
        b'{"path": "f",}',
        b'{"path": "f", "path"}',
        b'{"path": "a\nb"}',
        b" ",
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda body: repr(body[:30]),
)
def test_not_json(server: Server, body: bytes) -> None:
    """RFC 8259 in UTF-8, nothing else."""
    server.put("f", "here\n")
    answer = ask(server, post("/tools/read", body))
    assert answer.status == 400
    assert "JSON" in answer.error
    assert len(answer.body) < 1000


@pytest.mark.parametrize("text", ["[" * 100_000, '["\\ud800"]', "[NaN]", '["f"] x', "\x00"])
def test_not_json_in_a_string(server: Server, text: str) -> None:
    status, answer = server.tool("read", paths=text)
    assert status == 400
    assert "paths" in answer["error"]
    assert "array" in answer["error"]


def test_json_of_any_spelling(server: Server) -> None:
    server.put("é😀", "here\n")
    for body in (b'{"path": "\\u00e9\\ud83d\\ude00"}', '\r\n\t {"path":"é😀"}\n'.encode()):
        assert ask(server, post("/tools/read", body)).json["content"] == "1\there"


def test_half_a_request_is_dropped_without_a_word(server: Server, serve: Callable[..., Server]) -> None:
    """A client that goes in the middle of its body leaves nothing behind."""
    own = serve()
    own.put("f", "here\n")
    for piece in (b"POST /tools/re", post("/tools/read", b'{"path": "f"}')[:-5]):
        with Wire(own.port) as wire:
            wire.send(piece)
            wire.socket.shutdown(socket.SHUT_RDWR)
    assert own.ok("read", path="f")["content"] == "1\there"
    assert "trace" not in own.log_text()


VALUES = 200_000


@pytest.mark.parametrize("over", [0, 1])
def test_values_of_a_body(server: Server, over: int) -> None:
    """The object, its path, the array and what is in it; names of members are no values."""
    server.put("f", "here\n")
    body = b'{"path": "f", "x": [' + b",".join([b"1"] * (VALUES - 3 + over)) + b"]}"
    answer = ask(server, post("/tools/read", body))
    assert answer.status == (400 if over else 200)
    if over:
        assert answer.error == f"the body: expected at most {VALUES} JSON values"


def test_what_is_in_a_string_is_no_value(server: Server) -> None:
    """A file of a million commas, brackets and quotes is written like any other."""
    content = '[1,{"a":2}],\\' * 100_000
    assert server.ok("write", path="commas", content=content)["bytes"] == len(content)


def test_values_of_json_in_strings(server: Server) -> None:
    """They are counted before they are parsed, those of all strings of a call together."""
    many = "[" + ",".join(["1"] * VALUES) + "]"
    status, answer = server.tool("read", paths=many)
    assert (status, answer["error"]) == (400, f"paths: expected at most {VALUES} JSON values")
    half = json.dumps({"old": "a", "new": "b", "x": [1] * (VALUES // 2)})
    status, answer = server.tool("edit", path="f", edits=[half, half])
    assert (status, answer["error"]) == (400, f"edits[1]: expected at most {VALUES} JSON values (unknown: edits[0].x)")


def test_a_body_of_small_values_takes_no_memory(server: Server) -> None:
    """14 MiB of them would be 240 MB once parsed."""
    body = b'{"path": "f", "x": [' + b"1," * 7_000_000 + b"1]}"
    before = peak(server)
    assert ask(server, post("/tools/read", body)).status == 400
    assert peak(server) - before < 100_000_000
