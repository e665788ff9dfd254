"""The record of processes as text: what is read back, what is taken for corrupt, which ids count for ever."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.errors import BadArgument
from toolserver.processes.restart.record import (
    Corrupt,
    Killed,
    ProcessRecord,
    Running,
    Size,
    decode,
    encode,
    encode_running,
    salvage,
)

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
ONE: dict[str, Any] = {
    "id": "p7",
    "tree": "main",
    "cmd": "true",
    "cwd": ".",
    "env": {},
    "pty": None,
    "relaunch": True,
    "detached": True,
    "restarts": 0,
    "started_at": "2026-01-02T03:04:05.678Z",
}
KILLED: dict[str, Any] = {"id": "p3", "tree": "main", "cmd": "true", "restarted_at": "2026-01-02T03:04:05Z"}


def text(**changes: Any) -> bytes:
    """Write a record as a server does, some members changed."""
    whole = {"version": 1, "workspace": "x", "last_process": 7, "last_watch": 2, "running": [ONE], "killed": [KILLED]}
    return json.dumps(whole | changes).encode()


def test_what_a_server_writes_is_read() -> None:
    record = decode(text())
    assert record.ids == ["p7", "p3"]
    assert record.running[0].started_at == AT


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../p1"},
        {"id": "p1\n"},
        {"id": "\np1"},
        {"id": "p01"},
        {"id": "p0"},
        {"id": "p" + "1" * 16},
        {"id": "w1"},
        {"id": 1},
        {"id": "p3"},
        {"tree": "../.."},
        {"tree": ""},
        {"tree": "a" * 33},
        {"tree": "main\n"},
        {"cmd": {"a": 1}},
        {"cmd": ["sleep", 5]},
        {"cmd": None},
        {"env": {"A": 1}},
        {"env": None},
        {"pty": {"cols": -1, "rows": 5}},
        {"pty": {"cols": 65_536, "rows": 5}},
        {"pty": {"cols": 80}},
        {"started_at": "yesterday"},
        {"started_at": "2026-01-02T03:04:05"},
        {"started_at": 5},
        {"cwd": None},
        {"cwd_b64": "!"},
        {"relaunch": "true"},
        {"restarts": -1},
    ],
    ids=str,
)
def test_an_entry_that_no_server_wrote(change: dict[str, Any]) -> None:
    with pytest.raises(Corrupt):
        decode(text(running=[ONE | change]))


@pytest.mark.parametrize("name", ONE)
def test_an_entry_that_lacks_something(name: str) -> None:
    with pytest.raises(Corrupt):
        decode(text(running=[{key: value for key, value in ONE.items() if key != name}]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"[]",
        b"null",
        b"{}",
        b"\xff" + text(),
        text() + text(),
        text()[:-1],
        text(version=2),
        text(last_process=-1),
        text(last_process=10**15),
        text(last_watch=None),
        text(running=None),
        text(running=[ONE, ONE]),
        text(killed=[KILLED | {"id": "p7"}]),
        text(killed=[KILLED | {"restarted_at": "soon"}]),
        b"[" * 100_000,
    ],
    ids=lambda data: repr(data[:24]),
)
def test_what_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode(data)


def test_a_later_servers_members_are_passed_over() -> None:
    assert decode(text(more=1, running=[ONE | {"more": [1]}])).ids == ["p7", "p3"]


@pytest.mark.parametrize(
    "change", [{"cmd": ""}, {"cmd": []}, {"cmd": "a\0"}, {"cmd": [""]}, {"env": {"A=": ""}}], ids=str
)
def test_a_command_is_checked_like_a_calls(change: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        decode(text(running=[ONE | change])).running[0].command()


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
entries = st.builds(
    Running,
    id=st.integers(1, 10**14).map("p{}".format),
    tree=st.from_regex(r"[a-z0-9-]{1,32}", fullmatch=True),
    cmd=names | st.lists(names, max_size=4),
    cwd=names,
    cwd_b64=st.none() | st.binary(max_size=20),
    env=st.dictionaries(names, names, max_size=4),
    pty=st.none() | st.builds(Size, cols=st.integers(0, 65_535), rows=st.integers(0, 65_535)),
    relaunch=st.booleans(),
    detached=st.booleans(),
    restarts=st.integers(0, 10**6),
    started_at=st.datetimes(timezones=st.just(UTC)),
)


@given(st.lists(entries, unique_by=lambda entry: entry.id, max_size=4), st.integers(0, 10**14), st.integers(0, 10**14))
def test_what_is_written_is_read_back(running: list[Running], process: int, watch: int) -> None:
    killed = [
        Killed(id="p" + "9" * 15, tree="main", cmd="x", restarted_at=AT, started_at=AT),
        Killed(id="p" + "9" * 14, tree="main", cmd="x", restarted_at=AT),
    ]
    data = encode("workspace", process, watch, map(encode_running, running), killed)
    want = ProcessRecord(
        version=1, workspace="workspace", last_process=process, last_watch=watch, running=running, killed=killed
    )
    assert decode(data) == want
    assert salvage(data).last_process >= max([process, *(int(entry.id[1:]) for entry in running)])
    assert salvage(data).last_watch >= watch


@given(st.integers(0, 400))
def test_ids_count_in_what_is_left_of_a_record(cut: int) -> None:
    """However much of it is lost: no number comes out that does not stand in what is left."""
    left = text(last_process=12, last_watch=4)[:cut]
    found = salvage(left)
    assert found.last_process <= 12
    assert found.last_process == 12 or b'"last_process": 12' not in left
    assert found.running == found.killed == []
