"""Which processes a killed server has left: those of its children's sessions, and nobody else's."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import time

import pytest

from toolserver.processes.procfs import Status, ticks
from toolserver.processes.restart.children import ChildNote, Children, Entry
from toolserver.processes.restart.orphans import _of_sessions, _with_descendants, sweep


def process(pid: int, start: int, session: int) -> Status:
    return Status(pid, b"x", b"S", 1, session, session, start)


@pytest.mark.parametrize(
    ("note", "ours"),
    [
        (ChildNote(8, 100, 101, 0, 0), {8, 9, 10}),
        (ChildNote(8, 90, 99, 0, 0), set()),  # the pid is another's now, so its session is, too
        (ChildNote(8, 102, 103, 0, 0), set()),
        (ChildNote(8, 100, 101, 110, 0), {8, 9}),  # it had ended before 10 began
        (ChildNote(7, 100, 101, 0, 0), {20, 21}),  # it has gone, whoever is in its session came after it
        (ChildNote(7, 100, 101, 115, 0), {20}),
        (ChildNote(7, 140, 141, 0, 0), set()),
        (ChildNote(0, 100, 100, 0, 0), set()),
    ],
)
def test_members_of_a_session(note: ChildNote, ours: set[int]) -> None:
    found = [process(8, 100, 8), process(9, 105, 8), process(10, 120, 8), process(20, 110, 7), process(21, 130, 7)]
    assert {one.pid for one in _of_sessions({one.pid: one for one in found}, [note])} == ours


def test_parents_come_first() -> None:
    """Whatever the order in which they are found: a shell must not go on with its next command."""
    chain = [Status(pid, b"x", b"S", parent, 60, 60, 100) for pid, parent in [(60, 1), (50, 60), (70, 50), (40, 70)]]
    seen = {one.pid: one for one in sorted(chain, key=lambda one: one.pid)}
    for found in (chain, chain[::-1], chain[:1], [chain[3], chain[1], chain[0]]):
        assert [one.pid for one in _with_descendants(seen, found)] == [60, 50, 70, 40]


@pytest.fixture
def notes(tmp_path: pathlib.Path) -> Children:
    return Children(str(tmp_path / "state"))


def leave(notes: Children) -> None:
    """Let go of the file as a kill does."""
    os.close(notes._fd)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_child_that_was_being_started(tmp_path: pathlib.Path, notes: Children, stream: str) -> None:
    """The server is killed before it knows the pid: the pipe tells; a bystander that began then lives on."""
    read, write = os.pipe()
    notes.starting(os.fstat(read).st_ino)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | {stream: write}
    with (
        subprocess.Popen(["sh", "-c", "sleep 500; :"], start_new_session=True, **streams) as child,
        subprocess.Popen(["sleep", "500"], start_new_session=True) as other,
    ):
        os.close(write)
        leave(notes)
        sweep(str(tmp_path / "state"), os.fsencode(tmp_path))
        assert child.wait(10) == -signal.SIGKILL
        assert os.read(read, 1) == b""  # its own child, too, has let go of the pipe
        assert other.poll() is None
        other.kill()
    os.close(read)
    assert not list((tmp_path / "state").iterdir())


def test_one_that_was_not_started_leaves_no_note(tmp_path: pathlib.Path, notes: Children) -> None:
    read, write = os.pipe()
    notes.not_started(notes.starting(os.fstat(read).st_ino))
    with subprocess.Popen(["sleep", "500"], stdout=write, start_new_session=True) as other:
        leave(notes)
        sweep(str(tmp_path / "state"), os.fsencode(tmp_path))
        assert other.poll() is None
        other.kill()
    os.close(read)
    os.close(write)


def test_a_group_that_outlives_its_leader(notes: Children) -> None:
    """Its line stays, with the moment of the end, until the group has gone; then it is used again."""
    with subprocess.Popen(["sh", "-c", "sleep 500 & exit 0"], start_new_session=True) as leader:
        entry = notes.starting(0)
        notes.started(entry, leader.pid)
    notes.ended(entry)
    fields = os.pread(notes._fd, 80, 128).split()
    assert int(fields[0]) == leader.pid
    assert entry.first <= int(fields[3]) <= ticks()
    with contextlib.suppress(ProcessLookupError):
        for _ in range(1000):
            os.killpg(leader.pid, signal.SIGKILL)
            time.sleep(0.01)
    others = [notes.starting(0) for _ in range(300)]
    for other in others:
        other.pid = 2**22 + 1  # no process can have it
        notes.ended(other)
    assert os.pread(notes._fd, 80, 128).isspace()
    assert isinstance(notes.starting(0), Entry)
    assert notes._slots == 301
    notes.close()
