"""Attempts to start what ran before, and what stands in the record after each step."""

from __future__ import annotations

import asyncio
import json
import pathlib
from typing import Any

import pytest

from toolserver.errors import ToolError
from toolserver.processes.child import Child
from toolserver.processes.command import Command
from toolserver.processes.launch import Launcher
from toolserver.processes.restart import relaunch as module
from toolserver.processes.restart.record_lock import RecordLock
from toolserver.processes.restart.recorder import Recorder
from toolserver.processes.restart.relaunch import relaunch
from toolserver.processes.stdio import Stdio
from toolserver.processes.table import ProcessTable
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.state.activity import Activity
from toolserver.state.file import StateFile
from toolserver.watches.table import WatchTable
from toolserver.workspace.root import Workspace
from toolserver.writing.temps import TempRegistry as Temps


class Reluctant(Launcher):
    """Fails to start a command the first times."""

    def __init__(self, failures: dict[str, int]) -> None:
        super().__init__(dict)
        self.failures = failures
        self.tried: list[str] = []

    def start(self, command: Command, directory: WorkingDirectory, *, takes_input: bool) -> tuple[Child, Stdio]:
        self.tried.append(command.shown)
        if self.failures.get(command.shown, 0):
            self.failures[command.shown] -= 1
            raise ToolError(f"{command.shown} cannot be started now")
        return super().start(command, directory, takes_input=takes_input)


class Watched(StateFile):
    """Keeps each content that was written."""

    seen: list[Any]

    def write(self, data: bytes) -> None:
        super().write(data)
        self.seen.append(json.loads(data))


def entry(name: str, cmd: str) -> dict[str, Any]:
    return {
        "id": name,
        "tree": "main",
        "cmd": cmd,
        "cwd": ".",
        "env": {},
        "pty": None,
        "relaunch": True,
        "detached": True,
        "restarts": 0,
        "started_at": "2026-01-02T03:04:05Z",
    }


@pytest.fixture
def file(tmp_path: pathlib.Path) -> Watched:
    root = bytes(tmp_path.resolve())
    made = Watched(root, b"processes.json", Temps(root))
    made.seen = []
    running = [entry("p2", "sleep 501"), entry("p1", "sleep 500"), entry("p3", "sleep 502")]
    record = {"version": 1, "workspace": "x", "last_process": 9, "last_watch": 4, "running": running, "killed": []}
    made.write(json.dumps(record).encode())
    made.seen.clear()
    return made


def started(file: Watched, root: pathlib.Path, failures: dict[str, int], **more: Any) -> dict[str, Any]:
    """Relaunch from the file, end all, and answer what came of it."""

    async def scenario() -> dict[str, Any]:
        launcher = Reluctant(failures)
        watches, workspace = WatchTable(), Workspace(str(root))
        recorder = Recorder(file, "x", watches, lambda: more.get("ours", True))
        table = ProcessTable(launcher, Activity(), recorder)
        await relaunch(recorder, table, workspace)
        await recorder.settled()
        told = {
            "tried": launcher.tried,
            "running": {one.id: one.restarts for one in table.all() if one.running},
            "failed": {one.id: one.failed for one in table.lost() if one.failed},
            "killed": [one.id for one in table.lost() if not one.failed],
            "last": (table.last_number, watches.last_number),
        }
        await table.stop()
        await recorder.close()
        return told

    return asyncio.run(scenario())


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSES", (0.0, 0.0, 0.0))


def test_three_attempts(file: Watched, tmp_path: pathlib.Path) -> None:
    """One that starts at the third attempt runs; one that does not stays exited, and the others do not wait for it."""
    told = started(file, tmp_path, {"sleep 500": 2, "sleep 501": 3})
    assert told["tried"] == ["sleep 500", "sleep 501", "sleep 502"] + ["sleep 500", "sleep 501"] * 2
    assert told["running"] == {"p1": 1, "p3": 1}
    assert set(told["failed"]) == {"p2"}
    assert "sleep 501 cannot be started now" in told["failed"]["p2"]
    assert told["last"] == (9, 4)


def test_what_is_not_yet_reached_stays_in_the_record(file: Watched, tmp_path: pathlib.Path) -> None:
    """A kill between two steps loses none: each content names all that are to run, but for those given up."""
    started(file, tmp_path, {"sleep 501": 3})
    steps = [[(one["id"], one["restarts"]) for one in content["running"]] for content in file.seen]
    assert steps[:2] == [[("p1", 1), ("p2", 0), ("p3", 0)], [("p1", 1), ("p2", 0), ("p3", 1)]]
    assert steps[-1] == [("p1", 1), ("p3", 1)]
    assert {content["last_process"] for content in file.seen} == {9}
    assert {content["last_watch"] for content in file.seen} == {4}


def test_a_stop_leaves_them_in_the_record(file: Watched, tmp_path: pathlib.Path) -> None:
    started(file, tmp_path, {})
    assert [one["id"] for one in json.loads(file.read() or b"")["running"]] == ["p1", "p2", "p3"]


def test_a_record_of_another_server(file: Watched, tmp_path: pathlib.Path) -> None:
    """Only the numbers count, and nothing is written."""
    told = started(file, tmp_path, {}, ours=False)
    assert (told["tried"], told["running"], told["killed"], told["last"]) == ([], {}, [], (9, 4))
    assert file.seen == []


def test_one_living_server_has_the_lock(tmp_path: pathlib.Path) -> None:
    first = RecordLock.take(str(tmp_path))
    assert first is not None
    assert RecordLock.take(str(tmp_path)) is None
    first.release()
    assert list(tmp_path.iterdir()) == []
    second = RecordLock.take(str(tmp_path))
    assert second is not None
    second.release()
