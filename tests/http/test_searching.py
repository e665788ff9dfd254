"""Searches over HTTP: what a user may type for a pattern, a glob or a root, and searches that take long."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from folders import deep
from kit import program, serving
from wire import Wire, post

if TYPE_CHECKING:
    from kit import Server

CRAWL = r"(\w{1,25}){2}[^\w ]{3}x|[a-q][^u-z]{13}xy"
"""Makes RE2 leave its automaton for the slow way: minutes on a few MiB of random letters."""


def found(server: Server, pattern: str, **more: Any) -> list[tuple[str, int, str]]:
    return [(row["path"], row["line"], row["text"]) for row in server.ok("grep", pattern=pattern, **more)["matches"]]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [("--flag", [1]), ("--pre=x", [2]), ("-e", [3]), ("^--$", [4]), ("-f", [1]), ("@a", [5]), ("--", [1, 2, 4])],
)
def test_a_pattern_is_never_an_option(server: Server, pattern: str, lines: list[int]) -> None:
    server.put("f", "a --flag\n--pre=x\n-e\n--\n@a\n")
    assert [line for _, line, _ in found(server, pattern)] == lines


def test_names_like_options(server: Server) -> None:
    for name in ("--help", "-rf/-e"):
        server.put(name, "hit\n")
    assert found(server, "hit") == [("--help", 1, "hit"), ("-rf/-e", 1, "hit")]
    assert found(server, "hit", cwd="-rf", glob="-e") == [("-rf/-e", 1, "hit")]
    assert server.ok("glob", pattern="--*")["paths"] == ["--help"]


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("app/[slug]/*.tsx", ["app/s/p.tsx"]),
        (r"app/\[slug\]/*.tsx", ["app/[slug]/p.tsx"]),
        ("app/[[]slug]/*", ["app/[slug]/p.tsx"]),
        (r"app/\[...all\]/*", ["app/[...all]/p.tsx"]),
        ("app/(group)/*", ["app/(group)/p.tsx"]),
        (r"app/\{x\}/*", ["app/{x}/p.tsx"]),
        ("app/{x}/*", []),
        (r"app/\*/*", ["app/*/p.tsx"]),
    ],
)
def test_folders_named_like_patterns(server: Server, glob: str, paths: list[str]) -> None:
    for folder in ("[slug]", "s", "[...all]", "(group)", "{x}", "*"):
        server.put(f"app/{folder}/p.tsx", "hit\n")
    assert server.ok("glob", pattern=glob)["paths"] == paths
    assert [path for path, _, _ in found(server, "hit", glob=glob)] == paths
    for path in paths:
        assert found(server, "hit", cwd=os.path.dirname(path)) == [(path, 1, "hit")]


def test_line_ends_and_marks(server: Server) -> None:
    server.put("crlf", "alpha\r\nalpha\rx\r\n\r\nalpha\r")
    server.put("mark", b"\xef\xbb\xbfimport a\r\n\xef\xbb\xbfimport b\n")
    assert found(server, "alpha$") == [("crlf", 1, "alpha")]
    assert found(server, "^$") == [("crlf", 3, "")]
    assert found(server, r"\r$") == [("crlf", 4, "alpha\r")]
    assert found(server, "^import") == [("mark", 1, "import a")]
    assert found(server, "\ufeff") == [("mark", 2, "\ufeffimport b")]
    assert server.ok("grep", pattern="^$", context=1)["matches"][0]["context"] == "alpha\rx\n\nalpha\r"


def test_names_of_any_bytes_go_out_and_in_again(server: Server) -> None:
    names = [
        b"\xff.c",
        b"line\nbreak",
        b'"quo\'te"',
        b"ta\tb",
        b" blank ",
        b"back\\slash",
        b"\xed\xa0\x80",
        b"d\xfe/in\nner",
    ]
    for name in names:
        path = os.path.join(os.fsencode(server.root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        pathlib.Path(os.fsdecode(path)).write_bytes(b"hit\n")
    rows = server.ok("grep", pattern="hit")["matches"]
    got = [base64.b64decode(row["path_b64"]) if "path_b64" in row else row["path"].encode() for row in rows]
    assert got == sorted(names)
    assert len(server.ok("glob", pattern="**/*")["paths"]) == len(names)
    for row, name in zip(rows, got, strict=True):
        key = "path_b64" if "path_b64" in row else "path"
        for given in ({key: row[key]}, {"path_b64": base64.b64encode(name).decode()}):
            answer = server.ok("read", **given)
            assert (answer["path"], answer["content"]) == (row["path"], "1\thit")


class Spelled:
    """A root as it was typed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


@pytest.mark.parametrize("spelling", ["{r}/ws/", "{r}//ws", "ws", "./ws/", "link", "{r}/link/", "ws/../link/.", "."])
def test_roots_of_any_spelling(spelling: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSERVER_BIN", program()[0])
    for path in ("ws/f", "ws/sub/f", "ws-other/f"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("hit\n")
    (tmp_path / "link").symlink_to("ws")
    root = tmp_path / "ws"
    monkeypatch.chdir(root if spelling == "." else tmp_path)
    with serving(root=Spelled(spelling.format(r=tmp_path))) as server:
        assert server.http.get("/healthz").json()["root"] == str(root)
        given = os.path.abspath(spelling.format(r=tmp_path))
        for path in ("f", f"{root}/f", f"{given}/f", "sub/../f"):
            assert server.ok("read", path=path)["path"] == "f", path
        assert found(server, "hit", cwd=f"{root}/") == [("f", 1, "hit"), ("sub/f", 1, "hit")]
        for tool, more in (("read", {}), ("grep", {"pattern": "hit"}), ("glob", {"pattern": "*"})):
            where = "path" if tool == "read" else "cwd"
            server.fails(400, tool, **{where: f"{root}-other/f"}, **more)
            server.fails(403, tool, **{where: "../ws-other/f"}, **more)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on random letters, on which the automaton of CRAWL has no use."""
    root = tmp_path_factory.mktemp("slow")
    r = random.Random(3)
    for name in "abcd":
        lines = ["".join(r.choices("abcdefghijklmnopqrstuvwxyz  é", k=200)) for _ in range(2500)]
        (root / name).write_text(("\n".join(lines) + "\n") * 8)
    (root / "small").mkdir()
    (root / "small/f").write_text("needle\n" + "a" * 40 + "b\n")
    with serving(root=root) as server:
        yield server


def processor_time(server: Server) -> int:
    """The ticks that a server has had."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def comes_to_rest(server: Server) -> bool:
    """Wait until a server does nothing for a while."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        before = processor_time(server)
        time.sleep(0.5)
        if processor_time(server) == before:
            return True
    return False


def test_nested_repetition(slow: Server) -> None:
    assert found(slow, "(a+)+$", cwd="small") == []
    assert found(slow, "(a+)+b$", cwd="small") == [("small/f", 2, "a" * 40 + "b")]


def test_slow_searches_hold_up_nobody_and_end_with_their_clients(slow: Server) -> None:
    asked = [Wire(slow.port) for _ in range(10)]
    for number, wire in enumerate(asked):
        wire.send(post("/tools/grep", json.dumps({"pattern": f"{CRAWL}|q{number % 5}q9", "mode": "count"}).encode()))
    for _ in range(2):
        assert slow.ok("read", path="small/f", limit=1)["content"] == "1\tneedle"
        assert slow.ok("glob", pattern="f")["paths"] == ["small/f"]
        assert found(slow, "needle", cwd="small") == [("small/f", 1, "needle")]
    assert not any(wire.answered() for wire in asked)
    for wire in asked:
        wire.file.close()
        wire.socket.close()
    assert comes_to_rest(slow)
    assert all(line.startswith("{") for line in slow.log_text().splitlines()[3:])


@pytest.mark.parametrize("pattern", [".{1000}" * 66, "a*" + "a" * 64_999, r"(\w{1,500}){2}", r"\w{200}"])
def test_what_re2_cannot_do_well_is_refused(slow: Server, pattern: str) -> None:
    assert "too large" in slow.fails(400, "grep", pattern=pattern)
    assert all(line.startswith("{") for line in slow.log_text().splitlines()[3:])


@pytest.mark.parametrize(("tool", "pattern"), [("glob", "*"), ("grep", "x")])
def test_a_cwd_as_long_as_a_path_may_be(server: Server, tool: str, pattern: str) -> None:
    """Over a link there is no path left to tell it by."""
    cwd = deep(server.root)
    answer = server.ok(tool, cwd=cwd, pattern=pattern)
    if tool == "glob":
        assert answer["paths"] == [f"{cwd}/file"]
    error = server.fails(400, tool, cwd="link/" + cwd.partition("/")[2], pattern=pattern)
    assert "too long" in error
