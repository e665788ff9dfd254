"""patch over HTTP: slips that are forgiven, what is never guessed, diffs of other kinds, names that lead elsewhere."""

from __future__ import annotations

import os
import pathlib
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kit import Server

HEADER = "--- a/f\n+++ b/f\n"
ID = "0123456789abcdef0123456789abcdef01234567"


def contents(server: Server) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in sorted(server.root.rglob("*")):
        name = str(path.relative_to(server.root))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file() and not name.startswith(".kd/"):
            found[name] = path.read_bytes()
    return found


def refused(server: Server, status: int, diff: str, **more: str) -> str:
    """Insist that a diff is refused and leaves everything as it was; answer the error."""
    before = contents(server)
    error = server.fails(status, "patch", diff=diff, **more)
    assert contents(server) == before
    return error


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


# ------------------------------------------------------------------------------------------------- placing hunks


def test_first_hunk_settles_the_second(server: Server) -> None:
    """Moved by 5, the second hunk goes where it is moved by 5, though its text stands at +40 too."""
    lines = [f"line {at}" for at in range(1, 81)]
    lines[9 + 5], lines[19 + 5], lines[19 + 40] = "once", "often", "often"
    path = server.put("f", "\n".join(lines) + "\n")
    answer = server.ok("patch", diff=HEADER + "@@ -10 +10 @@\n-once\n+ONCE\n@@ -20 +20 @@\n-often\n+OFTEN\n")
    lines[14], lines[24] = "ONCE", "OFTEN"
    assert path.read_text() == "\n".join(lines) + "\n"
    assert [numbers(note) >= told for note, told in zip(answer["notes"], ({"10", "15"}, {"20", "25"}), strict=True)]


def test_blanks_never_decide_between_places(server: Server) -> None:
    """The first hunk shows that the diff lost blanks: the exact place of the second may not be the one meant."""
    server.put("f", "top  \nx\n-\nsame  \ny\n-\nsame\ny\n")
    diff = HEADER + "@@ -11,2 +11,2 @@\n top\n-x\n+X\n@@ -40,2 +40,2 @@\n same\n-y\n+Y\n"
    assert {"4", "7"} <= numbers(refused(server, 500, diff))


def test_moved_like_the_hunk_before_but_for_blanks(server: Server) -> None:
    """The place that the hunk before speaks for fits but for blanks, another one exactly: both are named."""
    server.put("f", "-\n-\ntop\n-\nsame \ny\n-\nsame\ny\n")
    diff = HEADER + "@@ -1 +1 @@\n-top\n+TOP\n@@ -3,2 +3,2 @@\n same\n-y\n+Y\n"
    assert {"5", "8"} <= numbers(refused(server, 500, diff))


@pytest.mark.parametrize("numbers", ["-2,4 +2,6", "-2 +2,2", "-2,1 +2,1"])
def test_additions_alone_with_wrong_counts(server: Server, numbers: str) -> None:
    """The header says that old lines begin at line 2, and there are none: before or behind it, nobody knows."""
    server.put("f", "a\nb\nc\n")
    assert "count of 0" in refused(server, 500, f"{HEADER}@@ {numbers} @@\n+x\n+y\n")
    path = server.put("g", "")
    server.ok("patch", diff=f"--- a/g\n+++ b/g\n@@ {numbers} @@\n+x\n+y\n")
    assert path.read_text() == "x\ny\n"


# --------------------------------------------------------------------------------------------------- reading bodies


def test_counts_that_end_before_an_empty_line(server: Server) -> None:
    """Short counts and an empty context line without its blank: nothing behind it is dropped."""
    path = server.put("f", "a\nc\n\nd\nx\n")
    diff = HEADER + "@@ -1,2 +1,3 @@\n a\n+b\n c\n\n-d\n+e\n"
    assert len(server.ok("patch", diff=diff)["notes"]) == 2
    assert path.read_text() == "a\nb\nc\n\ne\nx\n"


def test_signed_lines_behind_an_empty_line_that_are_no_body(server: Server) -> None:
    """The same form with lines that are not in the file: refused, neither dropped nor applied."""
    server.put("f", "a\nc\n\nd\n")
    assert "not so" in refused(server, 500, HEADER + "@@ -1,2 +1,3 @@\n a\n+b\n c\n\n- not so\n")


@pytest.mark.parametrize(
    ("body", "line"),
    [("-a\n+b\nc\n d\n", 6), ("-a\n+b\nc\n", 6), ("c\n-a\n+b\n", 4), ("\tx\n-a\n+b\n", 4)],
    ids=["more context behind", "by the counts", "first", "a tab for the blank"],
)
def test_context_that_lost_its_blank(server: Server, body: str, line: int) -> None:
    """It is not left out: a hunk with less context may fit where it is not meant."""
    server.put("f", "a\nx\ny\na\nc\nd\n")
    old = body.count("\n") - 1
    assert str(line) in numbers(refused(server, 400, f"{HEADER}@@ -1,{old} +1,{old} @@\n{body}"))


@pytest.mark.parametrize("between", ["diff -ru x/g y/g\n", "Index: g\n=====\n", "Only in x: h\n"])
def test_lines_between_files_are_no_context(server: Server, between: str) -> None:
    """Counts that are one too high do not reach for what programs write between two files."""
    for name in ("f", "g"):
        server.put(name, "a\n")
    diff = HEADER + "@@ -1,2 +1,2 @@\n-a\n+b\n" + between + "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n"
    assert server.ok("patch", diff=diff)["files"] == ["f", "g"]
    assert contents(server) == {"f": b"b\n", "g": b"b\n"}


def test_other_kinds_of_diff(server: Server) -> None:
    """Word diffs, combined diffs and the old forms are refused with a word on what they are."""
    server.put("f", "hello world\nfoo\n")
    word = HEADER + "@@ -1,2 +1,2 @@\nhello [-world-]{+there+}\nfoo\n"
    assert "word diff" in refused(server, 400, word)
    combined = f"diff --cc f\nindex 1,2..3\n{HEADER}@@@ -1,1 -1,1 +1,2 @@@\n  hello world\n++b\n"
    assert "combined diff" in refused(server, 400, combined)
    context = "*** a/f\n--- b/f\n***************\n*** 1 ****\n! hello world\n--- 1 ----\n! x\n"
    assert "context diff" in refused(server, 400, context)
    assert "plain `diff`" in refused(server, 400, "1c1\n< hello world\n---\n> x\n")
    for line in ("*** Update File: f\n@@ def f():\n-a", "*** Update File: f\n@@\n a\n-b", "*** Add File: n\n+x"):
        assert "*** Begin Patch" in refused(server, 400, f"*** Begin Patch\n{line}\n*** End Patch\n")
    assert "SEARCH/REPLACE" in refused(server, 400, "f\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n")


def test_what_cannot_be_seen_is_shown(server: Server) -> None:
    """A byte order mark, a hard blank, a byte that is not UTF-8: the refusal makes the difference visible."""
    for there, shown in ((b"\xef\xbb\xbfa", r"\ufeffa"), (b"\xc2\xa0a", r"\u00a0a"), (b"\xe9a", r"\xe9a")):
        server.put("f", there + b"\nb\n")
        assert shown in refused(server, 500, HEADER + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n")


def test_byte_order_mark_before_the_diff(server: Server) -> None:
    path = server.put("f", "a\n")
    assert set(server.ok("patch", diff="\ufeff" + HEADER + "@@ -1 +1 @@\n-a\n+b\n")) == {"cwd", "files"}
    assert path.read_text() == "b\n"


@pytest.mark.parametrize("first", ["From {} Mon Sep 17 00:00:00 2001", "commit {}", "commit {} (HEAD -> main)"])
def test_series_of_commits(server: Server, first: str) -> None:
    """In a series, of mails or as `git log -p` has it, a copy is of the file as the commit before left it."""
    server.put("f", "a\n")
    change = f"diff --git a/f b/f\n{HEADER}@@ -1 +1 @@\n-a\n+b\n"
    copy = "diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n"
    start = first.format(ID) + "\n\n    words\n\n"
    server.ok("patch", diff=f"{start}{change}\n{start}{copy}")
    assert contents(server) == {"f": b"b\n", "g": b"b\n"}


# ------------------------------------------------------------------------------------------------------------ names

AB = "@@ -1 +1 @@\n-a\n+b\n"
ADD = "@@ -0,0 +1 @@\n+x\n"
OUT = {
    "create": "--- /dev/null\n+++ b/{}\n" + ADD,
    "modify": "--- a/{0}\n+++ b/{0}\n" + AB,
    "delete": "--- a/{}\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
    "rename to": "diff --git a/f b/{0}\nrename from f\nrename to {0}\n",
    "rename from": "diff --git a/{0} b/new\nrename from {0}\nrename to new\n",
    "copy to": "diff --git a/f b/{0}\ncopy from f\ncopy to {0}\n",
    "copy from": "diff --git a/{0} b/new\ncopy from {0}\ncopy to new\n",
}


@pytest.mark.parametrize("name", ["../evil", "x/../../evil", "/etc/evil", "//evil", "out/evil", "out/new/evil"])
@pytest.mark.parametrize("kind", OUT)
def test_names_that_lead_outside(server: Server, tmp_path: pathlib.Path, name: str, kind: str) -> None:
    """403 or 400, also through a link, and nothing is written inside or outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "evil").write_text("a\n")
    server.put("f", "a\n")
    os.symlink(outside, server.root / "out")
    before = contents(server)
    status, _ = server.tool("patch", diff=OUT[kind].format(name))
    assert status in (400, 403)
    assert contents(server) == before
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("evil", "a\n")]


@pytest.mark.parametrize("name", ["b/../../evil", '"b/\\056\\056/evil"', "b/..//../evil"])
def test_written_forms_of_names_that_lead_outside(server: Server, name: str) -> None:
    status, _ = server.tool("patch", diff=f"--- /dev/null\n+++ {name}\n{ADD}")
    assert status in (400, 403)
    assert contents(server) == {}


@pytest.mark.parametrize("mode", ["120000", "160000"])
def test_diff_that_first_makes_a_link(server: Server, tmp_path: pathlib.Path, mode: str) -> None:
    """A link or a submodule cannot be made, so nothing goes through it."""
    link = f"diff --git a/l b/l\nnew file mode {mode}\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+{tmp_path}\n"
    refused(server, 400, link + "\\ No newline at end of file\n--- /dev/null\n+++ b/l/evil\n" + ADD)
    assert not (tmp_path / "evil").exists()


def test_renames_in_a_ring(server: Server) -> None:
    """Renames of one commit are meant at once: a ring of them changes places."""
    for name in "xyz":
        server.put(name, f"{name}\n")
    pairs = [("x", "y"), ("y", "z"), ("z", "x")]
    diff = "".join(
        f"diff --git a/{old} b/{new}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n" for old, new in pairs
    )
    assert server.ok("patch", diff=diff)["files"] == ["x", "y", "z"]
    assert contents(server) == {"x": b"z\n", "y": b"x\n", "z": b"y\n"}


def test_many_renames_at_once(server: Server) -> None:
    """Each of many takes the place of a file that leaves only in the second half: no search through all of them."""
    count = 300
    for at in range(count):
        server.put(f"a{at}", f"a{at}")
        server.put(f"b{at}", f"b{at}")
    diff = "".join(
        f"diff --git a/{old}{at} b/{new}{at}\nsimilarity index 100%\nrename from {old}{at}\nrename to {new}{at}\n"
        for old, new in ("ab", "bc")
        for at in range(count)
    )
    assert len(server.ok("patch", diff=diff)["files"]) == 3 * count
    assert contents(server) == {f"{new}{at}": f"{old}{at}".encode() for old, new in ("ab", "bc") for at in range(count)}


@pytest.mark.parametrize("kind", ["create", "rename to", "copy to", "rename from", "modify", "delete"])
@pytest.mark.parametrize("name", ["new/", "d/new/", "f/", "f/."])
def test_names_of_directories(server: Server, name: str, kind: str) -> None:
    """A name that ends in a slash is a directory's: 500, and no file is made or changed under the name without it."""
    server.put("f", "a\n")
    assert "directory's name" in refused(server, 500, OUT[kind].format(name))
    assert [path.name for path in server.root.iterdir() if path.name != ".kd"] == ["f"]


# ------------------------------------------------------------------------------------------------------------ modes

MODES = "diff --git a/f b/f\nold mode 100{}\nnew mode 100{}\n"


@pytest.mark.parametrize("mode", ["644", "755"])
def test_modes_that_are_alike(server: Server, mode: str) -> None:
    """A header whose old and new mode are the same has nothing to do; beside a hunk it says no more than that."""
    path = server.put("f", "a\n", int(mode, 8))
    text = MODES.format(mode, mode)
    assert "nothing to do" in refused(server, 400, text)
    server.ok("patch", diff=text + HEADER + AB)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("b\n", int(mode, 8))


@pytest.mark.parametrize(("there", "old", "new"), [(0o755, "644", "755"), (0o644, "755", "644"), (0o744, "644", "755")])
def test_an_old_mode_that_the_file_does_not_have(server: Server, there: int, old: str, new: str) -> None:
    """With nothing else to change it is 500 that tells both; beside a hunk the mode becomes the new one."""
    path = server.put("f", "a\n", there)
    text = MODES.format(old, new)
    error = refused(server, 500, text)
    assert f"old mode 100{old}" in error
    assert path.stat().st_mode & 0o777 == there
    server.ok("patch", diff=text + HEADER + AB)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("b\n", int(new, 8))


def test_a_new_mode_alone_that_the_file_has(server: Server) -> None:
    server.put("f", "a\n", 0o755)
    assert "already" in refused(server, 500, "diff --git a/f b/f\nnew mode 100755\n")


# ------------------------------------------------------------------------------------------------ text after bodies

NEXT = "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n"


def test_list_after_a_body(server: Server) -> None:
    """A list after an empty line is text where the counts are used up, also where the file has an empty line there."""
    server.put("g", "a\n")
    path = server.put("f", "a\nc\n\nd\n")
    server.ok("patch", diff=f"{HEADER}@@ -1,2 +1,3 @@\n a\n+b\n c\n\n- not so\n+ but so\n\n{NEXT}")
    assert path.read_text() == "a\nb\nc\n\nd\n"


def test_list_after_a_body_that_is_in_the_file(server: Server) -> None:
    """Where the file goes on as the list does, the counts may be wrong as well: refused, neither reading is taken."""
    server.put("g", "a\n")
    server.put("f", "a\nc\n\n item\n")
    error = refused(server, 500, f"{HEADER}@@ -1,2 +1,3 @@\n a\n+b\n c\n\n- item\n+ other\n\n{NEXT}")
    assert "counts" in error


def test_notes_are_bounded(server: Server) -> None:
    """After a thousand notes the answer tells only how many more there were."""
    count = 1500
    server.put("f", "".join(f"a{at}\n" for at in range(count)))
    hunks = "".join(f"@@ @@\n-a{at}\n+b{at}\n" for at in range(count))
    notes = server.ok("patch", diff=HEADER + hunks)["notes"]
    assert len(notes) == 1001
    assert "500 more" in notes[-1]
