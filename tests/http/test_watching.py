"""Watches over HTTP, while real programs change the tree (specification, section 8)."""

from __future__ import annotations

import base64
import os
import pathlib
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from commands import eventually

if TYPE_CHECKING:
    from kit import Server

Told = list[tuple[str, str]]


class Watching:
    """A watch of a server's whole tree, whose events are applied to a listing of its own."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.id = server.ok("watch", paths=["."])["id"]
        self.names = self.on_disk()
        self.dropped = 0
        self._next = 0
        self._marks = 0

    def on_disk(self) -> set[str]:
        found = {str(path.relative_to(self.server.root)) for path in self.server.root.rglob("*")}
        return {
            name for name in found if pathlib.PurePath(name).parts[0] not in (".git", ".kd", ".agents", ".a.txt.swp")
        }

    def told(self) -> Told:
        """Return what has been reported up to now, of which nothing may be missing, and apply it."""
        self._marks += 1
        mark = f"mark{self._marks}"
        self.server.put(mark)
        events: list[dict[str, Any]] = []

        def marked() -> bool:
            answer = self.server.ok("watch_poll", id=self.id, since=self._next)
            self._next = answer["next"]
            self.dropped += answer["dropped"]
            events.extend(answer["events"])
            return any(event["path"] == mark for event in answer["events"])

        eventually(marked)
        told = [(event["path"], event["kind"]) for event in events]
        self.apply(told)
        return [change for change in told if change[0] != mark]

    def apply(self, told: Told) -> None:
        for path, kind in told:
            if kind == "create":
                assert path not in self.names, f"{path} was created twice"
                self.names.add(path)
            elif kind == "remove":
                self.names.remove(path)
            else:
                assert path in self.names
                assert not (self.server.root / path).is_dir()
        assert self.names == self.on_disk()


def test_ignore_files(server: Server) -> None:
    """An ignore file raises the event of its own change, and those around it are as they are without it."""
    server.put("w/a")
    one = Watching(server)
    server.put("w/.gitignore", "x/\n")
    assert one.told() == [("w/.gitignore", "create")]
    server.ok("write", path="w/.ignore", content="x/\n")
    assert one.told() == [("w/.ignore", "create")]
    server.put("w/.gitignore", "y/\n")
    server.put("w/c.txt", "new")
    server.put("w/d/e.txt", "new")
    assert sorted(one.told()) == [
        ("w/.gitignore", "modify"),
        ("w/c.txt", "create"),
        ("w/d", "create"),
        ("w/d/e.txt", "create"),
    ]
    server.ok("write", path="w/.ignore", content="z/\n")
    assert one.told() == [("w/.ignore", "modify")]
    (server.root / "w/.ignore").unlink()
    assert one.told() == [("w/.ignore", "remove")]
    assert one.dropped == 0


def test_large_ignore_files(server: Server) -> None:
    """A watch reads an ignore file of 2 MiB as a search does; a link and a FIFO hold no rules for either."""
    server.put("big/.gitignore", "# filler\n" * 240_000 + "build/\n")
    server.put("link/real", "build/\n")
    (server.root / "link/.gitignore").symlink_to("real")
    (server.root / "fifo").mkdir()
    os.mkfifo(server.root / "fifo/.gitignore")
    folders = ("big", "link", "fifo")
    for folder in folders:
        server.put(f"{folder}/build/old", "needle")
    shown = {
        str(pathlib.PurePath(path).parent.parent) for path in server.ok("grep", pattern="needle", mode="files")["files"]
    }
    assert shown == {"link", "fifo"}
    one = Watching(server)
    for folder in folders:
        server.put(f"{folder}/build/new", "needle")
    one.names.add("big/build/new")
    assert {path for path, _ in one.told()} == {f"{folder}/build/new" for folder in shown}


def test_names_that_are_not_utf8(server: Server) -> None:
    """An event of such a name holds `path_b64`, any other does not; the paths of a batch are strings alone."""
    watch = server.ok("watch", paths=["."])["id"]
    batches = server.ok("watch", paths=["."], cmd="true")["id"]
    raw = b"d\xff/\xfe"
    folder = os.fsencode(server.root)
    os.mkdir(folder + b"/d\xff")
    os.close(os.open(folder + b"/" + raw, os.O_CREAT | os.O_WRONLY, 0o644))
    server.put("plain")

    def events(name: str, count: int) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = server.ok("watch_poll", id=name)["events"]
        return answer if len(answer) >= count else []

    found = {event["path"]: event for event in eventually(lambda: events(watch, 3))}
    assert found["d\ufffd/\ufffd"]["path_b64"] == base64.b64encode(raw).decode()
    assert found["d\ufffd"]["path_b64"] == base64.b64encode(b"d\xff").decode()
    assert found["plain"] == {"path": "plain", "kind": "create"}
    paths = [path for event in eventually(lambda: events(batches, 1)) for path in event["paths"]]
    assert "d\ufffd" in paths


def test_saved_by_an_editor(server: Server) -> None:
    """A file that is saved as vim, emacs, GNOME's and JetBrains' editors do is modified, and nothing else is told."""
    text = server.put("a.txt", "1")
    one = Watching(server)
    (server.root / "4913").touch()  # vim: may it write here?
    (server.root / "4913").unlink()
    (server.root / ".a.txt.swp").touch()
    text.rename(server.root / "a.txt~")
    text.write_text("2")
    (server.root / "a.txt~").unlink()
    assert one.told() == [("a.txt", "modify")]
    (server.root / ".#a.txt").symlink_to("user@host.1")  # emacs
    (server.root / "#a.txt#").write_text("3")
    text.write_text("3")
    (server.root / ".#a.txt").unlink()
    (server.root / "#a.txt#").unlink()
    (server.root / ".a.txt.swp").unlink()
    assert one.told() == [("a.txt", "modify")]
    for temporary in (".goutputstream-XY12", "a.txt___jb_tmp___"):
        (server.root / temporary).write_text("4")
        (server.root / temporary).rename(text)
        assert one.told() == [("a.txt", "modify")]


def test_sed_in_place(server: Server) -> None:
    server.put("a.txt", "one\n")
    one = Watching(server)
    subprocess.run(["sed", "-i", "s/one/two/", "a.txt"], cwd=server.root, check=True)
    assert ("a.txt", "modify") in one.told()


def test_git_checkout(server: Server) -> None:
    """Switching branches, ignore files among what differs, leads from one listing to the other."""
    server.git("init", "-q", "-b", "one")
    for name in ("same", "changed", "gone/deep/f", "kind"):
        server.put(name, "1")
    server.put(".gitignore", "build/\n")
    server.git("add", ".")
    server.git("commit", "-qm", "one")
    server.git("checkout", "-qb", "two")
    server.git("rm", "-rq", "gone", "kind")
    for name in ("changed", "new/deep/f", "kind/f"):
        server.put(name, "2 of it")
    server.put(".gitignore", "build/\nother/\n")
    server.git("add", ".")
    server.git("commit", "-qm", "two")
    one = Watching(server)
    for branch in ("one", "two", "one"):
        server.git("checkout", "-q", branch)
        told = one.told()
        assert {("changed", "modify"), (".gitignore", "modify")} <= set(told)
        assert ("same", "modify") not in told


def test_moved_directories(server: Server, tmp_path: pathlib.Path) -> None:
    """Directories moved in, within and out are told with all below; a link is told and not followed."""
    outside = tmp_path / "outside"
    for name in ("a/f", "a/b/g"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).touch()
    (outside / "a/link").symlink_to(tmp_path)
    one = Watching(server)
    shutil.move(outside / "a", server.root / "in")
    assert {path for path, kind in one.told() if kind == "create"} == {"in", "in/f", "in/b", "in/b/g", "in/link"}
    (server.root / "in").rename(server.root / "within")
    told = one.told()
    assert {path for path, kind in told if kind == "remove"} == {"in", "in/f", "in/b", "in/b/g", "in/link"}
    assert {path for path, kind in told if kind == "create"} == {
        name.replace("in", "within", 1) for name in ("in", "in/f", "in/b", "in/b/g", "in/link")
    }
    shutil.move(server.root / "within", outside / "a")
    assert {kind for _, kind in one.told()} == {"remove"}


def test_removed_and_made_again(server: Server) -> None:
    """A tree that is removed and made again in one burst is told by what differs, and is watched still."""
    for name in ("d/stays", "d/goes", "d/sub/f"):
        server.put(name, "1")
    one = Watching(server)
    subprocess.run(
        "rm -rf d; mkdir -p d/sub; echo 2 > d/stays; echo 2 > d/new; echo 2 > d/sub/f",
        shell=True,
        cwd=server.root,
        check=True,
    )
    assert {("d/goes", "remove"), ("d/new", "create")} <= set(one.told())
    server.put("d/sub/later")
    assert one.told() == [("d/sub/later", "create")]


def test_many_files_at_once(server: Server) -> None:
    """Of 10 000 files that are made at once each is told, or counted in `dropped`; what follows is told."""
    watch = server.ok("watch", paths=["."])["id"]
    subprocess.run("mkdir many; cd many; seq 10000 | xargs touch", shell=True, cwd=server.root, check=True)

    def all_told() -> dict[str, Any]:
        answer: dict[str, Any] = server.ok("watch_poll", id=watch)
        return answer if answer["next"] >= 10001 else {}

    answer = eventually(all_told)
    assert answer["dropped"] == answer["next"] - len(answer["events"])
    server.put("many/last", "x")
    last = {"path": "many/last", "kind": "create"}
    eventually(lambda: last in server.ok("watch_poll", id=watch, since=answer["next"])["events"])


@pytest.mark.parametrize("change", ["chmod 600 f", "touch -d yesterday f", "ln -f g f", "mv g f"])
def test_modified(server: Server, change: str) -> None:
    server.put("f", "1")
    server.put("g", "2")
    one = Watching(server)
    subprocess.run(change, shell=True, cwd=server.root, check=True)
    assert ("f", "modify") in one.told()
