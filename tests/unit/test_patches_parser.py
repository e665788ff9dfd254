"""Reading diffs: headers, names, timestamps, and what contradicts itself."""

from __future__ import annotations

import re

import pytest

from toolserver.errors import BadArgument
from toolserver.patches import names, parser

BODY = "@@ -1 +1 @@\n-a\n+b\n"


def only(text: str) -> parser.Part:
    (part,) = parser.read(text.encode()).parts
    return part


# ------------------------------------------------------------------------------------------------------------ names

SIDES = {
    "plain": (b"a/f", b"a/f", False, False),
    "blanks": (b"a/my file", b"a/my file", False, False),
    "tab": (b"a/f\t2024-01-01 00:00:00 +0000", b"a/f", False, False),
    "tab and words": (b"a/f\t(revision 7)", b"a/f", False, False),
    "epoch": (b"a/f\t1970-01-01 00:00:00.000000000 +0000", b"a/f", True, False),
    "epoch of India": (b"a/f\t1970-01-01 05:30:00 +0530", b"a/f", True, False),
    "epoch with a colon": (b"a/f\t1969-12-31 19:00:00 -05:00", b"a/f", True, False),
    "a moment later": (b"a/f\t1970-01-01 00:00:00.5 +0000", b"a/f", False, False),
    "no such day": (b"a/f\t1970-13-01 00:00:00 +0000", b"a/f", False, False),
    "blanks for the tab": (b"a/my f  2024-01-01 00:00:00 +0000", b"a/my f", False, True),
    "epoch behind blanks": (b"a/f 1970-01-01 00:00:00 +0000", b"a/f", True, True),
    "less than a timestamp": (b"a/f 2024-01-01", b"a/f 2024-01-01", False, False),
    "quoted": (rb'"a/\303\241\t\"\\"', b'a/\xc3\xa1\t"\\', False, False),
    "quoted, with a time": (b'"a/x y"\t1970-01-01 00:00:00 +0000', b"a/x y", True, False),
    "nothing": (b"/dev/null", None, False, False),
    "nothing, with a time": (b"/dev/null\t1970-01-01 00:00:00 +0000", None, False, False),
}


@pytest.mark.parametrize(("text", "raw", "epoch", "cut"), SIDES.values(), ids=SIDES)
def test_side(text, raw, epoch, cut):
    assert names.side_name(text, 1) == names.Name(raw, 1, epoch, cut)


@pytest.mark.parametrize(
    "text", [b"", b" ", b"/etc/passwd", b"a/", b"a//etc/passwd", b'"a/f', rb'"a/\q"', b'"a/f"x', b'""', b"\t2024"]
)
def test_side_that_names_nothing(text):
    with pytest.raises(BadArgument, match="line 7"):
        names.side_name(text, 7)


AGREE = [
    (b"a/f", b"b/f", True),
    (b"a/f", b"f", True),
    (b"f", b"b/f", True),
    (b"x/f", b"x/f", True),
    (b"a/f", b"b/g", False),
    (b"a/x/f", b"b/y/f", False),
    (b"f", b"g", False),
    (b"x/f", b"y/f", True),
]


@pytest.mark.parametrize(("one", "other", "same"), AGREE)
def test_agree(one, other, same):
    assert names.agree(one, other) == same


GIT_NAMES = {
    "a/f b/f": (b"a/f", b"b/f"),
    "f f": (b"f", b"f"),
    "d/f d/f": (b"d/f", b"d/f"),
    "a/x y b/x y": (b"a/x y", b"b/x y"),
    "x y x y": (b"x y", b"x y"),
    '"a/x\\ty" "b/x\\ty"': (b"a/x\ty", b"b/x\ty"),
    'a/x "b/x"': (b"a/x", b"b/x"),
    '"a/x" b/x': (b"a/x", b"b/x"),
    "a/x b/x b/x b/x": (b"a/x b/x", b"b/x b/x"),
}


@pytest.mark.parametrize(("text", "expected"), GIT_NAMES.items(), ids=GIT_NAMES)
def test_names_of_the_first_line(text, expected):
    assert names.git_names(text.encode(), 1) == expected


@pytest.mark.parametrize("text", ["", "f", "a/f", "a/f b/g", '"a/f"', '"a/f"b/f', "a/f " + "x " * 3000, "/f /f"])
def test_first_line_without_two_names_of_one_file(text):
    with pytest.raises(BadArgument, match="line 1"):
        names.git_names(text.encode(), 1)


# ---------------------------------------------------------------------------------------------------------- headers


def test_git_header():
    part = only(
        "diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\nold mode 100644\nnew mode 100755\n"
        f"index 1234567..89abcde\n--- a/f\n+++ b/g\n{BODY}"
    )
    assert (part.move, part.source, part.target, part.mode) == ("rename", b"f", b"g", 0o755)
    assert part.index == (b"1234567", b"89abcde")
    assert (part.creates, part.deletes) == (False, False)
    assert len(part.hunks) == 1


def test_old_spelling_of_a_rename():
    part = only("diff --git a/f b/g\nrename old f\nrename new g\n")
    assert (part.move, part.source, part.target) == ("rename", b"f", b"g")


def test_line_ends_of_headers():
    """§4 a CR at the end of a header line is dropped, one at the end of a body's line is text."""
    part = only(
        "diff --git a/f b/f\r\nold mode 100644\r\nnew mode 100755\r\n--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n"
    )
    assert (part.old.raw, part.new.raw, part.mode) == (b"a/f", b"b/f", 0o755)
    assert part.hunks.apply(b"a\r\n", 100)[0] == b"b\r\n"


def test_mails_are_told_apart():
    mail = "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n"
    text = f"{mail}--- a/f\n+++ b/f\n{BODY}-- \n2.39.5\n\n{mail}--- a/g\n+++ b/g\n{BODY}-- \n2.39.5\n"
    first, second = parser.read(text.encode()).parts
    assert (first.mail, second.mail) == (1, 2)


def test_text_between_hunks():
    part = only(f"--- a/f\n+++ b/f\n{BODY}\nand then\n\n{BODY}")
    assert len(part.hunks) == 2


MALFORMED = {
    "nothing": ("", None),
    "prose": ("--- a note\n\nwords\n", None),
    "both /dev/null": ("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n", 1),
    "a link": ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n", 2),
    "a link's index": (f"diff --git a/l b/l\nindex 1234567..89abcde 120000\n--- a/l\n+++ b/l\n{BODY}", 2),
    "a submodule": ("diff --git a/s b/s\nold mode 160000\nnew mode 100644\n", 2),
    "new and deleted": ("diff --git a/f b/f\nnew file mode 100644\ndeleted file mode 100644\n", 1),
    "renamed and copied": ("diff --git a/f b/g\nrename from f\ncopy to g\n", 3),
    "two sources": ("diff --git a/f b/g\nrename from f\nrename from h\nrename to g\n", 3),
    "copy without a source": ("diff --git a/f b/g\ncopy to g\n", 1),
    "rename to /dev/null": ("diff --git a/f b/g\nrename from f\nrename to g\n--- a/f\n+++ /dev/null\n" + BODY, 4),
    "hunk without names": (f"diff --git a/f b/f\n{BODY}", 2),
    "hunk after a mail": (f"--- a/f\n+++ b/f\n{BODY}From {'0' * 40} Mon\n{BODY}", 7),
    "second pair": (f"diff --git a/f b/f\n--- a/f\n+++ b/f\n--- a/f\n+++ b/f\n{BODY}", 4),
    "plain without hunks": ("--- a/f\n+++ b/f\n", 1),
    "old mode alone": ("diff --git a/f b/f\nold mode 100644\n", 1),
    "binary without a header": ("GIT binary patch\nliteral 0\nHcmV?d00001\n", 1),
    "binary without an index": ("diff --git a/f b/f\nGIT binary patch\nliteral 0\nHcmV?d00001\n", 2),
    "binary without data": ("diff --git a/f b/f\nindex 1234567..89abcde\nGIT binary patch\n\n", 4),
    "binary that is no base85": ("diff --git a/f b/f\nindex 1234567..89abcde\nGIT binary patch\nliteral 3\nz,\n\n", 5),
    "binary files differ": ("diff --git a/f b/f\nindex 1..2\nBinary files a/f and b/f differ\n", 3),
    "plain binary files differ": (f"--- a/f\n+++ b/f\n{BODY}Binary files x/g and y/g differ\n", 6),
    "three signs": ("@@@ -1 -1 +1 @@@\n", 1),
}


@pytest.mark.parametrize(("text", "line"), MALFORMED.values(), ids=MALFORMED)
def test_malformed(text, line):
    """§4 malformed: an error with the number of the line, counted from 1 in the diff as given."""
    with pytest.raises(BadArgument) as caught:
        parser.read(text.encode())
    if line is not None:
        assert re.search(rf"\bline {line}\b", str(caught.value))


def test_damaged_binary_data():
    """The size that is stated bounds what is inflated."""
    text = "diff --git a/f b/f\nindex 1234567..89abcde\nGIT binary patch\nliteral {}\nHcmV?d00001\n\n"
    assert only(text.format(0)).binary.inflated() == b""
    for size in (1, 99):
        with pytest.raises(BadArgument, match="line 4"):
            only(text.format(size)).binary.inflated()
