"""What a command in the capsule may ask of the kernel. It is asked, never tried: nothing here writes below /proc."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kit import Server

# Everything in /proc but the processes' own directories, and in /sys: `find` asks access(2) for each.
WRITABLE = "find /proc /sys -path '/proc/[0-9]*' -prune -o ! -type l -writable -print 2>/dev/null"
# Opens for writing, and writes nothing; append, so that nothing could be cut off either.
OPENED = (
    "find /proc /sys -path '/proc/[0-9]*' -prune -o -type f -print 2>/dev/null | while read -r path; "
    'do (: >>"$path") 2>/dev/null && echo "$path"; done; true'
)
COVERED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug")


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    server = serve()
    if server.http.get("/tools").json()["fence"]["capsule"] != "active":
        pytest.skip("the capsule does not work here")
    return server


def test_nothing_is_writable(server: Server) -> None:
    assert server.ok("exec", cmd=WRITABLE)["stdout"] == ""


@pytest.mark.parametrize("flags", [("--bind-ro", "/sys"), ("--bind-ro", "/")])
def test_nothing_is_writable_with_more_places(
    serve: Callable[..., Server], server: Server, flags: tuple[str, ...]
) -> None:
    more = serve(*flags)
    assert more.ok("exec", cmd=WRITABLE)["stdout"] == ""
    assert more.ok("exec", cmd="ls -A /sys/firmware 2>/dev/null || true")["stdout"] == ""
    assert more.ok("exec", cmd="cat /proc/1/comm")["stdout"] == "bwrap\n"


def test_nothing_can_be_opened_for_writing(server: Server) -> None:
    """Files whose opening has an effect of its own are not among what root may open: the mount refuses first."""
    assert server.ok("exec", cmd=f"test -w /proc/sys/kernel/hostname || {{ {OPENED}; }}")["stdout"] == ""


@pytest.mark.parametrize("path", [path for path in COVERED if os.path.exists(path)])
def test_covered(server: Server, path: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("covered for root only: others may not read it, or see their own in it")
    assert server.ok("exec", cmd=["stat", "-c", "%s %F", path])["stdout"] == "0 regular empty file\n"
    assert server.ok("exec", cmd=["cat", path])["stdout"] == ""


@pytest.mark.parametrize("how", [{}, {"pty": True}, {"tree": "alpha"}])
def test_no_capability_is_kept(server: Server, how: dict[str, object]) -> None:
    server.put(".agents/alpha/file")
    lines = server.ok("exec", cmd="cat /proc/self/status", **how)["stdout"].split("\n")
    found = dict(line.strip().split(":\t", 1) for line in lines if line.startswith(("Cap", "NoNewPrivs")))
    assert {name: int(value, 16) for name, value in found.items()} == {
        "CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0, "NoNewPrivs": 1,
    }  # fmt: skip


def test_trees_that_are_made_later(server: Server) -> None:
    """`.agents` is covered from the first command on, though there was none."""
    name = server.ok("exec", cmd="while read line; do ls -A .agents; cat .agents/alpha/secret; done", detach=True)["id"]
    server.put(".agents/alpha/secret", "secret")
    server.ok("process_write", id=name, data="look\n")
    server.ok("process_close_stdin", id=name)
    answer = server.ok("process_wait", id=name, timeout_ms=20000)
    assert (answer["state"], answer["stdout"]) == ("exited", "")
    assert server.ok("exec", cmd="ls", tree="alpha")["stdout"] == "secret\n"
    assert server.ok("exec", cmd="mkdir .agents/beta")["exit_code"] != 0


def test_the_directory_of_trees_shows_nowhere(server: Server) -> None:
    server.git("init", "-q")
    server.put("file", "x")
    server.ok("exec", cmd="true")
    assert server.git("status", "--porcelain").split() == ["??", "file"]
    assert server.ok("glob", pattern="**")["paths"] == ["file"]


def test_a_program_below_a_bound_place_that_is_a_link(serve: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    """An argv runs what a shell would run, and is refused what a shell would not find."""
    folder = tmp_path / "tools"
    (folder / "inner").mkdir(parents=True)
    (folder / "hello").write_text("#!/bin/sh\necho hello\n")
    (folder / "hello").chmod(0o755)
    (folder / "inner/again").symlink_to("../hello")
    (folder / "scripted").write_text(f"#!{tmp_path}/link/hello\n")
    (folder / "scripted").chmod(0o755)
    (tmp_path / "link").symlink_to("tools")
    server = serve("--bind-ro", str(tmp_path / "link"))
    for path in ("link/hello", "link/inner/again", "link/inner/../hello", "link/scripted"):
        assert server.ok("exec", cmd=str(tmp_path / path))["stdout"] == "hello\n", path
        assert server.ok("exec", cmd=[str(tmp_path / path)])["stdout"] == "hello\n", path
    assert server.ok("exec", cmd=["hello"], env={"PATH": f"{tmp_path}/link:/bin"})["stdout"] == "hello\n"
    if server.http.get("/tools").json()["fence"]["capsule"] == "active":
        assert "no such file" in server.fails(500, "exec", cmd=[str(folder / "hello")])
        assert server.ok("exec", cmd=str(folder / "hello"))["exit_code"] == 127
