"""The record of processes: what stands in it, what is believed of it, what happens when it cannot be kept."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from relaunching import detach, edit_record, entry, eventually, mark, record_of, sleepers
from websockets.exceptions import ConnectionClosedOK
from websockets.sync.client import connect

if TYPE_CHECKING:
    from kit import Server

Serve = Callable[..., "Server"]
HOUR = 3600


@pytest.fixture
def own(serve: Serve, tmp_path: pathlib.Path) -> Server:
    """A server whose state directory is the test's own."""
    return serve(env={"XDG_STATE_HOME": str(tmp_path / "state")})


def running(server: Server) -> dict[str, dict[str, Any]]:
    record = json.loads(record_of(server).read_text())
    return {one["id"]: one for one in record["running"]}


def set_aside(server: Server) -> list[pathlib.Path]:
    return sorted((server.root / ".kd").glob("processes.json.corrupt-*"))


# ---------------------------------------------------------------------------------------------------- what is in it


def test_what_is_recorded(own: Server) -> None:
    """A process has its line from the answer that tells its id to the one that tells its end; jobs have none."""
    (own.root / "sub").mkdir()
    name = detach(own, ["cat"], cwd="sub", env={"A": "b"}, pty=True, cols=100, rows=30)
    own.ok("exec", cmd="true")
    assert record_of(own).stat().st_mode & 0o777 == 0o600
    one = running(own)[name]
    told = {key: one[key] for key in ("tree", "cmd", "cwd", "env", "pty", "relaunch", "detached", "restarts")}
    assert told == {
        "tree": "main",
        "cmd": ["cat"],
        "cwd": "sub",
        "env": {"A": "b"},
        "pty": {"cols": 100, "rows": 30},
        "relaunch": True,
        "detached": True,
        "restarts": 0,
    }
    own.ok("process_kill", id=name)
    assert running(own) == {}


def test_an_exit_is_recorded_before_it_is_told(own: Server) -> None:
    """Whoever was told of an exit does not meet the process again after a crash."""
    for how in ("process_wait", "process_output", "process_list") * 3:
        name = detach(own, "exit 0")

        def exited(name: str = name, how: str = how) -> bool:
            answer = own.ok(how, **({} if how == "process_list" else {"id": name}))
            rows = answer.get("processes", [answer | {"id": name}])
            return any(row["id"] == name and row["state"] == "exited" for row in rows)

        eventually(exited)
        assert name not in running(own)


def test_all_of_it_comes_back(own: Server) -> None:
    """The terminal with its size, the variables, the directory, also one whose name is not UTF-8."""
    odd = os.fsencode(own.root) + b"/d\xff"
    os.mkdir(odd)
    shell = "stty size; echo $A; pwd | od -An -c | tr -d ' \\n'; echo; cat"
    odd_name = detach(own, 'cd "$(printf "d\\377")" && exec sleep 500')
    name = detach(own, shell, env={"A": "value"}, pty=True, cols=100, rows=30)
    own.restart()
    out = eventually(lambda: (text := own.ok("process_output", id=name)["stdout"]).count("\n") >= 4 and text)
    lines = out.splitlines()
    assert lines[0].startswith("[toolserver] restarted at 20")
    assert lines[1:3] == ["30 100", "value"]
    own.ok("process_write", id=name, data="typed\n")
    eventually(lambda: "typed" in own.ok("process_output", id=name)["stdout"])
    assert entry(own, odd_name)["restarts"] == 1


def test_the_marker_counts(own: Server) -> None:
    """The marker is the first bytes of stdout, counted in its offsets; the ring starts again at 0."""
    name = detach(own, "echo said; sleep 500")
    eventually(lambda: own.ok("process_output", id=name)["stdout"])
    own.restart()
    answer = eventually(lambda: (got := own.ok("process_output", id=name))["stdout"].endswith("said\n") and got)
    marker, rest = answer["stdout"].split("\n", 1)
    assert (rest, answer["next"], answer["restarts"]) == ("said\n", len(marker) + 6, 1)
    assert own.ok("process_output", id=name, since=len(marker) + 1)["stdout"] == "said\n"
    own.restart(signal.SIGKILL)
    waited = own.ok("process_wait", id=name, timeout_ms=0)
    assert (waited["state"], waited["restarts"], entry(own, name)["restarts"]) == ("running", 2, 2)


def test_ids_of_watches_go_on(own: Server) -> None:
    """§8: an id of a watch is never used again in a workspace."""
    assert own.ok("watch", paths=["."])["id"] == "w1"
    own.restart(signal.SIGKILL)
    assert own.ok("watch", paths=["."])["id"] == "w2"
    own.restart()
    assert own.ok("watch", cmd="true")["id"] == "w3"


# --------------------------------------------------------------------------------------- what was not brought back


def test_a_killed_process(own: Server) -> None:
    """Output and wait tell how it stands, kill its state, a stream one frame; nothing can be written to it."""
    name = detach(own, "sleep 500", relaunch=False)
    own.restart()
    told = own.ok("process_output", id=name)
    assert set(told) == {"state", "id", "restarted_at", "hint"}
    assert own.ok("process_wait", id=name) == told
    assert own.ok("process_kill", id=name) == {"state": "killed_by_restart"}
    assert name in own.fails(500, "process_write", id=name, data="x")
    assert name in own.fails(500, "process_close_stdin", id=name)
    lines = own.http.get(f"/stream/process/{name}/lines").text.splitlines()
    assert [json.loads(line) for line in lines] == [told]
    headers = {"Authorization": f"Bearer {own.token}"}
    with connect(f"ws://127.0.0.1:{own.port}/stream/process/{name}", additional_headers=headers) as socket:
        assert json.loads(socket.recv(timeout=20)) == told
        with pytest.raises(ConnectionClosedOK):
            socket.recv(timeout=20)
    (own.root / ".agents" / "alpha").mkdir(parents=True)
    assert entry(own, name, tree="alpha") == {}
    assert own.ok("process_wait", id=name, tree="alpha")["state"] == "gone"


def test_a_promoted_job(own: Server) -> None:
    """It is never run again, whatever the call said."""
    name = own.ok("exec", cmd="echo run >> runs; sleep 500", soft_ms=500)["id"]
    own.restart(signal.SIGKILL)
    assert entry(own, name)["state"] == "killed_by_restart"
    assert (own.root / "runs").read_text() == "run\n"


def test_listed_for_an_hour(own: Server) -> None:
    """From when it was first listed, over restarts; a clock that was put back does no harm."""
    ages = {detach(own, "sleep 500", relaunch=False): age for age in (HOUR - 60, HOUR + 60, -HOUR)}
    own.restart()

    def older(record: dict[str, Any]) -> None:
        for one in record["killed"]:
            one["restarted_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ages[one["id"]]))

    own.stop()
    edit_record(own, older)
    own.start()
    assert [row["id"] for row in own.ok("process_list")["processes"]] == ["p1", "p3"]
    assert detach(own, "true") == "p4"


def test_the_order_of_the_list(own: Server) -> None:
    """Ids in their order, whatever has become of them."""
    names = [detach(own, "sleep 500", relaunch=turn % 2 == 0) for turn in range(11)]
    own.restart()
    names.append(detach(own, "sleep 500"))
    assert [row["id"] for row in own.ok("process_list")["processes"]] == names


def test_a_promoted_command_stands_where_it_started(own: Server) -> None:
    """Its id is the newest, its start is not; so too once a restart has ended it, beside one that fails to start."""
    program = own.put("program", "#!/bin/sh\nexec sleep 500\n", mode=0o755)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        slow = pool.submit(own.ok, "exec", cmd="touch begun; sleep 500", soft_ms=2000)
        eventually((own.root / "begun").exists)
        names = [detach(own, "sleep 500"), detach(own, "sleep 500", relaunch=False), detach(own, ["./program"])]
        names.insert(0, str(slow.result()["id"]))
    rows = own.ok("process_list")["processes"]
    assert [row["id"] for row in rows] == names == ["p4", "p1", "p2", "p3"]
    assert sorted(row["started_at"] for row in rows) == [row["started_at"] for row in rows]
    program.unlink()
    for how in (signal.SIGTERM, signal.SIGKILL):
        own.restart(how)
        left = names if how is signal.SIGTERM else names[:3]  # one that failed to start is not listed again
        assert [row["id"] for row in own.ok("process_list")["processes"]] == left


# ------------------------------------------------------------------------------------------------ what ends at a stop


def test_what_ends_by_itself_while_the_server_stops_is_over(own: Server) -> None:
    for number in (signal.SIGINT, signal.SIGTERM) * 3:
        name = detach(own, ["true"])
        own.restart(number)
        assert entry(own, name) == {}, number
        assert name not in running(own)


def test_what_the_stop_ends_comes_back_however_it_takes_it(own: Server) -> None:
    """With exit code 0 on TERM too, and one that ended by a TERM of somebody else just before."""
    graceful = detach(own, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done")
    eventually(lambda: own.ok("process_output", id=graceful)["stdout"])
    name = detach(own, f"sleep {(duration := mark())}")
    [pid] = eventually(lambda: sleepers(duration))
    os.kill(pid, signal.SIGTERM)
    own.restart(signal.SIGTERM)
    assert [entry(own, one)["restarts"] for one in (graceful, name)] == [1, 1]


def test_one_that_cannot_start(own: Server) -> None:
    """It stays exited, says why everywhere, and is not tried again at the next start."""
    program = own.put("program", "#!/bin/sh\nexec sleep 500\n", mode=0o755)
    name = detach(own, ["./program"])
    program.unlink()
    own.restart(signal.SIGKILL)
    listed = entry(own, name)
    assert (listed["state"], listed["exit_code"]) == ("exited", 127)
    assert "./program" in listed["failed"]
    waited = own.ok("process_wait", id=name)
    assert (waited["state"], waited["exit_code"], waited["failed"]) == ("exited", 127, listed["failed"])
    assert own.ok("process_output", id=name)["stdout"] == ""
    assert own.ok("process_kill", id=name) == {"state": "exited"}
    assert name in own.fails(500, "process_write", id=name, data="x")
    assert own.http.get(f"/stream/process/{name}/lines").text == '{"exit":127}\n'
    own.put("program", "#!/bin/sh\nexec sleep 500\n", mode=0o755)
    own.restart()
    assert entry(own, name) == {}


# --------------------------------------------------------------------------------------------- what is not believed


def test_a_corrupt_record_is_set_aside(own: Server) -> None:
    """It is kept beside, named in the log, and ids go on after those that can still be read in it."""
    for _ in range(3):
        name = detach(own, "sleep 500")
    own.stop()
    path = record_of(own)
    half = path.read_bytes()[:-40]
    path.write_bytes(half)
    own.start()
    [kept] = set_aside(own)
    assert kept.read_bytes() == half
    assert kept.name in own.log_text()
    assert own.ok("process_list")["processes"] == []
    assert detach(own, "sleep 500") == f"p{int(name[1:]) + 1}"
    assert len(running(own)) == 1
    own.stop()
    path.write_bytes(b"")
    own.start()
    assert len(set_aside(own)) == 2


def test_what_no_call_may_do(own: Server) -> None:
    """The record is checked like a call: nothing runs in a directory outside the tree, nor what no kernel takes."""
    changes: list[tuple[dict[str, Any], str]] = [
        ({"cwd": "../.."}, "outside"),
        ({"cwd": "/"}, "outside"),
        ({"cwd": ""}, "cwd"),
        ({"cwd": "none"}, "no such"),
        ({"cwd_b64": "Li4vLi4="}, "outside"),
        ({"cwd": "link"}, "outside"),
        ({"cmd": ""}, "cmd"),
        ({"cmd": []}, "cmd"),
        ({"env": {"A=B": "c"}}, "A=B"),
        ({"cmd": "a\0b"}, "NUL"),
    ]
    reasons = {detach(own, "echo run >> runs; exec sleep 500"): why for _, why in changes}
    own.stop()
    (own.root / "runs").unlink(missing_ok=True)
    (own.root / "link").symlink_to("/")

    def forge(record: dict[str, Any]) -> None:
        for one, (change, _) in zip(record["running"], changes, strict=True):
            one.update(change)

    edit_record(own, forge)
    own.start()
    for row in own.ok("process_list")["processes"]:
        assert row["state"] == "exited"
        assert reasons.pop(row["id"]) in row["failed"]
    assert reasons == {}
    assert not (own.root / "runs").exists()


def test_a_record_that_is_a_link(own: Server, tmp_path: pathlib.Path) -> None:
    """It is neither read nor written through."""
    name = detach(own, "sleep 500")
    own.stop()
    path, elsewhere = record_of(own), tmp_path / "elsewhere"
    content = path.read_bytes()
    elsewhere.write_bytes(content)
    path.unlink()
    path.symlink_to(elsewhere)
    own.start()
    assert entry(own, name) == {}
    detach(own, "sleep 500")
    assert elsewhere.read_bytes() == content
    assert not path.is_symlink()


def test_a_kd_that_is_a_link(own: Server, tmp_path: pathlib.Path) -> None:
    """Nothing is written through it, and calls go on."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (own.root / ".kd").symlink_to(elsewhere)
    own.ok("process_kill", id=detach(own, "sleep 500"))
    assert list(elsewhere.iterdir()) == []


# ---------------------------------------------------------------------------------------- when it cannot be kept


def test_kd_deleted_under_the_server(own: Server) -> None:
    """It is made anew with the next change, with all that runs in it."""
    first = detach(own, "echo begun; sleep 500")
    eventually(lambda: own.ok("process_output", id=first)["stdout"])
    shutil.rmtree(own.root / ".kd")
    second = detach(own, "sleep 500")
    assert set(running(own)) == {first, second}
    assert (own.root / ".kd" / ".gitignore").read_text() == "*\n"
    own.restart(signal.SIGKILL)
    assert [entry(own, name)["restarts"] for name in (first, second)] == [1, 1]


@pytest.fixture
def small(serve: Serve, tmp_path: pathlib.Path) -> Iterator[Server]:
    """A server whose `.kd` is on a file system of 64 KiB."""
    root = (tmp_path / "ws").resolve()
    kd = root / ".kd"
    kd.mkdir(parents=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", kd], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"mount is refused here: {made.stderr.strip()}")
    try:
        server = serve("--capsule", "off", root=root, env={"XDG_STATE_HOME": str(tmp_path / "state")})
        yield server
        server.stop()
    finally:
        subprocess.run(["umount", "-l", kd], check=True)


def test_a_full_disk_fails_no_call(small: Server) -> None:
    """The record stays as it was, whole; it is told once; with room again it is kept again."""
    first = detach(small, "sleep 500")
    filler = small.root / ".kd" / "filler"
    with pytest.raises(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    before = record_of(small).read_bytes()
    names = [detach(small, "sleep 500") for _ in range(3)]
    assert record_of(small).read_bytes() == before
    assert set(os.listdir(small.root / ".kd")) - {"writes", "journal"} == {".gitignore", "filler", "processes.json"}
    assert small.log_text().count("cannot be written") == 1
    assert small.ok("exec", cmd="echo on")["stdout"] == "on\n"
    filler.unlink()
    last = detach(small, "sleep 500")
    assert set(running(small)) == {first, *names, last}


def test_a_record_is_whole_at_any_moment(own: Server) -> None:
    """A kill at any instant leaves one that can be read, and no other file."""
    url = f"{own.url}/tools/exec"

    async def storm() -> None:
        headers = {"Authorization": f"Bearer {own.token}"}
        async with httpx.AsyncClient(headers=headers, timeout=20) as client:
            calls = [client.post(url, json={"cmd": "exit 0", "detach": True}) for _ in range(20)]
            tasks = [asyncio.create_task(call) for call in calls]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            own.process.kill()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(storm())
    own.process.wait()
    json.loads(record_of(own).read_bytes())
    own.http.close()
    own.log.close()
    own.start()
    own.put("f", "x")
    own.ok("write", path="f", content="y")
    left = [name for name in os.listdir(own.root / ".kd") if name.endswith(".tmp")]
    assert left == []


# -------------------------------------------------------------------------------------------- stops of the machine


def test_ended_from_outside_right_before_the_stop(own: Server) -> None:
    """A machine that goes down ends everything at once: what dies of that a moment before the server comes back."""
    duration = mark()
    name = detach(own, ["sleep", duration])
    [pid] = eventually(lambda: sleepers(duration))
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: entry(own, name)["state"] == "exited")
    own.restart()
    assert entry(own, name)["restarts"] == 1


def test_ended_from_outside_long_before(own: Server) -> None:
    """One that somebody else has ended while the server went on does not."""
    duration = mark()
    name = detach(own, ["sleep", duration])
    [pid] = eventually(lambda: sleepers(duration))
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: name not in running(own))
    own.restart()
    assert entry(own, name) == {}
