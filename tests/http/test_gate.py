"""Origin and token, before everything else (specification, section 2): what the conformance suite leaves out."""

from __future__ import annotations

import email.utils
import os
import pathlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from kit import TOKEN
from wire import Wire, ask, head, post

if TYPE_CHECKING:
    from kit import Server

UNAUTHORIZED = {"error": "the tool server needs the workspace's token"}
ORIGIN = "https://one.example"
UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {'A' * 22}==")


@pytest.mark.parametrize(
    "value",
    [
        b"Bearer \xff\xfe",
        b"Bearer " + "é".encode(),
        b"Bearer " + b"x" * 60_000,
        f"Bearer {TOKEN} x".encode(),
        f"Bearer {TOKEN}\tx".encode(),
        f"Bearer{TOKEN}".encode(),
        f"Bearer\t{TOKEN}".encode(),
        f"Token {TOKEN}".encode(),
        f'Bearer "{TOKEN}"'.encode(),
        f"Bearer token={TOKEN}".encode(),
        b" ",
        b",",
    ],
    ids=lambda value: repr(value[:24]),
)
def test_any_other_authorization_is_401(server: Server, value: bytes) -> None:
    answer = ask(server, head("GET", "/tools", b"Authorization: " + value, token=False))
    assert (answer.status, answer.headers["www-authenticate"], answer.json) == (401, ["Bearer"], UNAUTHORIZED)


def test_authorization_twice_is_401(server: Server) -> None:
    """Also when both are right: which one counts is nobody's guess."""
    assert ask(server, head("GET", "/tools", f"Authorization: Bearer {TOKEN}")).status == 401


@pytest.mark.parametrize("blanks", [" ", "   ", " \t"])
def test_blanks_around_the_token(server: Server, blanks: str) -> None:
    line = f"Authorization: {blanks}bearer {blanks}{TOKEN}{blanks}"
    assert ask(server, head("GET", "/tools", line, token=False)).status == 200


@pytest.mark.parametrize("token", ["two words", "a\tb", "naïve-ü", '"quoted"', "x" * 4000])
def test_the_token_is_the_whole_file(serve: Callable[..., Server], token: str) -> None:
    server = serve()
    server.token_file.write_text(f"  {token}\n")
    right = f"Authorization: Bearer {token}".encode()
    assert ask(server, head("GET", "/tools", right, token=False)).status == 200
    first = f"Authorization: Bearer {token.split()[0]}x".encode()
    assert ask(server, head("GET", "/tools", first, token=False)).status == 401


@pytest.mark.parametrize("how", ["fifo", "huge", "directory", "nul"])
def test_a_token_file_that_is_none(serve: Callable[..., Server], how: str) -> None:
    """Nobody is let in, and nothing waits for it."""
    server = serve()
    server.token_file.unlink()
    if how == "fifo":
        os.mkfifo(server.token_file)
    elif how == "huge":
        server.token_file.write_text(TOKEN + " " * 70_000)
    elif how == "directory":
        server.token_file.mkdir()
    else:
        server.token_file.write_bytes(b"\0")
    for line in (f"Bearer {TOKEN}", "Bearer ", "Bearer", ""):
        assert ask(server, head("GET", "/tools", f"Authorization: {line}", token=False)).status == 401
    assert ask(server, head("GET", "/healthz", token=False)).status == 200
    if how == "fifo":
        server.token_file.unlink()


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/healthz/"),
        ("GET", "//healthz"),
        ("GET", "/%68ealthz"),
        ("GET", "/healthz%0A"),
        ("GET", "/HEALTHZ"),
        ("GET", "/./healthz"),
        ("GET", "/tools/../healthz"),
        ("HEAD", "/healthz"),
        ("POST", "/healthz"),
        ("OPTIONS", "/healthz"),
        ("OPTIONS", "*"),
        ("GET", "/stream/process/p1"),
    ],
)
def test_only_healthz_spelled_so_is_open(server: Server, method: str, target: str) -> None:
    with Wire(server.port) as wire:
        wire.send(head(method, target, token=False))
        assert wire.answer(bodyless=method == "HEAD").status == 401


def healthz(server: Server, host: str | None, *lines: str) -> dict[str, Any]:
    line = [] if host is None else [f"Host: {host}"]
    answer = ask(server, "\r\n".join(["GET /healthz HTTP/1.1", *line, *lines, "", ""]).encode())
    assert answer.status == 200
    told: dict[str, Any] = answer.json
    return told


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:7788", None])
def test_healthz_under_a_name_of_this_server(server: Server, host: str | None) -> None:
    told = healthz(server, host)
    assert told["root"] == str(server.root)
    assert told["trees"][0] == "main"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7788", "", "localhost\r\nHost: localhost"])
def test_healthz_under_another_name_tells_nothing(server: Server, host: str) -> None:
    """A page that had its name lead to loopback could read the answer as its own. With the token all is told."""
    assert healthz(server, host) == {"ok": True}
    assert healthz(server, host, "Authorization: Bearer wrong") == {"ok": True}
    assert healthz(server, host, f"Authorization: Bearer {TOKEN}")["root"] == str(server.root)


@pytest.mark.parametrize("target", ["/healthz", "/healthz?x=1", "/healthz?"])
def test_healthz_is_open(server: Server, target: str) -> None:
    assert ask(server, head("GET", target, token=False)).json["ok"] is True


@pytest.mark.parametrize(
    "target", ["/tools/", "//tools", "/tools%0A", "/tools/read/", "/tools//read", "/tools%2Fread", "/Tools", "/x"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_routes_are_exact(server: Server, method: str, target: str) -> None:
    """No redirect, no other spelling: 404."""
    answer = ask(server, head(method, target))
    assert (answer.status, answer.error) == (404, "unknown route")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_another_method_goes_before_an_unknown_tool(server: Server, method: str) -> None:
    answer = ask(server, head(method, "/tools/none"))
    assert (answer.status, answer.headers["allow"]) == (405, ["POST"])


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/tools/n%6Fpe", "nope"),
        ("/tools/%C3%A9t%C3%A9", "été"),
        ("/tools/a%2Fb", "a/b"),
        ("/tools/%20", " "),
        ("/tools/%FF", "\ufffd"),
        ("/tools/a+b", "a+b"),
        ("/tools/%0Ax", "\nx"),
        ("/tools/%", "%"),
    ],
)
def test_unknown_tool_is_told_decoded(server: Server, target: str, name: str) -> None:
    answer = ask(server, post(target, b"not even JSON"))
    assert (answer.status, answer.error) == (404, f"unknown tool {name}")


def test_a_tool_spelled_with_percent_signs(server: Server) -> None:
    server.put("f", "here\n")
    assert ask(server, post("/tools/%72ead", b'{"path": "f"}')).json["content"] == "1\there"


# ------------------------------------------------------------------------------------------------ upgrades


@pytest.mark.parametrize("missing", [None, "Sec-WebSocket-Key", "Sec-WebSocket-Version"])
def test_a_handshake_without_the_token(server: Server, missing: str | None) -> None:
    """401 before anyone looks whether the handshake is well formed."""
    lines = [line for line in UPGRADE if missing is None or not line.startswith(missing)]
    answer = ask(server, head("GET", "/stream/process/p1", *lines, token=False))
    assert (answer.status, answer.headers["www-authenticate"], answer.json) == (401, ["Bearer"], UNAUTHORIZED)


def test_a_handshake_from_a_page(server: Server) -> None:
    assert ask(server, head("GET", "/stream/process/p1", *UPGRADE, f"Origin: {ORIGIN}")).status == 403


def test_a_handshake_of_an_unknown_stream(server: Server) -> None:
    answer = ask(server, head("GET", "/stream/nothing", *UPGRADE))
    assert answer.status == 404
    assert answer.error


def test_an_upgrade_elsewhere_is_answered_as_a_request(server: Server) -> None:
    """As HTTP has it: who does not want the other protocol goes on with this one, bodies included."""
    server.put("f", "here\n")
    assert "tools" in ask(server, head("GET", "/tools", *UPGRADE)).json
    body = b'{"path": "f"}'
    with Wire(server.port) as wire:
        for _ in range(2):
            wire.send(post("/tools/read", body, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"))
            assert wire.answer().json["content"] == "1\there"


# ------------------------------------------------------------------------------------------------ browsers


@pytest.fixture(scope="module")
def cors_root(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("cors").resolve()


def test_every_answer_to_an_allowed_origin_says_so(serve: Callable[..., Server], cors_root: pathlib.Path) -> None:
    """Errors too; once, with Vary."""
    server = serve(root=cors_root, env={"TOOLSERVER_ALLOW_ORIGIN": f"https://other.example {ORIGIN}"})
    line = f"Origin: {ORIGIN}"
    asked = {
        "GET /tools": (head("GET", "/tools", line), 200),
        "GET /healthz": (head("GET", "/healthz", line, token=False), 200),
        "no token": (head("GET", "/tools", line, token=False), 401),
        "unknown route": (head("GET", "/none", line), 404),
        "wrong method": (head("PUT", "/tools", line), 405),
        "unknown tool": (post("/tools/none", b"", line), 404),
        "not JSON": (post("/tools/read", b"{", line), 400),
        "failed": (post("/tools/read", b'{"path": "none"}', line), 500),
        "too large": (head("POST", "/tools/read", "Content-Length: 99999999", line), 413),
        "preflight": (head("OPTIONS", "/tools/read", line, "Access-Control-Request-Method: POST", token=False), 204),
    }
    for name, (request, status) in asked.items():
        answer = ask(server, request)
        assert answer.status == status, name
        assert answer.headers["access-control-allow-origin"] == [ORIGIN], name
        assert "Origin" in answer.headers["vary"], name
    others = [
        f"Origin: {ORIGIN}/",
        f"Origin: {ORIGIN.upper()}",
        "Origin:",
        f"Origin: {ORIGIN}\r\nOrigin: {ORIGIN}",
        f"Origin: {ORIGIN}, https://other.example",
    ]
    for other in others:
        answer = ask(server, head("GET", "/healthz", other))
        assert answer.status == 403, other
        assert "access-control-allow-origin" not in answer.headers, other


def test_options_without_a_preflights_headers(server: Server) -> None:
    assert ask(server, head("OPTIONS", "/tools/read", token=False)).status == 401


# ------------------------------------------------------------------------------------------------ heads


def test_a_date_in_every_answer(server: Server) -> None:
    """RFC 9110 asks for it; it is right although no timer keeps it."""
    for request in (head("GET", "/tools"), head("GET", "/healthz", token=False), post("/tools/none", b"")):
        [date] = ask(server, request).headers["date"]
        assert abs(email.utils.parsedate_to_datetime(date).timestamp() - time.time()) < 5


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_what_is_not_http(server: Server, garbage: bytes) -> None:
    answer = ask(server, garbage)
    assert answer.status == 400
    assert answer.error


def test_an_endless_head_is_cut_off(server: Server) -> None:
    with Wire(server.port) as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        try:
            for _ in range(64):
                wire.send(b"X-Filler: " + b"f" * 65_000 + b"\r\n")
        except OSError:
            return
        assert wire.answer().status == 431
    assert server.http.get("/healthz").status_code == 200


def test_head_is_get_without_the_body(server: Server) -> None:
    with Wire(server.port) as wire:
        wire.send(head("HEAD", "/tools"))
        answer = wire.answer(bodyless=True)
        assert answer.status == 200
        assert int(answer.headers["content-length"][0]) > 100
        wire.send(head("GET", "/healthz"))
        assert wire.answer().status == 200
