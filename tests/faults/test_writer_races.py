"""Many at once: clients of one server, two servers on one root, and somebody who swaps what stands at a path."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolserver.errors import ToolError
from toolserver.workspace.root import Workspace
from toolserver.writing import locks
from toolserver.writing.batch import Batch
from toolserver.writing.temps import TEMP
from toolserver.writing.writer import Writer


@pytest.fixture(params=["disk", "memory"])
def home(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A root on a disk, where changes are made in threads, and one on tmpfs, where small ones need none."""
    with tempfile.TemporaryDirectory(dir=tmp_path if request.param == "disk" else "/dev/shm") as made:
        yield pathlib.Path(made).resolve()


@pytest.fixture
def server(serve, home):
    return serve(root=home)


def temps_in(root: pathlib.Path) -> list[str]:
    return [name for _, _, names in os.walk(root) for name in names if TEMP.fullmatch(os.fsencode(name))]


def test_64_edits_at_once(server):
    """§4 of 64 concurrent edits of one file, by four names, none is lost."""
    server.put("d/f", "".join(f"<{at}>: no\n" for at in range(64)))
    (server.root / "link").symlink_to("d/f")
    (server.root / "dir").symlink_to("d")
    names = ["d/f", "link", "dir/f", f"{server.root}/d/f"]

    def edit(at: int) -> None:
        server.ok("edit", path=names[at % 4], edits=[{"old": f"<{at}>: no", "new": f"<{at}>: yes"}])

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(edit, range(64)))
    assert (server.root / "d/f").read_text() == "".join(f"<{at}>: yes\n" for at in range(64))
    assert not temps_in(server.root)


def test_same_files_in_any_order(server):
    """§4 calls over the same files in any order never wait for each other for ever."""
    for name in "abc":
        server.put(name, "0\n")

    def edit(order: str) -> None:
        files = [{"path": name, "edits": [{"old": "\n", "new": "x\n"}]} for name in order]
        for _ in range(10):
            server.ok("edit", files=files)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(edit, ["abc", "cba", "bac", "acb", "bca", "cab"]))
    assert {(server.root / name).read_text() for name in "abc"} == {"0" + "x" * 60 + "\n"}


def test_two_servers_on_one_root(serve, home):
    """§4 of the edits of two servers, on one file and on two at once, none is lost."""
    one = serve(root=home)
    two = serve(root=one.root)
    for name in "fg":
        one.put(name, "".join(f"<{at}>: no\n" for at in range(80)))

    def client(number: int) -> None:
        server = (one, two)[number % 2]
        for at in range(number * 10, number * 10 + 10):
            edits = [{"old": f"<{at}>: no", "new": f"<{at}>: yes"}]
            server.ok("edit", files=[{"path": name, "edits": edits} for name in ("fg", "gf")[number % 2]])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(client, range(8)))
    for name in "fg":
        assert (one.root / name).read_text() == "".join(f"<{at}>: yes\n" for at in range(80))
    assert not temps_in(one.root)


def test_two_servers_make_the_same_file(serve, home):
    """§4 one of two servers that make a file makes it, the other replaces it; parents made by both are there."""
    one = serve(root=home)
    two = serve(root=one.root)
    with ThreadPoolExecutor(4) as pool:
        for at in range(10):
            calls = [pool.submit(server.ok, "write", path=f"d{at}/e/f", content="x") for server in (one, two) * 2]
            assert sum(call.result()["created"] for call in calls) == 1
    assert not temps_in(one.root)


@pytest.mark.parametrize("size", [60_000, 200_000])
def test_killed_server_at_any_moment(serve, home, size):
    """§4 a server killed while it edits two files: each is its old or its new self, no temp outlives the next start."""
    one = serve(root=home)
    for name in ("f", "d/g"):
        one.put(name, "0" * size)
    for turn in range(6):
        stop = threading.Event()

        def edit(stop: threading.Event = stop) -> None:
            at = 0
            while not stop.is_set():
                edits = [{"old": f"{at % 10}", "new": f"{(at + 1) % 10}", "replace_all": True}]
                try:
                    status, _ = one.tool("edit", files=[{"path": name, "edits": edits} for name in ("f", "d/g")])
                except Exception:
                    return  # the server is gone
                at = at + 1 if status == 200 else 0 if at else at

        for name in ("f", "d/g"):
            (one.root / name).write_text("0" * size)
        client = threading.Thread(target=edit)
        client.start()
        stop.wait(0.02 + turn * 0.017)
        one.process.send_signal(signal.SIGKILL)
        client.join()
        stop.set()
        one.restart()
        for name in ("f", "d/g"):
            text = (one.root / name).read_text()
            assert text == text[:1] * size
        assert not temps_in(one.root)


# ------------------------------------------------------------------------------------- what stands at a path is swapped


@contextlib.contextmanager
def swapping(*steps: Callable[[], None]) -> Iterator[None]:
    """Do the steps over and over in another thread."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            for step in steps:
                step()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def outside(tmp_path: pathlib.Path) -> pathlib.Path:
    made = tmp_path / "outside"
    made.mkdir()
    (made / "f").write_text("secret old\n")
    return made


def one_of_two(root: pathlib.Path, name: str, made: Callable[[pathlib.Path], None]) -> Callable[[], None]:
    """Return a step that puts a new thing in the place of a name, by rename."""

    def step() -> None:
        new = root / f"new-{name}"
        made(new)
        old = root / name
        aside = root / "aside"
        for _ in range(1000):
            with contextlib.suppress(OSError):  # nothing is there, or it was written again in between
                if (old.is_dir() and not old.is_symlink()) or new.is_dir():
                    old.rename(aside)
            placed = False
            with contextlib.suppress(OSError):
                new.rename(old)
                placed = True
            if aside.is_symlink() or aside.is_file():
                aside.unlink()
            else:
                shutil.rmtree(aside, ignore_errors=True)
            if placed:
                return
        raise AssertionError(f"{new} could not take the place of {old}")

    return step


def call_many(server, paths: list[str]) -> set[int]:
    statuses = set()
    for _ in range(60):
        for path in paths:
            statuses.add(server.tool("write", path=path, content="new\n")[0])
            statuses.add(server.tool("edit", path=path, edits=[{"old": "old", "new": "new"}])[0])
    return statuses


def test_target_swapped_with_a_link(server, outside):
    """§2, §4 a file that becomes a link to outside between check and use: nothing outside is written."""
    file = one_of_two(server.root, "f", lambda new: new.write_text("old\n"))
    link = one_of_two(server.root, "f", lambda new: new.symlink_to(outside / "f"))
    file()
    with swapping(link, file):
        statuses = call_many(server, ["f"])
    assert statuses <= {200, 403, 500}
    assert (outside / "f").read_text() == "secret old\n"
    assert os.listdir(outside) == ["f"]
    assert not temps_in(server.root)


def test_folder_swapped_with_a_link(server, outside):
    """§2, §4 a folder on the way that becomes a link to outside: nothing outside is written or made."""

    def folder(new: pathlib.Path) -> None:
        new.mkdir()
        (new / "f").write_text("old\n")

    inside = one_of_two(server.root, "d", folder)
    link = one_of_two(server.root, "d", lambda new: new.symlink_to(outside))
    inside()
    with swapping(link, inside):
        statuses = call_many(server, ["d/f", "d/new/g"])
    assert statuses <= {200, 403, 500}
    assert (outside / "f").read_text() == "secret old\n"
    assert os.listdir(outside) == ["f"]


def test_target_swapped_with_a_folder(server):
    """§4 a file that becomes a folder: an error or a write, never a fault of the server."""

    def folder(new: pathlib.Path) -> None:
        new.mkdir()
        (new / "inner").write_text("kept\n")

    file = one_of_two(server.root, "f", lambda new: new.write_text("old\n"))
    file()
    with swapping(one_of_two(server.root, "f", folder), file):
        for _ in range(100):
            for name, args in (("write", {"content": "new\n"}), ("edit", {"edits": [{"old": "old", "new": "new"}]})):
                status, body = server.tool(name, path="f", **args)
                assert status == 200 or (status == 500 and "internal" not in body["error"]), body
    assert not temps_in(server.root)


# --------------------------------------------------------------------------------------------------------------- locks


def test_locked_by_another_program(tmp_path, monkeypatch):
    """A program that keeps a directory locked: a clear error after a while, in place of a call that never ends."""
    monkeypatch.setattr(locks, "PATIENCE_S", 0.1)
    writer = Writer(bytes(tmp_path))
    workspace = Workspace(str(tmp_path))
    (tmp_path / "f").write_text("old\n")
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)

    def work(batch: Batch) -> None:
        batch.look(tree.place("f")).put(b"new\n")

    with workspace.tree("main") as tree:
        with pytest.raises(ToolError, match=r"^f: another program holds a lock"):
            writer.apply(tree, work)
        os.close(held)
        writer.apply(tree, work)
    assert (tmp_path / "f").read_text() == "new\n"
