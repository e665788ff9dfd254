"""`workspace.paths`: from a call's text to a descriptor inside the tree, with openat2 and without."""

from __future__ import annotations

import base64
import errno
import os
import pathlib
import threading
from collections.abc import Iterator

import pytest

from toolserver._fast.paths import collapse
from toolserver.errors import BadArgument, NotThere, OutsideTree, ToolError
from toolserver.workspace import paths
from toolserver.workspace.paths import Tree
from toolserver.workspace.root import Workspace


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    made = tmp_path / "ws"
    made.mkdir()
    (tmp_path / "ws-other").mkdir()
    (tmp_path / "ws-other" / "f").write_text("outside")
    return made


@pytest.fixture(params=["openat2", "stepwise"])
def tree(root: pathlib.Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    """The tree main, on a kernel with openat2 and on one without."""
    if request.param == "stepwise":

        def missing(*_: object, **__: object) -> int:
            raise OSError(errno.ENOSYS, "not there")

        monkeypatch.setattr(paths, "open_beneath", missing)
    workspace = Workspace(str(root))
    with workspace.tree("main") as made:
        yield made


def content(tree: Tree, path: str) -> str:
    fd, _ = tree.open_regular(tree.place(path))
    with open(fd) as file:
        return file.read()


@pytest.mark.parametrize(
    ("given", "collapsed"),
    [
        (b"", b""),
        (b".", b""),
        (b"a", b"a"),
        (b"./a//b/./", b"a/b"),
        (b"a/..", b""),
        (b"a/../b", b"b"),
        (b"a/b/../../c", b"c"),
        (b"..", None),
        (b"a/../..", None),
        (b"...", b"..."),
        (b"..a/.b", b"..a/.b"),
    ],
)
def test_collapse(given: bytes, collapsed: bytes | None) -> None:
    assert collapse(given) == collapsed


@pytest.mark.parametrize("spelling", ["", "/", "/."])
def test_root_spellings(root: pathlib.Path, spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A root with a trailing slash, as a relative path and through a link is the same root, absolute paths included."""
    (root / "f").write_text("here")
    link = root.parent / "link"
    link.symlink_to(root)
    monkeypatch.chdir(root.parent)
    for given in (str(root), "ws", "link", str(link)):
        workspace = Workspace(given + spelling)
        with workspace.tree("main") as tree:
            assert os.fsdecode(tree.root) == str(root)
            for path in ("f", f"{root}/f", f"{os.path.abspath(given)}/f"):
                assert content(tree, path) == "here"
            with pytest.raises(BadArgument, match="ws-other"):
                tree.place(f"{root}-other/f")


@pytest.mark.parametrize("target", ["../ws/f", "{root}/f", "d/../../ws/f", "in"])
def test_links_that_end_inside(tree: Tree, root: pathlib.Path, target: str) -> None:
    """What stays inside once all links are resolved is served, also where a link leaves on its way."""
    (root / "d").mkdir()
    (root / "f").write_text("here")
    (root / "in").symlink_to("f")
    (root / "l").symlink_to(target.format(root=root))
    assert content(tree, "l") == "here"


@pytest.mark.parametrize("target", ["../ws-other/f", "{root}-other/f", "/etc/passwd", "../ws-other/new"])
def test_links_that_end_outside(tree: Tree, root: pathlib.Path, target: str) -> None:
    (root / "l").symlink_to(target.format(root=root))
    with pytest.raises(OutsideTree, match=r"^l lies outside"):
        tree.open(tree.place("l"), os.O_RDONLY)


def test_loop(tree: Tree, root: pathlib.Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(ToolError, match=r"^a: too many levels"):
        tree.open(tree.place("a"), os.O_RDONLY)


def test_special_files_at_once(tree: Tree, root: pathlib.Path) -> None:
    os.mkfifo(root / "fifo")
    for path in ("fifo", "."):
        with pytest.raises(ToolError, match="not a regular file"):
            tree.open_regular(tree.place(path))


def test_link_swapped_during_calls(tree: Tree, root: pathlib.Path) -> None:
    """While a name turns from a folder into a link that leads out and back, no call ever reads what is outside."""
    (root / "real").mkdir()
    (root / "real" / "f").write_text("inside")
    (root / "out").symlink_to(root.parent / "ws-other")
    (root / "in").symlink_to(root / "real")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for target in ("out", "in"):
                os.link(root / target, root / "next", follow_symlinks=False)
                os.replace(root / "next", root / "d")
                if os.path.lexists(root / "next"):  # both names were one inode: rename did nothing
                    os.unlink(root / "next")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                seen.add(content(tree, "d/f"))
            except ToolError as error:
                seen.add(type(error))
    finally:
        stop.set()
        thread.join()
    assert "outside" not in seen
    assert seen <= {"inside", OutsideTree, NotThere, ToolError}


def test_a_root_that_was_replaced(tmp_path: pathlib.Path) -> None:
    """One made anew is served, a link in its place or on the way is not, whatever it leads to."""
    above, other = tmp_path / "above", tmp_path / "other"
    root = above / "root"
    root.mkdir(parents=True)
    (other / "root").mkdir(parents=True)
    workspace = Workspace(str(root))
    root.rmdir()
    for make, undo in (
        (lambda: root.symlink_to(other / "root"), root.unlink),
        (lambda: (above.rename(tmp_path / "moved"), above.symlink_to(other)), above.unlink),
    ):
        make()
        with pytest.raises(BadArgument, match="not there now"):
            workspace.tree("main")
        undo()
    root.mkdir(parents=True)
    (root / "new").touch()
    with workspace.tree("main") as tree:
        assert os.listdir(f"/proc/self/fd/{tree.fd}") == ["new"]


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256)), b"\xff" * 100])
def test_base64(data: bytes) -> None:
    assert paths.decode_base64(base64.b64encode(data).decode(), "f") == data


@pytest.mark.parametrize(
    "text", ["QQ", "QQ=", "Q===", "====", "QR==", "Qf==", "QUJ=", "QUF=", "QQ==\n", "Q Q==", "-_==", "QQ==QQ==", "é==="]
)
def test_malformed_base64(text: str) -> None:
    """The alphabet, the padding, and unused bits that are not zero."""
    with pytest.raises(BadArgument, match=r"^field: expected a string of standard"):
        paths.decode_base64(text, "field")


def test_base64_has_one_spelling() -> None:
    """Of all last groups exactly those are taken that encoding makes."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for last in alphabet:
        for text in (f"QQ{last}=", f"Q{last}=="):
            try:
                data = paths.decode_base64(text, "f")
            except BadArgument:
                assert base64.b64encode(base64.b64decode(text)).decode() != text
            else:
                assert base64.b64encode(data).decode() == text
