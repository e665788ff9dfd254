"""The writer by itself: what a batch shows, what a commit keeps, what conflicts do."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pathlib
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolserver.errors import BadArgument, OutsideTree, ToolError
from toolserver.state.kd import open_kd
from toolserver.workspace.paths import Tree
from toolserver.workspace.root import Workspace
from toolserver.writing import writer as writers
from toolserver.writing.batch import BRIEF_LIMIT, Batch, File
from toolserver.writing.temps import TEMP, TempRegistry, temp_name
from toolserver.writing.writer import Writer


class Desk:
    """A root, a writer, and changes written as functions of `look`."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.workspace = Workspace(str(root))
        self.writer = Writer(self.workspace.root)

    def change(self, work: Callable[[Callable[[str], File]], Any], keep: str = "") -> Any:
        with self.workspace.tree("main") as tree:

            def run(batch: Batch) -> Any:
                batch.keep.add(keep.encode())
                return work(lambda name: batch.look(tree.place(name)))

            return self.writer.apply(tree, run)

    def put(self, name: str, text: str = "old\n", mode: int = 0o644) -> pathlib.Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def names(self) -> list[str]:
        found = (str(path.relative_to(self.root)) for path in self.root.rglob("*"))
        return sorted(name for name in found if not name.startswith(".kd"))


@pytest.fixture
def desk(tmp_path: pathlib.Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.writer.close()
    assert [name for name in os.listdir(tmp_path) if TEMP.fullmatch(name.encode())] == []


def mode_of(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ------------------------------------------------------------------------------------------------------ what is staged


def test_staged_state(desk):
    """A file of a batch shows what is staged, and what is on disk beside it."""
    desk.put("f", "old\n", 0o755)

    def work(look):
        file = look("f")
        assert (file.exists, file.on_disk, file.content(), file.mode) == (True, True, b"old\n", 0o755)
        file.put([b"ne", memoryview(b"w\n")])
        assert (file.content(), file.original(), file.mode) == (b"new\n", b"old\n", 0o755)
        file.remove()
        assert (file.exists, file.on_disk, file.original()) == (False, True, b"old\n")
        with pytest.raises(ToolError, match="f: no such file"):
            file.content()
        file.put(b"again\n")
        assert (file.exists, file.mode) == (True, 0o644)
        new = look("n/m")
        assert (new.exists, new.on_disk, new.mode) == (False, False, 0o644)
        new.put(b"x")
        new.remove()
        assert not new.changed

    desk.change(work)
    assert desk.names() == ["f"]
    assert (desk.root / "f").read_text() == "again\n"


def test_one_file_by_many_names(desk):
    """§4 files are told apart by what they are."""
    desk.put("d/f")
    (desk.root / "link").symlink_to("d/f")
    (desk.root / "dir").symlink_to("d")
    (desk.root / "absolute").symlink_to(desk.root / "d/f")

    def work(look):
        files = {look(name) for name in ("d/f", "link", "dir/f", "./d//f", "absolute", f"{desk.root}/d/f")}
        assert len(files) == 1
        return files.pop().path

    assert desk.change(work) == b"d/f"


def test_main_and_a_tree(desk):
    """§4 main's path to a file of a tree is the same file; the lock is one."""
    desk.put(".agents/one/f", "0\n")

    async def both() -> None:
        def more(tree: Tree, name: str) -> Callable[[Batch], None]:
            def work(batch: Batch) -> None:
                runs.append(name)
                file = batch.look(tree.place(name))
                file.put(b"%d\n" % (int(file.content()) + 1))

            return work

        with desk.workspace.tree("main") as main, desk.workspace.tree("one") as one:
            calls = [
                desk.writer.change(tree, [tree.place(name)], more(tree, name))
                for tree, name in ((main, ".agents/one/f"), (one, "f"))
                for _ in range(10)
            ]
            await asyncio.gather(*calls)

    runs: list[str] = []
    asyncio.run(both())
    assert (desk.root / ".agents/one/f").read_text() == "20\n"
    assert len(runs) == 20  # nobody had to start over


def test_outside(desk, tmp_path_factory):
    """A link that leads out is refused, before and in the batch."""
    outside = tmp_path_factory.mktemp("outside")
    (desk.root / "out").symlink_to(outside)
    with pytest.raises(OutsideTree):
        desk.change(lambda look: look("out/f").put(b"x"))
    with desk.workspace.tree("main") as tree, pytest.raises(OutsideTree):
        asyncio.run(desk.writer.change(tree, [tree.place("out/f")], lambda batch: None))
    assert os.listdir(outside) == []


@pytest.mark.parametrize(("name", "told"), [("d", "directory"), ("fifo", "FIFO"), (".", "directory")])
def test_what_is_no_file(desk, name, told):
    desk.put("d/f")
    os.mkfifo(desk.root / "fifo")
    for work in (
        lambda look: look(name).put(b"x"),
        lambda look: look(name).remove(),
        lambda look: look(name).content(),
    ):
        with pytest.raises(ToolError, match=told):
            desk.change(work)
    assert desk.names() == ["d", "d/f", "fifo"]


def test_is_link(desk):
    desk.put("d/f")
    (desk.root / "link").symlink_to("d/f")
    (desk.root / "dir").symlink_to("d")
    (desk.root / "d/inner").symlink_to("f")
    with desk.workspace.tree("main") as tree, Batch(tree) as batch:
        links = [name for name in ("d/f", "link", "dir", "dir/f", "dir/inner", ".", "none", "d/f/x") if
                 batch.is_link(tree.place(name))]  # fmt: skip
    assert links == ["link", "dir", "dir/inner"]


def test_limit(desk):
    """§4 over the limit: 500 with the size, read or written; the caller may set another limit."""
    desk.put("f", "12345")
    with desk.workspace.tree("main") as tree:
        for work in (
            lambda batch: batch.look(tree.place("f")).content(),
            lambda batch: batch.look(tree.place("g")).put(b"12345"),
            lambda batch: batch.look(tree.place("g")).put([b"123", b"45"]),
        ):
            with pytest.raises(ToolError, match=r"^[fg]: 5 bytes, more than the 4 "):
                desk.writer.apply(tree, work, limit=4)
            desk.writer.apply(tree, work, limit=5)


# ---------------------------------------------------------------------------------------------------- what is kept


def test_modes_and_owners(desk):
    """§4 mode and owner of the target are kept; `mode` is lessened by the umask; `like` takes both over."""
    old = desk.put("f", mode=0o4755)
    if os.geteuid() == 0:
        os.chown(old, 12345, 54321)
        old.chmod(0o4755)
    before = old.stat()

    def work(look):
        look("f").put(b"new\n")
        look("plain").put(b"x")
        look("script").put(b"x", mode=0o777)
        look("moved").put(b"x", like=look("f"))

    desk.change(work)
    for name in ("f", "moved"):
        after = (desk.root / name).stat()
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    umask = os.umask(0o077)
    os.umask(umask)
    assert mode_of(desk.root / "plain") == 0o644 & ~umask
    assert mode_of(desk.root / "script") == 0o777 & ~umask
    desk.change(lambda look: look("plain").put(look("plain").content(), mode=0o755))
    assert mode_of(desk.root / "plain") == 0o755 & ~umask


def test_extended_attributes(desk):
    """The user's own attributes of a replaced file stay."""
    path = desk.put("f")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    desk.change(lambda look: look("f").put(b"new\n"))
    assert os.getxattr(path, "user.note") == b"kept"


def test_long_names(desk):
    """§4 a name of 255 bytes works too, also beside others in one call and in folders to be made."""
    name = "n" * 255
    for _ in range(2):
        desk.change(lambda look: [look(where).put(b"x") for where in (name, f"{name[1:]}x/{name}", "f")])
    desk.change(lambda look: look(name).remove())
    assert desk.names() == sorted(["f", f"{name[1:]}x", f"{name[1:]}x/{name}"])


def test_hard_links_part(desk):
    """A file with two names is replaced under the one that was asked for."""
    desk.put("f")
    os.link(desk.root / "f", desk.root / "g")
    desk.change(lambda look: look("f").put(b"new\n"))
    assert ((desk.root / "f").read_text(), (desk.root / "g").read_text()) == ("new\n", "old\n")


# ------------------------------------------------------------------------------------------- removals and what is empty


def test_removal_prunes(desk):
    """§4 the folders that removals empty go, up to the root or what is kept."""
    for name in ("a/b/c/f", "a/b/g", "a/h", "k/l/m"):
        desk.put(name)
    desk.change(lambda look: look("a/b/c/f").remove(prune=True))
    assert not (desk.root / "a/b/c").exists()
    desk.change(lambda look: [look("a/b/g").remove(prune=True), look("k/l/m").remove(prune=True)], keep="k")
    assert desk.names() == ["a", "a/h", "k"]
    desk.change(lambda look: look("a/h").remove())
    assert desk.names() == ["a", "k"]


def test_file_to_folder_and_back(desk):
    """§4 a path may turn from a file into a folder and back."""
    desk.put("foo")

    def to_folder(look):
        look("foo").remove(prune=True)
        look("foo/bar/baz").put(b"x")

    def to_file(look):
        look("foo/bar/baz").remove(prune=True)
        look("foo").put(b"y")

    desk.change(to_folder)
    assert desk.names() == ["foo", "foo/bar", "foo/bar/baz"]
    desk.change(to_file)
    assert desk.names() == ["foo"]
    desk.put("d/kept")
    desk.put("d/gone")

    def in_the_way(look):
        look("d/gone").remove(prune=True)
        look("d").put(b"z")

    with pytest.raises(ToolError, match=r"^d is a directory that is not empty"):
        desk.change(in_the_way)
    with pytest.raises(ToolError, match="foo/x"):
        desk.change(lambda look: look("foo/x").put(b"z"))
    with pytest.raises(ToolError, match="n/x"):
        desk.change(lambda look: [look("n").put(b"z"), look("n/x").put(b"z")])
    assert desk.names() == ["d", "d/gone", "d/kept", "foo"]


# -------------------------------------------------------------------------------------------------------- conflicts


def test_starts_over_when_the_file_changed(desk):
    """A content that changed since it was read is read again; the work runs on what is there."""
    path = desk.put("f", "0")

    def work(look):
        file = look("f")
        number = int(file.content())
        if number < meddle:
            path.write_text(str(number + 1))
        file.put(f"{number} and mine".encode())

    for meddle in (1, writers.OPTIMISTIC, writers.OPTIMISTIC + 5):
        path.write_text("0")
        desk.change(work)
        assert path.read_text() == f"{meddle} and mine"


@pytest.mark.parametrize("event", ["made", "removed", "link", "folder moved", "chmod"])
def test_starts_over_when_things_moved(desk, event):
    path = desk.put("d/f")
    runs = []

    def work(look):
        file = look("d/g" if event == "made" else "d/f")
        file.put(b"new\n")
        runs.append(file.on_disk)
        if len(runs) > 1:
            return
        if event == "made":
            desk.put("d/g", mode=0o600)
        elif event == "removed":
            path.unlink()
        elif event == "link":
            path.rename(desk.root / "d/real")
            path.symlink_to("real")
        elif event == "folder moved":
            (desk.root / "d").rename(desk.root / "e")
            desk.put("d/f", "other\n")
        else:
            path.chmod(0o755)

    desk.change(work)
    assert len(runs) == 2
    if event == "made":
        assert mode_of(desk.root / "d/g") == 0o600
    elif event == "link":
        assert path.is_symlink()
        assert (desk.root / "d/real").read_text() == "new\n"
    elif event == "folder moved":
        assert ((desk.root / "e/f").read_text(), path.read_text()) == ("old\n", "new\n")
    elif event == "chmod":
        assert mode_of(path) == 0o755


def test_a_failing_work_changes_nothing(desk):
    desk.put("f")

    def work(look):
        look("f").put(b"x")
        look("n/m").put(b"x")
        raise BadArgument("no")

    with pytest.raises(BadArgument):
        desk.change(work)
    assert desk.names() == ["f"]


def test_cancelled_call_finishes(desk):
    """A call whose caller goes away is done to its end before the next one over the same file begins."""
    desk.put("f", "0")

    async def run() -> None:
        entered, go = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def slow(batch: Batch) -> None:
            loop.call_soon_threadsafe(entered.set)
            assert go.wait(10)
            batch.look(tree.place("f")).put(b"1")

        def second(batch: Batch) -> bytes:
            return batch.look(tree.place("f")).content()

        with desk.workspace.tree("main") as tree:
            first = asyncio.create_task(desk.writer.change(tree, [tree.place("f")], slow))
            await entered.wait()
            first.cancel()
            after = asyncio.create_task(desk.writer.change(tree, [tree.place("f")], second))
            await asyncio.sleep(0)
            go.set()
            assert await after == b"1"
            with pytest.raises(asyncio.CancelledError):
                await first

    asyncio.run(run())


def test_brief_changes_stay_on_the_loop_where_nothing_waits(tmp_path):
    """In memory a small change runs on the loop; a large file, a disk, or a held lock sends it to a thread."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        asyncio.run(_brief(Desk(pathlib.Path(memory).resolve()), Desk(tmp_path)))


async def _brief(memory: Desk, disk: Desk) -> None:
    async def put(desk: Desk, content: bytes, name: str = "f") -> bool:
        """Make a change, and answer whether it ran on the loop's thread to its end."""
        seen = []

        def work(batch: Batch) -> None:
            batch.look(tree.place(name)).put(content)
            seen.append(threading.current_thread() is threading.main_thread())

        with desk.workspace.tree("main") as tree:
            await desk.writer.change(tree, [tree.place(name)], work, brief=True)
        assert (desk.root / name).read_bytes() == content
        return seen[-1]

    assert await put(memory, b"x")
    assert await put(memory, b"x" * BRIEF_LIMIT)
    assert not await put(memory, b"x" * (BRIEF_LIMIT + 1))
    assert await put(memory, b"x", "d/g")
    assert not await put(disk, b"x")
    held = os.open(memory.root, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    waiting = asyncio.create_task(put(memory, b"y"))
    for _ in range(20):  # the loop goes on meanwhile
        await asyncio.sleep(0.005)
        assert not waiting.done()
    os.close(held)
    assert not await waiting
    for desk in (memory, disk):
        desk.writer.close()


# ------------------------------------------------------------------------------------------------- records of temps


def test_record_of_a_dead_server(desk):
    """What a record without an owner names is removed, when it is a temp; of a living one nothing is touched."""
    desk.put("f")
    temp, folder, other = (temp_name().decode() for _ in range(3))
    desk.put(f"d/{temp}")
    desk.put(f"{folder}/{other}")
    desk.put("precious")
    live = TempRegistry(bytes(desk.root))
    live.add(os.fsencode(desk.root / "d" / temp))
    Writer(desk.workspace.root).close()
    assert (desk.root / "d" / temp).exists()

    (desk.root / "out").symlink_to("/")
    paths = [f"d/{temp}", folder, "precious", "f", f"d/../d/{temp}", f"none/{temp}", f"out/{temp}", f"../{temp}"]
    (desk.root / ".kd/writes" / ("0" * 24)).write_bytes(b"\0".join(path.encode() for path in paths) + b"\0")
    desk.change(lambda look: look("f").put(b"new\n"))
    assert desk.names() == ["d", "f", "out", "precious"]
    live.close()


def test_record_is_bounded_and_kept_out_of_git(desk):
    record = TempRegistry(bytes(desk.root))
    for at in range(3000):
        path = os.fsencode(desk.root / f"{at:060}" / "x")
        record.add(path)
        if at != 7:
            record.drop(path)
    (name,) = os.listdir(desk.root / ".kd/writes")
    held = (desk.root / ".kd/writes" / name).read_bytes()
    assert b"%060d/x" % 7 in held
    assert len(held) < 70_000
    assert (desk.root / ".kd/.gitignore").read_text() == "*\n"
    record.close()
    assert os.listdir(desk.root / ".kd/writes") == []


def test_state_removed_under_the_server(desk):
    """§1 `.kd` may be deleted under a running server, or be something that cannot hold a record."""
    import shutil

    desk.put("f")
    for at in range(3):
        desk.change(lambda look, at=at: look("f").put(b"%d" % at))
        shutil.rmtree(desk.root / ".kd")
    desk.writer.close()
    (desk.root / ".kd").symlink_to("/tmp")
    desk.writer = Writer(desk.workspace.root)
    desk.change(lambda look: look("f").put(b"last"))
    assert (desk.root / "f").read_text() == "last"
    root = os.open(desk.root, os.O_PATH)
    with pytest.raises(OSError):
        open_kd(root)
    os.close(root)
