"""write and edit over HTTP: what an agent reads when it slipped, and what the tools leave on disk."""

from __future__ import annotations

import base64
import os
import pathlib
import threading
import time

import pytest

LIMIT = 10_485_760


def edit(old: str, new: str, **more: object) -> dict[str, object]:
    return {"old": old, "new": new, **more}


@pytest.mark.parametrize("text", ["$&", "\\1", "\\g<0>", "$$", "%s", "{}", "\\n"])
def test_text_is_literal(server, text):
    """Issue: text such as `$&` and `\\1` is literal, in `old` and in `new`."""
    server.put("f", "a.c abc\n")
    server.ok("edit", path="f", edits=[edit("a.c", text), edit(" abc", f" {text}.")])
    assert (server.root / "f").read_text() == f"{text} {text}.\n"


def test_mode_and_other_bytes_stay(server):
    """Issue: mode 755 is kept, the other bytes of a Latin-1 file too."""
    path = server.put("f", b"caf\xe9 = 1\n\xff\n", 0o755)
    server.ok("edit", path="f", edits=[edit("= 1", "= 2")])
    assert (path.read_bytes(), path.stat().st_mode & 0o7777) == (b"caf\xe9 = 2\n\xff\n", 0o755)


@pytest.mark.parametrize(
    ("old", "told"),
    [
        ("    return 1", ["line 3", "indentation", '"\\treturn 1"', '"    return 1"']),
        ("def f():   \n\treturn 1", ["line 2", "line's end", '"def f():"']),
        ("import os\r\ndef f():\r\n", ["line 1", "CRLF"]),
        ("2\tdef f():\n3\t\treturn 1", ["line 2", "line numbers"]),
    ],
    ids=["tabs", "trailing blanks", "line ends", "line numbers"],
)
def test_nearest_lines_are_named(server, old, told):
    """Issue: `old` there but for tabs, trailing blanks, line ends or line numbers copied from `read`."""
    server.put("src/f.py", "import os\ndef f():\n\treturn 1\n")
    error = server.fails(
        500,
        "edit",
        path="src/f.py",
        edits=[edit("return 1", "return  1"), edit("return  1", "return 1"), edit(old, "x")],
    )
    assert error.startswith("edits[2] of src/f.py: ")
    for part in told:
        assert part in error, error


def test_numbers_of_read_are_told(server):
    """Whatever `read` shows of a file, given as `old`, is told to be there without its numbers."""
    server.put("f", "a\nx\n  b\n\tc\r\nd")
    shown = server.ok("read", path="f", offset=2)["content"]
    server.put("g", "a\nx\n  b\n\tc\nd")
    for name in "fg":
        assert "line 2" in server.fails(500, "edit", path=name, edits=[edit(shown, "x")])


def test_edits_that_change_nothing(server):
    """§4 beside others that do: told in `notes`; a file that its edits leave as it was fails the call."""
    server.put("f", "a b\n")
    server.put("g", "g\n")
    told = "edits[1] of f changed nothing: old and new are the same text"
    answer = server.ok("edit", path="f", edits=[edit("a", "x"), edit("b", "b")])
    assert answer == {"path": "f", "applied": 2, "notes": [told]}
    assert (server.root / "f").read_text() == "x b\n"
    files = [{"path": "g", "edits": [edit("g", "h")]}, {"path": "f", "edits": [edit("x", "y"), edit("b", "b")]}]
    answer = server.ok("edit", files=files)
    assert answer["notes"] == [f"files[1].{told}"]
    assert answer["applied"] == 3
    error = server.fails(500, "edit", path="f", edits=[edit("b", "b")])
    assert error == told.replace("edits[1]", "edits[0]")
    error = server.fails(500, "edit", path="f", edits=[edit("y", "x"), edit("x", "y")])
    assert error == "f: the edits leave the file as it was"
    files = [{"path": "g", "edits": [edit("h", "i")]}, {"path": "f", "edits": [edit("b", "b")]}]
    assert server.fails(500, "edit", files=files).startswith("files[1].edits[0] of f changed nothing")
    assert [(server.root / name).read_text() for name in "fg"] == ["y b\n", "h\n"]


def test_mixed_line_ends(server):
    """§4 there but for its line ends, at one place only: lines that stay keep theirs."""
    path = server.put("f", b"a\r\nb\nc\r\nd\ne\n")
    answer = server.ok("edit", path="f", edits=[edit("a\nb\nc\nd", "a\nnew\nb\nc\nalso\nd")])
    assert path.read_bytes() == b"a\r\nnew\r\nb\nc\r\nalso\r\nd\ne\n"
    [told] = answer["notes"]
    assert told.startswith("edits[0] of f old was found with other line ends")
    before = path.read_bytes()
    path.write_bytes(b"x\r\ny\nx\ny\r\nx\r\nz\n")
    assert "old is not in the file" in server.fails(500, "edit", path="f", edits=[edit("x\r\ny\r\n", "q\n")])
    assert path.read_bytes() != before


def test_place_in_files_is_named(server):
    """§4 a 500 names the edit and the path, also in `files`."""
    server.put("f", "a\n")
    server.put("g", "a a\n")
    files = [{"path": "f", "edits": [edit("a", "b")]}, {"path": "g", "edits": [edit("a a", "a"), edit("none", "x")]}]
    assert server.fails(500, "edit", files=files).startswith("files[1].edits[1] of g: old is not in the file")
    files[1]["edits"] = [edit("", "x")]
    assert "files[1].edits[0].old" in server.fails(400, "edit", files=files)
    assert (server.root / "f").read_text() == "a\n"


def test_same_file_by_other_names(server):
    """§4 one file twice, by a link and by a linked folder: applied in sequence, answered for each entry."""
    server.put("d/f", "1\n")
    (server.root / "link").symlink_to("d/f")
    (server.root / "dir").symlink_to("d")
    names = ["d/f", "link", "dir/f", f"{server.root}/d/f"]
    files = [{"path": name, "edits": [edit(str(at), str(at + 1))]} for at, name in enumerate(names, 1)]
    answer = server.ok("edit", files=files)
    assert answer == {
        "files": [{"path": name, "applied": 1} for name in ("d/f", "link", "dir/f", "d/f")],
        "applied": 4,
    }
    assert (server.root / "d/f").read_text() == "5\n"
    assert (server.root / "link").is_symlink()


def test_size_of_each_step(server):
    """§4 the 10 MiB hold after each edit, though a later one would make the file small again."""
    server.put("f", "ab" * 100_000)
    edits = [edit("a", "x" * 200, replace_all=True), edit("x" * 200, "", replace_all=True)]
    assert "20100000 bytes" in server.fails(500, "edit", path="f", edits=edits)
    assert (server.root / "f").stat().st_size == 200_000


def test_lone_surrogates(server):
    """§2 a lone surrogate is 400 wherever it stands, and names its field."""
    server.put("f", "a\n")
    for field, body in {
        "edits[0].old": b'{"path": "f", "edits": [{"old": "\\ud800", "new": "x"}]}',
        "edits[0].new": b'{"path": "f", "edits": [{"old": "a", "new": "\\udfff"}]}',
    }.items():
        answer = server.http.post("/tools/edit", content=body)
        assert answer.status_code == 400
        assert field in answer.json()["error"] or "surrogate" in answer.json()["error"]


def test_name_that_is_not_utf8(server):
    """§2 `path_b64` is taken wherever `path` is, in entries too, and given back."""
    name = b"d/\xff\xfe"
    given = base64.b64encode(name).decode()
    answer = server.ok("write", path_b64=given, content="a\n")
    assert answer == {"path": "d/��", "path_b64": given, "bytes": 2, "created": True}
    server.ok("edit", files=[{"path_b64": given, "edits": [edit("a", "b")]}])
    with open(os.path.join(os.fsencode(server.root), name), "rb") as file:
        assert file.read() == b"b\n"


@pytest.mark.parametrize("path", ["new/", "new/.", "f/", "f/.", "d/new/", "link/"])
def test_a_path_that_ends_in_a_slash(server, path):
    """§15 a directory's name: 500 for every tool that takes a file, and nothing is made."""
    server.put("f", "old\n")
    server.put("d/g", "x\n")
    (server.root / "link").symlink_to("f")
    before = sorted(server.root.rglob("*"))
    for tool, more in {
        "write": {"content": "x"},
        "edit": {"edits": [edit("old", "new")]},
        "read": {},
    }.items():
        error = server.fails(500, tool, path=path, **more)
        assert path in error
        if tool == "write":
            assert "directory" in error
    assert [one for one in sorted(server.root.rglob("*")) if ".kd" not in one.parts] == before
    assert (server.root / "f").read_text() == "old\n"


@pytest.mark.parametrize("form", ["path", "files"])
def test_most_edits_of_a_call(server, form):
    """§13 10 000 edits in all, one more is 400 naming the field."""
    server.put("f", "".join(f"<{at}>\n" for at in range(10_000)))
    server.put("g", "x\n")
    edits = [edit(f"<{at}>", f"[{at}]") for at in range(10_000)]
    if form == "path":
        error = server.fails(400, "edit", path="f", edits=[*edits, edit("<", "x")])
        assert "edits" in error
        assert "10000" in error
        assert server.ok("edit", path="f", edits=edits) == {"path": "f", "applied": 10_000}
    else:
        files = [{"path": "f", "edits": edits}, {"path": "g", "edits": [edit("x", "y")]}]
        assert "files" in server.fails(400, "edit", files=files)
        files[0]["edits"] = edits[:-1]
        assert server.ok("edit", files=files)["applied"] == 10_000
    assert (server.root / "f").read_text().startswith("[0]\n[1]\n")


def test_unknown_keys_are_named(server):
    """§2 the caller sees its own wrong keys beside the missing ones."""
    error = server.fails(400, "edit", file_path="f", edits=[{"old_text": "a", "new_text": "b"}])
    assert "old_text" in error
    assert "file_path" in error


def test_others_go_on_meanwhile(server):
    """Design 1: what takes long leaves the event loop; small calls are answered during large edits of one file."""
    server.put("big", "a" * (LIMIT - 100) + "<0>")
    server.put("small", "x\n")
    done = threading.Event()

    def edits() -> None:
        for at in range(12):
            server.ok("edit", path="big", edits=[edit(f"<{at}>", f"<{at + 1}>")])
        done.set()

    worker = threading.Thread(target=edits)
    worker.start()
    answered = 0
    while not done.is_set():
        server.ok("read", path="small")
        answered += 1
        time.sleep(0)
    worker.join()
    assert answered > 12
    assert (server.root / "big").read_bytes().endswith(b"<12>")


def test_nothing_else_is_left(server):
    """The server's own record of temps is in `.kd`, which git does not see."""
    server.put("f", "a\n")
    server.git("init", "-q")
    server.ok("write", path="f", content="b\n")
    server.ok("edit", path="f", edits=[edit("b", "c")])
    assert server.git("status", "--porcelain") == "?? f\n"
    assert sorted(os.listdir(server.root)) == [".git", ".kd", "f"]


def test_large_changes_leave_nothing_behind(serve):
    """What a change held is given back at its end, not when a collector comes by: 24 of 9 MiB stay below 64 MiB."""
    server = serve()

    def peak() -> int:
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) // 1024

    text = "x" * 99 + "\n"
    server.ok("write", path="f", content="mark 0\n" + text * 94_000)
    before = peak()
    for at in range(24):
        if at % 2:
            diff = f"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-mark {at}\n+mark {at + 1}\n {text}"
            server.ok("patch", diff=diff)
        else:
            server.ok("edit", path="f", edits=[{"old": f"mark {at}\n", "new": f"mark {at + 1}\n"}])
    assert peak() - before < 64
