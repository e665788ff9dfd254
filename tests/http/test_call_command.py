"""`toolserver call` and `toolserver tools` (specification, section 1)."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from kit import free_port
from wire import run

if TYPE_CHECKING:
    from kit import Server


def flags(server: Server) -> list[str]:
    return ["--port", str(server.port), "--token-file", str(server.token_file)]


def test_flags_and_tree(server: Server) -> None:
    """--tree names the working directory; a tree in the JSON wins."""
    server.put(".agents/one/f", "of one\n")
    server.put(".agents/two/f", "of two\n")
    done = run("call", "read", '{"path": "f"}', "--tree", "one", *flags(server))
    assert json.loads(done.stdout)["content"] == "1\tof one"
    done = run("call", "read", '{"path": "f", "tree": "two"}', *flags(server), env={"TOOLSERVER_TREE": "one"})
    assert json.loads(done.stdout)["content"] == "1\tof two"


def test_without_json(server: Server) -> None:
    done = run("call", "read", *flags(server))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"path" in done.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["nope"], b"unknown tool nope"),
        (["a/b"], b"unknown tool a/b"),
        (["read", "{"], b"JSON"),
        (["read", "[]"], b"object"),
        (["read", '{"path": "gone\\nfile"}'], b"gone\\nfile"),
    ],
)
def test_errors(server: Server, words: list[str], named: bytes) -> None:
    """One line on stderr, nothing on stdout, exit status 1."""
    done = run("call", *words, *flags(server))
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)
    assert named in done.stderr


@pytest.mark.parametrize("between", ["\n", "\r\n", "\r", "\0", "\x1b[2J", "\x7f", "\t", "\n secret-three\n"])
@pytest.mark.parametrize("tail", ["", "\n"])
def test_a_token_file_of_several_lines_is_named_and_not_printed(
    server: Server, tmp_path: pathlib.Path, between: str, tail: str
) -> None:
    file = tmp_path / "token"
    file.write_text(f"secret-one{between}secret-two{tail}")
    done = run("call", "read", '{"path": "f"}', "--port", str(server.port), "--token-file", str(file))
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)
    assert str(file).encode() in done.stderr
    assert b"secret" not in done.stderr


def test_an_empty_token_file_is_named(server: Server, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "token"
    file.write_text(" \n")
    done = run("call", "read", '{"path": "f"}', "--port", str(server.port), "--token-file", str(file))
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"{file} is empty".encode() in done.stderr


def test_any_bytes_from_standard_input(server: Server) -> None:
    server.put("é", "here\n")
    done = run("call", "read", "-", *flags(server), stdin='{"path": "é"}'.encode())
    assert json.loads(done.stdout)["content"] == "1\there"
    done = run("call", "read", "-", *flags(server), stdin=b"\xff\xfe")
    assert (done.returncode, done.stdout) == (1, b"")


def test_nobody_listens(server: Server) -> None:
    port = str(free_port())
    done = run("call", "read", "--port", port, "--token-file", str(server.token_file))
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)
    assert port.encode() in done.stderr
    done = run("call", "read", "--uds", "/nowhere/s", "--token-file", str(server.token_file))
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"/nowhere/s" in done.stderr


def test_a_wrong_token(server: Server, tmp_path: pathlib.Path) -> None:
    for text in ("wrong", "", "a\nb"):
        (tmp_path / "token").write_text(text)
        done = run("call", "read", "--port", str(server.port), "--token-file", str(tmp_path / "token"))
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)
    done = run("call", "read", "--port", str(server.port), "--token-file", str(tmp_path / "none"))
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)


def test_unix_socket(serve: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    """And the token file that `serve` made for the root is found from the root and from below it."""
    from test_starting import Started

    root = tmp_path / "ws"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "f").write_text("here\n")
    env = {"HOME": str(tmp_path), "XDG_STATE_HOME": ""}
    path = str(tmp_path / "s")
    started = Started(str(root), "--uds", path, env=env)
    try:
        for cwd in (root, root / "deep" / "er"):
            done = run("call", "read", '{"path": "f"}', "--uds", path, env=env, cwd=cwd)
            assert json.loads(done.stdout)["content"] == "1\there"
        done = run("call", "read", '{"path": "f"}', env={**env, "TOOLSERVER_UDS": path}, cwd=tmp_path)
        assert done.returncode == 1
        assert b"--token-file" in done.stderr
    finally:
        assert started.stop()[0] == 0


def test_tools_are_those_of_the_server(server: Server) -> None:
    assert json.loads(run("tools").stdout)["tools"] == server.http.get("/tools").json()["tools"]
