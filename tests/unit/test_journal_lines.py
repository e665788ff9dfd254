"""The journal: whole lines, its limits, and what it does where it cannot write."""

from __future__ import annotations

import json
import logging
import os
import pathlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from toolserver.state import journal
from toolserver.state.journal import Journal, Line

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def line(summary: str = "true", **more: object) -> Line:
    fields = {"tool": "exec", "summary": summary, "outcome": "ok", "ms": 1, "paths": [], "task": None} | more
    return Line(**fields)  # type: ignore[arg-type]


@pytest.fixture
def book() -> Iterator[Journal]:
    made = Journal(lambda: "the-token")
    yield made
    made.close()


def days(root: pathlib.Path) -> dict[str, list[dict[str, object]]]:
    where = root / ".kd" / "journal"
    return {one.name: [json.loads(text) for text in one.read_text().splitlines()] for one in sorted(where.iterdir())}


def test_a_line_is_whole_and_dated(tmp_path: pathlib.Path, book: Journal) -> None:
    book.add(os.fsencode(tmp_path), line(paths=["a"], task="t1"), NOON)
    (told,) = days(tmp_path)["2026-03-04.ndjson"]
    assert told == {
        "at": "2026-03-04T12:00:00.000Z",
        "tool": "exec",
        "summary": "true",
        "outcome": "ok",
        "ms": 1,
        "paths": ["a"],
        "task": "t1",
    }
    assert (tmp_path / ".kd" / "journal" / "2026-03-04.ndjson").stat().st_mode & 0o777 == 0o600


def test_a_new_day_is_a_new_file(tmp_path: pathlib.Path, book: Journal) -> None:
    for hours in (0, 11.9, 12.1):
        book.add(os.fsencode(tmp_path), line(), NOON + timedelta(hours=hours))
    assert {name: len(lines) for name, lines in days(tmp_path).items()} == {
        "2026-03-04.ndjson": 2,
        "2026-03-05.ndjson": 1,
    }


def test_secrets_are_taken_out_everywhere(tmp_path: pathlib.Path, book: Journal) -> None:
    given = line("echo the-token", outcome="error: the-token", paths=["the-token.txt"], secrets=("hunter2",))
    book.add(os.fsencode(tmp_path), given, NOON)
    book.add(os.fsencode(tmp_path), line("echo hunter2", secrets=("hunter2",)), NOON)
    text = (tmp_path / ".kd" / "journal" / "2026-03-04.ndjson").read_text()
    assert "the-token" not in text
    assert "hunter2" not in text


def test_a_secret_at_the_cut_is_not_half_shown(tmp_path: pathlib.Path, book: Journal) -> None:
    book.add(os.fsencode(tmp_path), line("x" * 495 + " the-token"), NOON)
    (told,) = days(tmp_path)["2026-03-04.ndjson"]
    assert told["summary"] == "x" * 495 + " ***"


def test_a_torn_line_is_ended_first(tmp_path: pathlib.Path, book: Journal) -> None:
    where = tmp_path / ".kd" / "journal"
    where.mkdir(parents=True)
    (where / "2026-03-04.ndjson").write_text('{"at": "torn')
    book.add(os.fsencode(tmp_path), line(), NOON)
    first, second = (where / "2026-03-04.ndjson").read_text().splitlines()
    assert first == '{"at": "torn'
    assert json.loads(second)["summary"] == "true"


def test_it_is_made_anew_where_it_was_removed(tmp_path: pathlib.Path, book: Journal) -> None:
    root = os.fsencode(tmp_path)
    book.add(root, line("one"), NOON)
    (tmp_path / ".kd" / "journal" / "2026-03-04.ndjson").unlink()
    book.add(root, line("two"), NOON)
    assert [one["summary"] for one in days(tmp_path)["2026-03-04.ndjson"]] == ["two"]


@pytest.mark.parametrize("place", [".kd", ".kd/journal", ".kd/journal/2026-03-04.ndjson"])
def test_links_are_never_written_through(
    tmp_path: pathlib.Path, book: Journal, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    target = outside / "file" if place.endswith("ndjson") else outside
    if place.endswith("ndjson"):
        target.write_text("")
    (root / place).parent.mkdir(parents=True)
    (root / place).symlink_to(target)
    with caplog.at_level(logging.WARNING, logger="toolserver.journal"):
        for _ in range(3):
            book.add(os.fsencode(root), line(), NOON)
    assert [one.name for one in outside.iterdir()] == (["file"] if place.endswith("ndjson") else [])
    assert not target.is_file() or target.read_text() == ""
    assert len(caplog.records) == 1


def test_fourteen_days_are_kept(tmp_path: pathlib.Path, book: Journal) -> None:
    where = tmp_path / ".kd" / "journal"
    where.mkdir(parents=True)
    for back in range(1, 20):
        (where / f"{NOON - timedelta(days=back):%Y-%m-%d}.ndjson").write_text("{}\n")
    (where / "notes.txt").write_text("mine")
    (where / "2026-01-01.ndjson.bak").write_text("mine")
    book.add(os.fsencode(tmp_path), line(), NOON)
    names = {one.name for one in where.iterdir()}
    assert {"notes.txt", "2026-01-01.ndjson.bak"} < names
    assert len(names) - 2 == 14
    assert "2026-02-19.ndjson" in names
    assert "2026-02-18.ndjson" not in names


def test_the_oldest_days_go_where_all_are_too_large(
    tmp_path: pathlib.Path, book: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOST_BYTES", 1000)
    where = tmp_path / ".kd" / "journal"
    where.mkdir(parents=True)
    for back in (1, 2, 3):
        (where / f"{NOON - timedelta(days=back):%Y-%m-%d}.ndjson").write_text("x" * 399 + "\n")
    book.add(os.fsencode(tmp_path), line(), NOON)
    assert {one.name for one in where.iterdir()} == {"2026-03-02.ndjson", "2026-03-03.ndjson", "2026-03-04.ndjson"}


def test_a_day_that_alone_is_too_large_loses_its_oldest_lines(
    tmp_path: pathlib.Path, book: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOST_BYTES", 4000)
    monkeypatch.setattr(journal, "CHECK_EVERY", 1000)
    for number in range(200):
        book.add(os.fsencode(tmp_path), line(f"true {number}"), NOON)
        size = (tmp_path / ".kd" / "journal" / "2026-03-04.ndjson").stat().st_size
        assert size <= 4000 + 1000 + 200
    told = [str(one["summary"]) for one in days(tmp_path)["2026-03-04.ndjson"]]
    assert told == [f"true {number}" for number in range(200 - len(told), 200)]


def test_a_full_disk_leaves_no_half_line(
    tmp_path: pathlib.Path, book: Journal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = os.fsencode(tmp_path)
    book.add(root, line("one"), NOON)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[:5]))
        book.add(root, line("lost"), NOON)
    assert "the journal cannot be written" in caplog.text
    book.add(root, line("two"), NOON)
    assert [one["summary"] for one in days(tmp_path)["2026-03-04.ndjson"]] == ["one", "two"]


def test_few_files_stay_open(tmp_path: pathlib.Path, book: Journal) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(60):
        (tmp_path / str(number)).mkdir()
        book.add(os.fsencode(tmp_path / str(number)), line(), NOON)
    assert len(os.listdir("/proc/self/fd")) <= before + 2 * journal.OPEN_TREES
    book.close()
    assert len(os.listdir("/proc/self/fd")) == before
