"""The queue of tasks: its file, two servers on it, and what a corrupt one leaves."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
from collections.abc import Iterator

import pytest

from toolserver.errors import ToolError
from toolserver.state.tasks import Board, Tasks
from toolserver.writing.temps import TempRegistry


@pytest.fixture
def temps(tmp_path: pathlib.Path) -> Iterator[TempRegistry]:
    made = TempRegistry(os.fsencode(tmp_path))
    yield made
    made.close()


def tasks(tmp_path: pathlib.Path, temps: TempRegistry) -> Tasks:
    (tmp_path / "state").mkdir(exist_ok=True)
    return Tasks(temps, lambda: str(tmp_path / "state"))


def add(board: Board) -> None:
    board.add("x", None, None)


def start(board: Board) -> None:
    board.start(None)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"last": 7, "queue": 5}', b'{"queue": [{"id": "t12", "title": "a"}], "la', b"\xff"]
)
def test_ids_go_on_after_a_corrupt_file(tmp_path: pathlib.Path, temps: TempRegistry, content: bytes) -> None:
    """Whatever ids a corrupt file still tells are not used again."""
    (tmp_path / ".kd").mkdir()
    (tmp_path / ".kd" / "tasks.json").write_bytes(content)
    board, notes = asyncio.run(tasks(tmp_path, temps).change(os.fsencode(tmp_path), add))
    (kept,) = (tmp_path / ".kd").glob("tasks.json.corrupt-*")
    assert kept.read_bytes() == content
    assert kept.name in notes[0]
    assert board.queue[0].id == {b'{"last': "t8", b'{"queu': "t13"}.get(content[:6], "t1")


TASK = {"id": "t1", "title": "a", "state": "queued", "created_at": "x"}


@pytest.mark.parametrize(
    "board",
    [
        {"last": 1, "queue": [TASK | {"state": "done"}]},
        {"last": 0, "queue": [TASK]},
        {"last": 2, "queue": [TASK, TASK]},
        {"last": 1, "running": TASK},
        {"last": 1, "recent": [TASK]},
        {"last": 2, "other": 1},
    ],
)
def test_a_board_that_contradicts_itself_is_corrupt(tmp_path: pathlib.Path, temps: TempRegistry, board: object) -> None:
    (tmp_path / ".kd").mkdir()
    (tmp_path / ".kd" / "tasks.json").write_text(json.dumps(board))
    _, notes = asyncio.run(tasks(tmp_path, temps).look(os.fsencode(tmp_path)))
    assert notes


def test_nothing_is_stored_where_the_change_fails(tmp_path: pathlib.Path, temps: TempRegistry) -> None:
    root = os.fsencode(tmp_path)
    of = tasks(tmp_path, temps)
    with pytest.raises(ToolError, match="no task is queued"):
        asyncio.run(of.change(root, start))
    assert not (tmp_path / ".kd" / "tasks.json").exists()


def test_two_servers_lose_nothing(tmp_path: pathlib.Path, temps: TempRegistry) -> None:
    root = os.fsencode(tmp_path)
    other_temps = TempRegistry(root)
    servers = [tasks(tmp_path, temps), tasks(tmp_path, other_temps)]

    async def both() -> None:
        await asyncio.gather(*(servers[number % 2].change(root, add) for number in range(60)))

    asyncio.run(both())
    other_temps.close()
    board, _ = asyncio.run(servers[0].look(root))
    assert sorted(int(task.id[1:]) for task in board.queue) == list(range(1, 61))


def test_the_running_one_is_told_at_once(tmp_path: pathlib.Path, temps: TempRegistry) -> None:
    """Also where another server has changed it."""
    root = os.fsencode(tmp_path)
    one, other = tasks(tmp_path, temps), tasks(tmp_path, temps)
    assert one.running(root) is None
    asyncio.run(other.change(root, add))
    assert one.running(root) is None
    asyncio.run(other.change(root, start))
    assert one.running(root) == "t1"
    asyncio.run(other.change(root, lambda board: board.finish(None, "done")))
    assert one.running(root) is None
    (tmp_path / ".kd" / "tasks.json").write_text("{")
    assert one.running(root) is None


@pytest.mark.parametrize("place", [".kd", ".kd/tasks.json"])
def test_links_are_never_written_through(tmp_path: pathlib.Path, temps: TempRegistry, place: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "tasks.json").write_text('{"last": 3}')
    (root / place).parent.mkdir(parents=True)
    (root / place).symlink_to(outside if place == ".kd" else outside / "tasks.json")
    of = tasks(tmp_path, temps)
    with pytest.raises(ToolError):
        asyncio.run(of.change(os.fsencode(root), add))
    assert (outside / "tasks.json").read_text() == '{"last": 3}'
    assert len(list(outside.iterdir())) == 1
