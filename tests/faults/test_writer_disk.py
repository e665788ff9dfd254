"""What a disk or the system may refuse in the middle of a write: nothing changes, the answer is one clear sentence."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest
from mounts import mount, mounted

from toolserver.errors import ToolError
from toolserver.workspace.root import Workspace
from toolserver.writing import commit
from toolserver.writing.batch import Batch
from toolserver.writing.temps import TEMP
from toolserver.writing.writer import Writer

BIG = b"b" * 3_000_000


@pytest.fixture
def small(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A root on a file system of 4 MiB."""
    with mount(tmp_path / "small", "-t", "tmpfs", "-o", "size=4m", "tmpfs"):
        yield tmp_path / "small"


def names(root: pathlib.Path) -> list[str]:
    """Everything below a root but the server's own directory."""
    found = [str(path.relative_to(root)) for path in root.rglob("*")]
    return sorted(name for name in found if not name.startswith(".kd"))


class Call:
    """A writer on a root, and calls of it."""

    def __init__(self, root: pathlib.Path) -> None:
        self.workspace = Workspace(str(root))
        self.writer = Writer(self.workspace.root)

    def put(self, **files: bytes) -> None:
        def work(batch: Batch) -> None:
            for name, content in files.items():
                batch.look(tree.place(name.replace("_", "/"))).put(content)

        with self.workspace.tree("main") as tree:
            self.writer.apply(tree, work)


def test_disk_full(small):
    """§4 ENOSPC: 500 with the path, also for the second of two files and for parents; then what fits is written."""
    (small / "f").write_text("old\n")
    (small / "g").write_text("old\n")
    call = Call(small)
    call.put(f=b"first\n")
    for files in ({"f": BIG * 2}, {"f": b"new\n", "g": BIG * 2}, {"g": BIG, "f": BIG}, {"d_e_f": BIG * 2}):
        with pytest.raises(ToolError, match=r"^[fgd].*: no space left on device"):
            call.put(**files)
        assert names(small) == ["f", "g"]
        assert ((small / "f").read_text(), (small / "g").read_text()) == ("first\n", "old\n")
    call.put(f=BIG)
    assert (small / "f").read_bytes() == BIG


def test_no_inodes(tmp_path):
    """§4 the same where names or inodes are used up."""
    with mount(tmp_path / "few", "-t", "tmpfs", "-o", "nr_inodes=12", "tmpfs"):
        root = tmp_path / "few"
        call = Call(root)
        (root / "f").write_text("old\n")
        call.put(f=b"old\n")
        with contextlib.suppress(OSError):
            for at in range(20):
                (root / f"fill{at}").touch()
        before = names(root)
        for files in ({"f": b"new\n"}, {"n": b"new\n"}, {"n_m_o": b"new\n"}):
            with pytest.raises(ToolError, match="no space left on device"):
                call.put(**files)
            assert names(root) == before
        assert (root / "f").read_text() == "old\n"


def test_read_only(tmp_path):
    """§4 EROFS: 500, nothing changed; a file in a part that can be written is put back."""
    root = tmp_path / "root"
    (root / "shut").mkdir(parents=True)
    (root / "shut/f").write_text("old\n")
    (root / "f").write_text("old\n")
    with mount(root / "shut", "--bind", str(root / "shut")):
        mounted("-o", "remount,ro,bind", str(root / "shut"))
        call = Call(root)
        for files in ({"shut_f": b"new\n"}, {"f": b"new\n", "shut_f": b"new\n"}, {"shut_n_m": b"new\n"}):
            with pytest.raises(ToolError, match=r"^shut/.*: the file system is read-only"):
                call.put(**files)
            assert names(root) == ["f", "shut", "shut/f"]
            assert (root / "f").read_text() == (root / "shut/f").read_text() == "old\n"


def test_over_mounts(tmp_path):
    """§4 EXDEV: files on other file systems below the root are written beside themselves."""
    with mount(tmp_path / "other", "-t", "tmpfs", "tmpfs"):
        call = Call(tmp_path)
        call.put(f=b"1\n", other_g=b"2\n", other_n_m_h=b"3\n")
        assert names(tmp_path) == ["f", "other", "other/g", "other/n", "other/n/m", "other/n/m/h"]
        call.put(other_g=b"two\n", f=b"one\n")
        assert ((tmp_path / "f").read_text(), (tmp_path / "other/g").read_text()) == ("one\n", "two\n")


def test_file_that_is_a_mount(tmp_path):
    """§4 a file that cannot be replaced, since it is a mount of its own: 500, and the file before it is put back."""
    for name in ("f", "g", "h", "source"):
        (tmp_path / name).write_text(f"old {name}\n")
    mounted("--bind", str(tmp_path / "source"), str(tmp_path / "g"))
    try:
        before = os.stat(tmp_path / "f")
        with pytest.raises(ToolError, match=r"^g: "):
            Call(tmp_path).put(f=b"new\n", n_m=b"new\n", g=b"new\n", h=b"new\n")
        assert [(tmp_path / name).read_text() for name in "fgh"] == ["old f\n", "old source\n", "old h\n"]
        assert (os.stat(tmp_path / "f").st_ino, os.stat(tmp_path / "f").st_mtime_ns) == (
            before.st_ino,
            before.st_mtime_ns,
        )
        assert names(tmp_path) == ["f", "g", "h", "source"]
    finally:
        subprocess.run(["umount", tmp_path / "g"], check=True)


def refuse(code: int):
    def step(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return step


@pytest.fixture(params=["unnamed temps", "named temps", "no exchange", "no hard links either"])
def poor(request, monkeypatch):
    """File systems with fewer and fewer means."""
    if request.param != "unnamed temps":
        monkeypatch.setattr(commit, "OPEN_TEMPS", 0)
    if request.param.startswith("no "):
        monkeypatch.setattr(commit, "exchange", refuse(errno.EINVAL))
    if request.param == "no hard links either":
        monkeypatch.setattr(commit.os, "link", refuse(errno.EPERM))
    return request.param


def test_poor_file_systems(tmp_path, monkeypatch, poor):
    """§4 the same holds without O_TMPFILE, without RENAME_EXCHANGE, and without hard links."""
    (tmp_path / "f").write_text("old f\n")
    (tmp_path / "g").write_text("old g\n")
    os.chmod(tmp_path / "f", 0o755)
    call = Call(tmp_path)
    call.put(n_m=b"1\n", f=b"2\n", g=b"3\n")
    assert [(tmp_path / name).read_text() for name in ("n/m", "f", "g")] == ["1\n", "2\n", "3\n"]
    with monkeypatch.context() as patch:
        # the last step of three fails
        patch.setattr(commit, "replace", refuse(errno.EIO))
        if commit.OPEN_TEMPS == 0:
            rename = os.rename

            def last_fails(old, new, **dirs):
                if new == b"g" and TEMP.fullmatch(old):
                    monkeypatch.undo()
                    raise OSError(errno.EIO, "Input/output error")
                rename(old, new, **dirs)

            patch.setattr(commit.os, "rename", last_fails)
        with pytest.raises(ToolError, match=r"^g: input/output error"):
            call.put(f=b"x\n", o_p=b"x\n", g=b"x\n")
    assert names(tmp_path) == ["f", "g", "n", "n/m"]
    assert [(tmp_path / name).read_text() for name in ("n/m", "f", "g")] == ["1\n", "2\n", "3\n"]
    assert os.stat(tmp_path / "f").st_mode & 0o777 == 0o755


def test_put_back_that_fails(tmp_path, monkeypatch):
    """A put-back that fails too: the error says where the old content is, and it stays there."""
    for name in "fg":
        (tmp_path / name).write_text(f"old {name}\n")
    call = Call(tmp_path)
    calls = []
    real = commit.exchange

    def once(*args):
        calls.append(args)
        if len(calls) > 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(*args)

    monkeypatch.setattr(commit, "exchange", once)
    monkeypatch.setattr(commit, "replace", refuse(errno.ENOSPC))
    with pytest.raises(
        ToolError, match=r"^g: no space.*; then f .* could not be put back; the old content is in "
    ) as told:
        call.put(f=b"new f\n", g=b"new g\n")
    kept = tmp_path / str(told.value).rpartition(" in ")[2]
    assert kept.read_text() == "old f\n"
    call.writer.close()
    Writer(call.workspace.root).close()
    assert kept.read_text() == "old f\n"


def test_keeps_changing(tmp_path):
    """A file that somebody changes all the time without a lock: a clear error in the end, its last content stays."""
    (tmp_path / "f").write_text("0")
    call = Call(tmp_path)

    def work(batch: Batch) -> None:
        file = batch.look(tree.place("f"))
        number = int(file.content())
        (tmp_path / "f").write_text(str(number + 1) * 2)
        (tmp_path / "f").write_text(str(number + 1))
        file.put(b"mine")

    with call.workspace.tree("main") as tree, pytest.raises(ToolError, match=r"^f keeps changing"):
        call.writer.apply(tree, work)
    assert int((tmp_path / "f").read_text()) > 1
