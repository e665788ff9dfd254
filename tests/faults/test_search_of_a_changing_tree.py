"""Files and folders that grow, shrink, vanish, move or become something else while they are searched and listed."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import random
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kit import Server

ROUNDS = 15
TAKEN = itertools.count()
STILL = {"a-still/one.txt": "a needle\nhay\n", "a-still/deep/er/two.txt": "hay\n" * 500 + "the needle\n"}
QUESTIONS: list[dict[str, Any]] = [
    {"pattern": "needle"},
    {"pattern": "NEEDLE", "ignore_case": True, "context": 2},
    {"pattern": "ne+dle\\b"},
    {"pattern": "[a-z]eedl."},
    {"pattern": "needle", "mode": "files"},
    {"pattern": "n..d\\w+", "mode": "count"},
]
CONTENTS = [
    b"",
    b"a needle\n" * 30,
    b"hay\r\nthe needle\r\n" * 2000,
    b"x" * 300_000 + b"needle" + b"y" * 10,
    b"needle\0",
    "\ufeffneedle\nhay\n".encode("utf-16-le") * 9000,
    b"\xff needle \xe2\x82\n" * 500,
]
RULES = [b"", b"*.txt\n", b"/b*/\n!keep\n", b"*\n!*/\n", b"[\n"]


def remove(path: pathlib.Path, away: pathlib.Path) -> None:
    """Remove a file or a tree, taken `away` first: else the other thread makes a FIFO of it while it is opened."""
    away /= str(next(TAKEN))
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        path.rename(away)
        shutil.rmtree(away) if away.is_dir() and not away.is_symlink() else away.unlink()


def written(path: pathlib.Path, flags: int, content: bytes = b"", size: int | None = None) -> None:
    """Write to a file, but through no link and into no FIFO; or set its size."""
    fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags, 0o644)
    try:
        os.write(fd, content) if size is None else os.ftruncate(fd, size)
    finally:
        os.close(fd)


def change(top: pathlib.Path, rng: random.Random, away: pathlib.Path) -> None:
    """Make one change at a random place of the tree, in one of the ways there are; `away`: a folder elsewhere."""
    names = ["b", "c", "d.txt", "e", "keep"]
    path = top.joinpath(*rng.choices(names, k=rng.randrange(1, 5)))
    way = rng.randrange(11)
    with contextlib.suppress(OSError):  # the other thread was faster, or the place is not of that kind
        if way == 0:
            path.rename(top.joinpath(*rng.choices(names, k=rng.randrange(1, 4))))
            return
        if way == 1:
            written(path, 0, size=rng.choice([0, 1, 4096, 200_000, 3_000_000]))
            return
        if way == 2:
            written(path.parent / rng.choice([".gitignore", ".ignore"]), os.O_CREAT | os.O_TRUNC, rng.choice(RULES))
            return
        if way == 3:
            written(path, os.O_CREAT | os.O_APPEND, rng.choice(CONTENTS))
            return
        remove(path, away)
        path.parent.mkdir(parents=True, exist_ok=True)
        match way:
            case 4:
                os.mkfifo(path)
            case 5:
                path.mkdir()
            case 6:
                path.symlink_to(rng.choice(["/etc/hostname", "../b", "d.txt", "../../a-still/one.txt", "e"]))
            case 7:
                pass
            case _:
                written(path, os.O_CREAT | os.O_TRUNC, rng.choice(CONTENTS))


def check_grep(got: dict[str, Any], mode: str) -> None:
    """Every entry is whole, in order, and holds what was asked for; what stands still is told exactly."""
    entries = got[{"content": "matches", "files": "files", "count": "counts"}[mode]]
    paths = [entry if mode == "files" else entry["path"] for entry in entries]
    assert paths[:2] == sorted(STILL)
    if mode == "content":
        places = [(entry["path"].split("/"), entry["line"]) for entry in entries]
        assert places == sorted(places)
        assert all("needle" in entry["text"] for entry in entries)
        assert [(entry["path"], entry["line"]) for entry in entries[:2]] == [
            (sorted(STILL)[0], 501),
            (sorted(STILL)[1], 1),
        ]
    else:
        assert len(set(paths)) == len(paths)
    if mode == "count":
        assert all(entry["count"] > 0 for entry in entries)
        assert [entry["count"] for entry in entries[:2]] == [1, 1]


@pytest.mark.parametrize("seed", range(2))
def test_every_answer_is_clear(server: Server, tmp_path: pathlib.Path, seed: int) -> None:
    for name, content in STILL.items():
        server.put(name, content)
    stop = threading.Event()
    top = server.root / "moving"

    def changes(side: int) -> None:
        rng = random.Random(2 * seed + side)
        while not stop.is_set():
            change(top, rng, tmp_path)

    changing = [threading.Thread(target=changes, args=[side]) for side in range(2)]
    for thread in changing:
        thread.start()
    try:
        seen: set[str] = set()
        for _ in range(ROUNDS):
            for question in QUESTIONS:
                check_grep(server.ok("grep", **question), question.get("mode", "content"))
            paths = server.ok("glob", pattern="**/*")["paths"]
            assert set(STILL) <= set(paths)
            assert len(set(paths)) == len(paths)
            seen.update(paths)
            for cwd in ("moving", "moving/b", "moving/d.txt"):
                for tool, more in (("grep", {"pattern": "needle"}), ("glob", {"pattern": "*"})):
                    status, answer = server.tool(tool, cwd=cwd, **more)
                    assert status in (200, 403, 500), answer
                    assert status == 200 or (cwd in answer["error"] and "internal error" not in answer["error"])
    finally:
        stop.set()
        for thread in changing:
            thread.join()
    assert any(path.startswith("moving/") for path in seen)
    assert server.http.get("/healthz").json()["ok"] is True
