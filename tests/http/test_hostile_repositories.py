"""Repositories made to stop a server that shows them: it answers at once, and goes on."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

ROUTES = ["git", "changes", "diff", "log", "tree", "file?path=a.txt&at=HEAD", "file?path=a.txt&at=index"]


@pytest.fixture
def repo(server):
    server.git("init", "-q")
    server.put("a.txt", "one\n")
    server.put("d/b.txt", "two\n")
    server.git("add", "-A")
    server.git("commit", "-qm", "one")
    server.put("a.txt", "changed\n")
    return server


def loose_object(root: pathlib.Path) -> pathlib.Path:
    name = subprocess.run(
        ["git", "rev-parse", "HEAD:a.txt"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    return root / ".git" / "objects" / name[:2] / name.strip()[2:]


def statuses(server) -> dict[str, int]:
    """Ask every route; none may wait, and a small call is answered after each."""
    found = {}
    for route in ROUTES:
        found[route] = server.http.get(f"/fs/{route}", timeout=10).status_code
        assert server.ok("read", path="d/b.txt")["content"] == "1\ttwo"
    return found


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git/HEAD",
        ".git/index",
        ".git/refs/heads/main",
        ".git/packed-refs",
        ".git/info/exclude",
        ".git/info/attributes",
        ".git/objects/info/alternates",
        ".git/objects/pack/pack-x.idx",
        ".gitattributes",
        "d/.gitattributes",
        ".gitignore",
    ],
)
def test_a_fifo_in_the_place_of_a_file(repo, path):
    target = repo.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    os.mkfifo(target)
    assert set(statuses(repo).values()) <= {200, 404, 500}


def test_a_fifo_for_the_repository(server):
    os.mkfifo(server.root / ".git")
    server.put("d/b.txt", "two\n")
    assert server.http.get("/fs/git", timeout=10).json() == {"repo": False}


def test_a_fifo_for_an_object(repo):
    target = loose_object(repo.root)
    target.unlink()
    os.mkfifo(target)
    assert set(statuses(repo).values()) <= {200, 404, 500}


def test_a_work_tree_that_is_elsewhere(repo, tmp_path):
    """A command could have written it: nothing outside is shown."""
    (tmp_path / "a.txt").write_text("outside\n")
    repo.git("config", "core.worktree", str(tmp_path))
    got = repo.http.get("/fs/diff").json()
    assert (repo.http.get("/fs/git").json(), got["patch"]) == ({"repo": False}, "")


def test_an_index_that_lies(repo):
    (repo.root / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\xff\xff\xff\xff" + b"x" * 100)
    assert statuses(repo)["changes"] == 500
    assert "index" in repo.http.get("/fs/changes").json()["error"]


def test_a_blob_too_large_to_compare(repo):
    with open(repo.root / "huge", "wb") as file:
        file.truncate(200 << 20)
    rows = {row["path"]: row for row in repo.http.get("/fs/changes").json()["changes"]}
    assert rows["huge"]["binary"] is True


@pytest.mark.parametrize("at", [":/one", "HEAD^{/one}", "x" * 300])
def test_revisions_that_search_messages(repo, at):
    got = repo.http.get("/fs/file", params={"path": "a.txt", "at": at})
    assert got.status_code == 400


def test_a_configuration_that_includes_itself(repo):
    with open(repo.root / ".git" / "config", "a") as file:
        file.write("[include]\n\tpath = config\n\tpath = config\n")
    assert statuses(repo)["git"] == 200
    assert repo.http.get("/fs/git").json() == {"repo": False}


def test_parts_of_an_upload_are_no_events(server):
    watch = server.ok("watch", paths=["."])["id"]
    for offset in (0, 1):
        query = {"path": "f", "id": "upload-1", "offset": offset}
        assert server.http.post("/fs/upload", params=query, content=b"x").status_code == 200
    server.put("g", "1")
    events = []
    while not events:
        events = server.ok("watch_poll", id=watch)["events"]
    assert [event["path"] for event in events] == ["g"]
    assert server.http.post("/fs/upload", params={"path": "f", "id": "upload-1", "abort": 1}).status_code == 200


def test_the_servers_own_files_are_no_events(server):
    """The journal's, the tasks' and temporary files."""
    watch = server.ok("watch", paths=["."])["id"]
    server.ok("task", action="add", title="x")
    server.ok("exec", cmd="true")
    server.put("g", "1")
    events = []
    while not events:
        events = server.ok("watch_poll", id=watch)["events"]
    assert [event["path"] for event in events] == ["g"]
