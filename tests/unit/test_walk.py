"""`_fast.walk`: what belongs to a walk, in small trees, whatever the number of threads."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile

import pytest
import search_twin as twin

from toolserver._fast.globs import Glob
from toolserver._fast.ignore import BaseRules
from toolserver._fast.listing import Listing

WAYS = [{"width": 1}, {"width": 1, "run": 1}, {"width": 3, "run": 2}]


def listed(root: pathlib.Path, cwd: bytes = b"", glob: bytes | None = None, **more: object) -> list[str]:
    """List a tree in every way; the answers are the same."""
    fd = os.open(root, os.O_PATH)
    try:
        answers = [
            sorted(
                json.loads(
                    twin.drive(Listing(fd, cwd, BaseRules(), None, glob and Glob(glob), **way, **more)).answer()[0]
                )
            )
            for way in WAYS
        ]
    finally:
        os.close(fd)
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def put(root: pathlib.Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x\n")


def test_links_count_when_they_end_at_a_file_inside(tmp_path: pathlib.Path) -> None:
    root, other = tmp_path / "root", tmp_path / "root-other"
    put(root, "d/file")
    put(other, "secret")
    links = {
        "absolute": str(root / "d/file"),
        "comes-back": "../root/d/file",
        "over-a-link": "absolute",
        "d/up": "../d/file",
        "through-a-folder": "folder/file",
        "folder": "d",
        "outside": str(other / "secret"),
        "leaves": "../root-other/secret",
        "gone": "nothing",
        "loop": "loop",
        "device": "/dev/null",
        "root-itself": str(root),
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    assert listed(root) == ["absolute", "comes-back", "d/file", "d/up", "over-a-link", "through-a-folder"]


def test_a_tree_deeper_than_a_path_may_be_long(tmp_path: pathlib.Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    name = "directory-with-a-long-name-" * 8
    for _ in range(25):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file.txt", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.symlink("file.txt", "link.txt", dir_fd=fd)
    os.mkdir("z", dir_fd=fd)
    os.symlink("../file.txt", "z/up.txt", dir_fd=fd)
    os.symlink("../" * 27 + "file.txt", "z/outside.txt", dir_fd=fd)
    os.close(fd)
    (tmp_path.parent / "file.txt").touch()
    assert [path.rpartition("/")[2] for path in listed(tmp_path)] == ["file.txt", "link.txt", "up.txt"]


def test_many_files_in_one_folder(tmp_path: pathlib.Path) -> None:
    names = [f"{number:04}" for number in range(1500)]
    put(tmp_path, *names, "0500.d/x")
    assert listed(tmp_path) == sorted([*names, "0500.d/x"])
    assert listed(tmp_path, glob=b"**/14*") == names[1400:]
    assert listed(tmp_path, glob=b"*.d/*") == ["0500.d/x"]


@pytest.mark.parametrize("kind", ["disk", "tmpfs"])
def test_a_folder_that_the_kernel_tells_in_several_calls(tmp_path: pathlib.Path, kind: str) -> None:
    """Names of several times the buffer; the end is told in another way by each file system."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if kind == "tmpfs" else tmp_path) as root:
        names = [f"{number:04}-{'long' * 40}" for number in range(2000)]
        put(pathlib.Path(root), *names)
        assert listed(pathlib.Path(root)) == names


def test_a_single_file(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "a/b/c", "a/b/d")
    assert listed(tmp_path, b"a/b", file=b"c") == ["a/b/c"]
    assert listed(tmp_path, b"a/b", file=b"none") == []


@pytest.mark.parametrize("most", [0, 1, 7, 40])
def test_the_newest_are_kept(tmp_path: pathlib.Path, most: int) -> None:
    """Far more files than are kept, in an order unlike that of their ages; ties in path order; years past 2262."""
    names = [f"{folder}/{number}" for folder in ("a", "a.b", "b") for number in range(100)]
    put(tmp_path, *names)
    for at, name in enumerate(names):
        age = (at * 37 % 50) * 10**9 + (at % 3 if at % 2 else 0)
        os.utime(tmp_path / name, ns=(age, age))
    os.utime(tmp_path / "b/7", (15_000_000_000, 15_000_000_000))
    wanted = sorted(names, key=lambda name: (-os.stat(tmp_path / name).st_mtime_ns, name.split("/")))
    fd = os.open(tmp_path, os.O_PATH)
    for way in WAYS:
        answer, truncated = twin.drive(Listing(fd, b"", BaseRules(), **way, most=most)).answer()
        assert (json.loads(answer), truncated) == (wanted[:most], True)
    os.close(fd)


@pytest.mark.parametrize("most", [60, 5000])
def test_paths_are_in_the_order_of_their_components(tmp_path: pathlib.Path, most: int) -> None:
    """Folders whose names begin alike, are longer than any key, or sort around the slash; most of the same age."""
    folders = ["", "a/", "a/b/", "a/b c/", "a/b-c/", "a b/", "a!/", "a0/", "a/b/c/"]
    folders += [
        f"{long}{end}/"
        for long in ("fifteen-letters", "sixteen-letters-", "a/twelve-more", "x" * 40)
        for end in ("", "/y", "/y/z", "-y", "!y", "0")
    ]
    names = [f"{folder}{name}" for folder in folders for name in ("f", "f-", "f!", "f0", "b.c", "d", "\x01", "≤")]
    put(tmp_path, *names)
    for at, name in enumerate(names):
        os.utime(tmp_path / name, ns=(10**9, 10**9 + (at % 7 == 0)))
    wanted = sorted(
        names, key=lambda name: (-os.stat(tmp_path / name).st_mtime_ns, [part.encode() for part in name.split("/")])
    )
    fd = os.open(tmp_path, os.O_PATH)
    for way in WAYS:
        answer, truncated = twin.drive(Listing(fd, b"", BaseRules(), **way, most=most)).answer()
        assert json.loads(answer) == wanted[:most]
        assert truncated == (most < len(wanted))
    os.close(fd)
