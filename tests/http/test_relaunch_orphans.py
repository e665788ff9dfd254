"""Nothing that a killed server ran unwrapped lives on beside what is started again (specification, section 9)."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from relaunching import detach, entry, eventually, mark, sleepers

if TYPE_CHECKING:
    from kit import Server

Serve = Callable[..., "Server"]


@pytest.fixture
def state(tmp_path: pathlib.Path) -> dict[str, str]:
    """A state directory of the test's own."""
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def bare(serve: Serve, state: dict[str, str]) -> Server:
    return serve("--capsule", "off", env=state)


def notes(state: dict[str, str]) -> list[pathlib.Path]:
    return sorted(pathlib.Path(state["XDG_STATE_HOME"]).rglob("children-*"))


def test_a_whole_session_is_ended(bare: Server) -> None:
    """The command, what it runs in the background, and what lost its parent in the same session."""
    own, child, grandchild = mark(), mark(), mark()
    name = detach(bare, f"(sleep {grandchild} &) ; sleep {child} & sleep {own}")
    durations = (own, child, grandchild)
    before = eventually(lambda: all(map(sleepers, durations)) and set.union(*map(sleepers, durations)))
    bare.restart(signal.SIGKILL)
    assert not before & set.union(*map(sleepers, durations))
    assert entry(bare, name)["restarts"] == 1
    eventually(lambda: [len(sleepers(duration)) for duration in durations] == [1, 1, 1])


def test_a_session_whose_leader_is_gone(bare: Server) -> None:
    """The command itself has exited since the kill; its background children are ended all the same."""
    child, own = mark(), mark()
    detach(bare, f"sleep {child} & sleep {own}", relaunch=False)
    [left] = eventually(lambda: sleepers(child))
    [leader] = eventually(lambda: sleepers(own) and {int(pathlib.Path(f"/proc/{left}/stat").read_text().split()[5])})
    bare.stop(signal.SIGKILL)
    os.kill(leader, signal.SIGKILL)
    assert sleepers(child) == {left}
    bare.start()
    assert not sleepers(child)
    assert not sleepers(own)


def test_a_child_in_another_session(bare: Server) -> None:
    """What a command has started in a session of its own is ended as long as it has its parent."""
    duration = mark()
    detach(bare, f"setsid sleep {duration} & wait", relaunch=False)
    eventually(lambda: sleepers(duration))
    bare.restart(signal.SIGKILL)
    assert not sleepers(duration)


def test_jobs_are_ended_too(bare: Server) -> None:
    """A job that was under way is no orphan that stays."""
    duration = mark()
    bare.ok("exec", cmd=f"sleep {duration}", soft_ms=0)
    eventually(lambda: sleepers(duration))
    bare.restart(signal.SIGKILL)
    assert not sleepers(duration)
    assert bare.ok("process_list")["processes"][0]["state"] == "killed_by_restart"


def test_what_a_job_has_left_is_ended_however_many_came_after(bare: Server) -> None:
    """Its leader is gone, and its line is kept as long as the group lives."""
    duration = mark()
    bare.ok("exec", cmd=f"sleep {duration} > /dev/null 2>&1 & exit 0")
    for _ in range(600):
        bare.ok("exec", cmd=["true"])
    assert len(sleepers(duration)) == 1
    bare.restart(signal.SIGKILL)
    assert not sleepers(duration)


def test_lines_are_used_again(bare: Server, state: dict[str, str]) -> None:
    """The notes grow with what runs at once, not with what ran."""
    for _ in range(50):
        bare.ok("exec", cmd=["true"])
    [path] = notes(state)
    assert len(path.read_bytes()) == 128 + 80
    assert path.read_bytes()[128:].isspace()
    detach(bare, "sleep 500", relaunch=False)
    assert len(path.read_bytes()) == 128 + 80
    bare.fails(500, "exec", cmd=["no-such-program"])
    assert path.read_bytes()[128 + 80 :].isspace()


def test_the_notes_are_private_and_go(bare: Server, state: dict[str, str]) -> None:
    """Mode 0600, none without children, none after a clean stop, none of a killed server after the next start."""
    assert notes(state) == []
    name = detach(bare, "sleep 500")
    [first] = notes(state)
    assert first.stat().st_mode & 0o777 == 0o600
    bare.restart(signal.SIGKILL)
    [second] = notes(state)
    assert second != first
    bare.ok("process_kill", id=name)
    bare.stop()
    assert notes(state) == []
    assert list(pathlib.Path(state["XDG_STATE_HOME"]).rglob("*.lock")) == []


def test_notes_of_somebody_else_end_nothing(bare: Server, state: dict[str, str]) -> None:
    """A pid that another process has by now, and notes of another boot, end nobody."""
    detach(bare, "sleep 500", relaunch=False)
    [path] = notes(state)
    with subprocess.Popen(["sleep", "500"], start_new_session=True) as other:
        bare.stop(signal.SIGKILL)
        whole = path.read_bytes()
        line = f"{other.pid} 1 2 0 0".encode().ljust(79) + b"\n"
        path.write_bytes(whole + line)
        bare.start()
        assert other.poll() is None
        start = pathlib.Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
        line = f"{other.pid} {start} {start} 0 0".encode().ljust(79) + b"\n"
        (path.parent / ("children-" + "0" * 24)).write_bytes(b"an earlier boot".ljust(127) + b"\n" + line)
        bare.restart()
        assert other.poll() is None
        assert notes(state) == []
        other.kill()


def test_a_living_server_keeps_its_children(serve: Serve, bare: Server, state: dict[str, str]) -> None:
    """Of two servers of one root one is killed and started again: what the other runs goes on."""
    other = serve("--capsule", "off", env=state, root=bare.root)
    theirs, ours = mark(), mark()
    detach(other, ["sleep", theirs])
    name = detach(bare, ["sleep", ours])
    living, [before] = eventually(lambda: sleepers(theirs)), eventually(lambda: sleepers(ours))
    bare.restart(signal.SIGKILL)
    assert sleepers(theirs) == living
    assert before not in sleepers(ours)
    assert entry(other, "p1")["state"] == "running"
    assert other.ok("exec", cmd="echo on")["stdout"] == "on\n"
    assert name


def test_one_server_of_a_root_keeps_the_record(serve: Serve, bare: Server, state: dict[str, str]) -> None:
    """A second one starts nothing again, records nothing and says so; the first one's processes come back."""
    duration = mark()
    name = detach(bare, ["sleep", duration])
    other = serve("--capsule", "off", env=state, root=bare.root)
    assert entry(other, name) == {}
    second = detach(other, "sleep 500")
    assert second == "p2"
    assert "another server of this root" in other.log_text()
    other.stop(signal.SIGKILL)
    bare.restart(signal.SIGKILL)
    assert entry(bare, name)["restarts"] == 1
    assert entry(bare, second) == {}
    eventually(lambda: len(sleepers(duration)) == 1)


def test_started_while_the_old_one_stops(serve: Serve, bare: Server, state: dict[str, str]) -> None:
    """A server that is started right after a signal to the old one waits for its end and goes on from its record."""
    duration = mark()
    name = detach(bare, f"trap '' TERM; sleep {duration}; sleep {duration}; sleep {duration}")
    eventually(lambda: sleepers(duration))
    bare.process.terminate()
    lock = next(pathlib.Path(state["XDG_STATE_HOME"]).rglob("relaunch.lock"))
    eventually(lambda: b"stopping" in lock.read_bytes())
    other = serve("--capsule", "off", env=state, root=bare.root)
    assert entry(other, name)["restarts"] == 1
    assert bare.process.wait(15) == 0
    eventually(lambda: len(sleepers(duration)) == 1)


ORPHAN = """
import os, sys
if not os.fork():
    os.read(int(sys.argv[1]), 1)
    os.dup2(int(sys.argv[2]), 8)
    os.execvp(sys.argv[3], sys.argv[3:])
"""
OWNED = """
import os, sys
os.dup2(int(sys.argv[1]), 8)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def capsule(root: pathlib.Path, duration: str) -> list[str]:
    """Return the command line of a capsule as a server would start it."""
    options = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--bind", str(root), str(root)]
    return ["bwrap", *options, "--json-status-fd", "8", "--", "sleep", duration]


def orphan(root: pathlib.Path, duration: str) -> None:
    """Start a capsule that its parent has left before it could ask to die with it."""
    (go, begin), (read, write) = os.pipe(), os.pipe()
    argv = [sys.executable, "-c", ORPHAN, str(go), str(write), *capsule(root, duration)]
    subprocess.run(argv, pass_fds=[go, write], check=True)
    os.write(begin, b"x")
    eventually(lambda: sleepers(duration))
    for fd in (go, begin, read, write):
        os.close(fd)


@pytest.mark.parametrize("tree", ["", ".agents/alpha"])
def test_a_capsule_whose_server_is_gone(serve: Serve, state: dict[str, str], tmp_path: pathlib.Path, tree: str) -> None:
    """One that was killed while its capsule started has left it: it is known by the root or tree that it binds."""
    server = serve(env=state)
    if server.http.get("/tools").json()["fence"]["capsule"] != "active":
        pytest.skip("there is no capsule here")
    (server.root / tree).mkdir(parents=True, exist_ok=True)
    ours, elsewhere, owned = mark(), mark(), mark()
    orphan(server.root / tree, ours)
    orphan(tmp_path, elsewhere)
    read, write = os.pipe()
    argv = [sys.executable, "-c", OWNED, str(write), *capsule(server.root, owned)]
    living = subprocess.Popen(argv, pass_fds=[write])  # its parent, like a server, has the other end of the pipe
    try:
        eventually(lambda: sleepers(owned))
        server.restart()
        assert not sleepers(ours)
        assert sleepers(elsewhere)
        assert living.poll() is None
        assert sleepers(owned)
    finally:
        living.kill()
        living.wait()
        os.close(read)
        os.close(write)
        for pid in sleepers(elsewhere):
            os.kill(pid, signal.SIGKILL)
