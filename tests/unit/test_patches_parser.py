"""Reading diffs: headers, names, timestamps, and what contradicts itself."""

from __future__ import annotations

import re
import zlib

import pytest
from test_udiff import encoded as base85

from toolserver.errors import BadArgument
from toolserver.patches import names, parser

BODY = "@@ -1 +1 @@\n-a\n+b\n"


def only(text: str) -> parser.Part:
    (part,) = parser.read(text.encode()).parts
    return part


def encoded(data: bytes) -> str:
    """Deflate and write data as git does, with the empty line after it."""
    return base85(zlib.compress(data))


# ------------------------------------------------------------------------------------------------------------ names

SIDES = {
    "plain": (b"a/f", b"a/f", False, False),
    "blanks": (b"a/my file", b"a/my file", False, False),
    "tab": (b"a/f\t2024-01-01 00:00:00 +0000", b"a/f", False, False),
    "tab and words": (b"a/f\t(revision 7)", b"a/f", False, False),
    "epoch": (b"a/f\t1970-01-01 00:00:00.000000000 +0000", b"a/f", True, False),
    "epoch of India": (b"a/f\t1970-01-01 05:30:00 +0530", b"a/f", True, False),
    "epoch with a colon": (b"a/f\t1969-12-31 19:00:00 -05:00", b"a/f", True, False),
    "epoch with many noughts": (b"a/f\t1970-01-01 00:00:00." + b"0" * 5000 + b" +0000", b"a/f", True, False),
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
    "text",
    [
        b"",
        b" ",
        b"/etc/passwd",
        b"a/",
        b"a//etc/passwd",
        b'"a/f',
        rb'"a/\q"',
        b'"a/f"x',
        b'""',
        b"\t2024",
        b"x" * 2**15,
    ],
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
    "two new modes": ("diff --git a/f b/f\nnew mode 100755\nnew mode 100644\n", 3),
    "two old modes": ("diff --git a/f b/f\nold mode 100755\nold mode 100644\nnew mode 100755\n", 3),
    "two modes of a new file": ("diff --git a/f b/f\nnew file mode 100755\nnew mode 100644\n", 3),
    "a new file with an old mode": ("diff --git a/f b/f\nold mode 100644\nnew file mode 100755\n", 1),
    "a deleted file with a new mode": ("diff --git a/f b/f\ndeleted file mode 100644\nnew mode 100755\n", 1),
    "two index lines": (
        f"diff --git a/f b/f\nindex 1234567..89abcde\nindex 1234567..0000000\n--- a/f\n+++ b/f\n{BODY}",
        3,
    ),
    "an index of another mode": ("diff --git a/f b/f\nnew mode 100755\nindex 1234567..89abcde 100644\n", 1),
    "modes alike": ("diff --git a/f b/f\nold mode 100644\nnew mode 100644\n", 1),
    "modes alike, an index": (f"diff --git a/f b/f\nold mode 100644\nnew mode 100644\nindex {'1' * 7}..{'1' * 7}\n", 1),
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


def test_rename_lines_have_no_prefix():
    assert only("diff --git a/d//f b/g\nrename from d//f\nrename to g\n").source == b"d//f"


# ------------------------------------------------------------------------------------------------------------- text

OTHER = f"--- a/g\n+++ b/g\n{BODY}"
MAILED = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nSubject: x\n\n{{}}\n---\n f | 2 +-\n\n"
TEXTS = {
    "half a header": "--- a note\n",
    "the other half": "+++ a note\n",
    "a sentence with @@": "@@ is the sign of a hunk.\n",
    "a sentence with @@, then a list": "@@ marks\n\n- one\n+ two\n",
    "three signs": "@@@ is the sign of a merge\n",
    "a list": "- one\n- two\n",
    "a list of what is new": "+ one\n+ two\n",
    "a rule": "-----\n",
    "a short rule": "---\n",
    "a quoted diff": "  --- a/x\n  +++ b/x\n  @@ -1 +1 @@\n  -a\n  +b\n",
    "a name that is signed with": "-- \nJohn\n",
    "what begins as a line of a git header": "index of words\nnew mode of work\nrename from here\ncopy to there\n",
    "what begins as a git header": "diff --git is a program\n",
    "what begins as a binary patch": "GIT binary patch\nis a form of diff\n",
}
PART = f"--- a/f\n+++ b/f\n{BODY}"
MOVED = "diff --git a/f b/h\nrename from f\nrename to h\n"
MODES = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
FRAMES = {
    "before the first part": "{}\n" + PART + OTHER,
    "between parts": PART + "\n{}\n" + OTHER,
    "between parts, after words": PART + "Now this:\n\n{}\n" + OTHER,
    "between parts of git": f"diff --git a/f b/f\n{PART}\n{{}}\ndiff --git a/g b/g\n{OTHER}",
    "after a header without hunks": f"{MOVED}\n{{}}\ndiff --git a/g b/g\n{OTHER}",
    "in mails": f"{MAILED}{PART}-- \n2.39.5\n\n{MAILED}{OTHER}-- \n2.39.5\n",
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_around_parts(text, frame):
    """§4 text before and between the parts is text, whatever its lines begin with."""
    first, second = parser.read(frame.replace("{}", text).encode()).parts
    assert (first.move, first.mode) in (("", None), ("rename", None))
    for part in (first, second):
        assert part.move or part.hunks.apply(b"a\n", 9) == (b"b\n", [])
    assert second.new.raw == b"b/g"


@pytest.mark.parametrize("text", [BODY, "Binary files a and b differ\n", "--- a/x\n+++ b/x\n", "\\ No newline\n"])
def test_message_of_a_mail(text):
    """§4 up to its line of three dashes a message is text, even lines that would be a hunk or a header elsewhere."""
    mail = MAILED.replace("{}", text)
    assert len(parser.read(f"{mail}{PART}-- \n2.39.5\n{mail}{OTHER}".encode()).parts) == 2


NOT_TEXT = {
    "half a header and a hunk": (f"{PART}\nwords\n--- a/g\n{BODY}", 8),
    "half a header, words and a hunk": (f"{PART}\n--- a/g\nwords\n{BODY}", 7),
    "half a header in a git header": (f"diff --git a/g b/g\n--- a/g\n--- a/g\n+++ b/g\n{BODY}", 2),
    "@@ after the body": (f"{PART}@@ nonsense\n{OTHER}", 6),
    "@@ after a file header": (f"{MODES}--- a/f\n+++ b/f\n@@ x\n{OTHER}", 6),
    "@@ before lines of a hunk": (f"{PART}\n@@ -4,2 +4,2\n-x\n+y\n{OTHER}", 7),
    "@@ before context": (f"{PART}\n@@ def f():\n x\n+y\n{OTHER}", 7),
    "@@ before context without its blank": (f"{PART}\n@@ def f():\nx\n+y\n{OTHER}", 7),
    "@@ before an empty line of a hunk": (f"{PART}\n@@ def f():\n\n-x\n+y\n{OTHER}", 7),
    "@@ before another hunk": (f"{PART}\n@@ def f():\nx\n{BODY}", 7),
    "@@ at the end": (f"{PART}\n@@ nonsense\n", 7),
    "a second header of git without names": (f"{PART}diff --git a/g b/h\n{BODY}", 7),
    "a hunk after text that begins as a git header": (f"{PART}\ndiff --git is a program\nwords\n{BODY}", 9),
    "binary files": (f"Binary files x/f and y/f differ\n{PART}", 1),
    "a binary patch without its header": (f"{PART}GIT binary patch\nliteral 0\nHcmV?d00001\n", 6),
    "a mode after an empty line": ("diff --git a/f b/f\nold mode 100644\n\nnew mode 120000\n", 4),
}


@pytest.mark.parametrize(("text", "line"), NOT_TEXT.values(), ids=NOT_TEXT)
def test_what_is_no_text(text, line):
    """§4 what only a hunk or a header can be is never passed over."""
    with pytest.raises(BadArgument, match=rf"\bline {line}\b"):
        parser.read(text.encode())


def test_header_lines_after_an_empty_line():
    """§4 all lines up to the first hunk are of one header."""
    part = only("diff --git a/f b/g\n\nrename from f\n\nrename to g\n\nnew mode 100755\n")
    assert (part.source, part.target, part.mode) == (b"f", b"g", 0o755)


def test_many_lines_that_may_be_sentences():
    """Each asks how the text goes on; the answer for one holds for the next, so a megabyte of them is no work."""
    text = "@@ a sentence\n\n" * 300_000
    assert len(parser.read(f"{text}{PART}".encode()).parts) == 1
    with pytest.raises(BadArgument, match="line 1:"):
        parser.read(f"{text}@@ -1 +1 @@\n-a\n+b\n".encode())


# --------------------------------------------------------------------------------------------------------- binaries

HEADER = f"{MODES}index 1234567..89abcde\nGIT binary patch\n"
HALVES = (encoded(bytes(range(200))), encoded(bytes(range(150))))


def test_a_binary_patch_that_was_cut():
    """§4 wherever a diff ends within its binary patch, but for the last line end of all, it is refused."""
    text = f"{HEADER}literal 200\n{HALVES[0]}literal 150\n{HALVES[1]}"
    start, forward = text.index("GIT binary"), text.index("\nliteral 150")
    assert parser.read(text.encode()).parts[0].binary.inflated() == bytes(range(200))
    whole = {forward - 1, forward, forward + 1, *range(len(text) - 2, len(text))}  # the first half may stand alone
    for end in range(start + len("GIT binary patch"), len(text)):
        if end in whole:
            assert parser.read(text[:end].encode()).parts[0].binary.whole
        else:
            with pytest.raises(BadArgument, match=r"\bline \d+\b"):
                parser.read(text[:end].encode())


def test_a_second_half_without_data():
    with pytest.raises(BadArgument, match="without its data"):
        parser.read(f"{HEADER}literal 200\n{HALVES[0]}literal 150\n\n{PART}".encode())
