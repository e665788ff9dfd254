"""`_fast.udiff`: where bodies end, what deltas give, what stays bounded."""

from __future__ import annotations

import base64
import zlib

import pytest

from toolserver._fast import udiff


def read(text: str) -> tuple[udiff.Hunks, int]:
    return udiff.Diff(text.encode()).hunks(0)


def applied(content: str, text: str) -> str:
    return read(text)[0].apply(content.encode(), 1 << 20)[0].decode()


def forgiven(content: str, text: str) -> int:
    """Return what was forgiven in the only hunk, 0 for nothing."""
    found = read(text)[0].apply(content.encode(), 1 << 20)[1]
    return found[0][4] if found else 0


# ------------------------------------------------------------------------------------------------ where a body ends

ENDS = {
    "by its counts": ("@@ -1,2 +1,2 @@\n a\n-b\n+B\ntext\n", 4),
    "counts hold lines that look like headers": ("@@ -1,2 +1,2 @@\n--- x\n+++ y\n--- z\n+++ w\n\n", 5),
    "counts, then a file header": ("@@ -1 +1 @@\n-a\n+b\n--- c\n+++ d\n", 3),
    "counts, then a signature": ("@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n", 3),
    "counts, then a signature without its blank": ("@@ -1 +1 @@\n-a\n+b\n--\n2.39.5\n", 3),
    "counts, then a signature of Windows": ("@@ -1 +1 @@\n-a\n+b\n-- \r\n2.39.5.windows.1\r\n", 3),
    "counts, then a marker": ("@@ -1 +1 @@\n-a\n+b\n\\ No newline\ntext\n", 4),
    "counts, then an empty line, words and a list": ("@@ -1 +1 @@\n-a\n+b\n\nIt does:\n- this\n", 3),
    "counts that end before an empty line of the body": ("@@ -1 +1 @@\n-a\n+b\n\n c\n", 5),
    "counts too large": ("@@ -1,9 +1,9 @@\n-a\n+b\n", 3),
    "counts too large before a hunk": ("@@ -1,9 +1,9 @@\n-a\n+b\n@@ -5 +5 @@\n-c\n+d\n", 6),
    "counts too large before a file header": ("@@ -1,9 +1,9 @@\n-a\n+b\n--- c\n+++ d\n@@ -1 +1 @@\n", 3),
    "counts too small": ("@@ -1 +1 @@\n-a\n+b\n c\n+d\ntext\n", 5),
    "counts zero": ("@@ -0,0 +0,0 @@\n-a\n+b\n", 3),
    "no numbers, empty lines at the end": ("@@ @@\n-a\n+b\n\n\n", 3),
    "no numbers, an empty line within": ("@@ @@\n-a\n\n+b\n\n", 4),
    "no numbers, then a fence": ("@@ @@\n-a\n+b\n```\n- a list\n", 3),
    "no numbers, then a signature": ("@@ @@\n-a\n+b\n-- \n2.1\n", 3),
    "no numbers, then diff --git": ("@@ @@\n-a\n+b\ndiff --git a/f b/f\n", 3),
}


@pytest.mark.parametrize(("text", "lines"), ENDS.values(), ids=ENDS)
def test_end_of_a_body(text, lines):
    """Applied to the old lines up to the end of the last body, it gives the new lines up to there."""
    body = [line for line in text.split("\n")[1:lines] if line[:1] not in ("\\", "@")]
    old = "".join(f"{line[1:]}\n" for line in body if not line.startswith("+"))
    new = "".join(f"{line[1:]}\n" for line in body if not line.startswith("-"))
    if "No newline" in text:
        new = new.removesuffix("\n")
    assert applied(old, text) == new


FAULTS = {
    "not a header": ("@@ -x +1 @@\n-a\n", 1),
    "three signs": ("@@@ -1 -1 +1 @@@\n", 1),
    "words between": ("@@ in f() @@\n-a\n", 1),
    "no second number": ("@@ -1 @@\n-a\n", 1),
    "a number without end": ("@@ -99999999999 +1 @@\n-a\n", 1),
    "no lines": ("@@ -1 +1 @@\n", 1),
    "no lines but empty ones": ("@@ @@\n\n\n", 1),
    "context alone": ("@@ -1 +1 @@\n a\n", 1),
    "a marker first": ("@@ -1 +1 @@\n\\ No newline\n-a\n+b\n", 2),
    "a line behind the marker of its side": ("@@ -1,2 +1 @@\n-a\n\\ No newline\n-b\n+c\n", 4),
    "a strange line": ("@@ -1,3 +1,3 @@\n a\nb\n-c\n+d\n", 3),
    "half a header behind the counts": ("@@ -1 +1 @@\n-a\n+b\n+++ c\n", 4),
    "half a header at the end of a recounted body": ("@@ @@\n-a\n+b\n--- c\n", 4),
    "a fault in the second hunk": ("@@ -1 +1 @@\n-a\n+b\n@@ -2 +2\n", 4),
}


@pytest.mark.parametrize(("text", "line"), FAULTS.values(), ids=FAULTS)
def test_malformed(text, line):
    """The error has the line of the diff that is wrong."""
    with pytest.raises(udiff.MalformedDiff) as caught:
        read(text)
    assert caught.value.line == line


# ---------------------------------------------------------------------------------------------------- what is told

ALL = udiff.MOVED | udiff.RECOUNTED | udiff.BLANKS_ASIDE | udiff.LOST_BLANK | udiff.CUT
FORGIVEN = {
    "nothing": ("@@ -1,2 +1,2 @@\n a\n-b\n+B\n", 0),
    "moved": ("@@ -7,2 +1,2 @@\n a\n-b\n+B\n", udiff.MOVED),
    "recounted": ("@@ -1,7 +1,2 @@\n a\n-b\n+B\n", udiff.RECOUNTED),
    "no numbers": ("@@ @@\n a\n-b\n+B\n", udiff.UNNUMBERED),
    "cut": ("@@ -1,2 +1,2 @@\n a\n-b\n+B", udiff.CUT),
    "blanks": ("@@ -1,2 +1,2 @@\n a \n-b\n+B\n", udiff.BLANKS_ASIDE),
    "lost blank": ("@@ -1,3 +1,3 @@\n a\n-b\n+B\n\n", udiff.LOST_BLANK),
    "all at once": ("@@ -4,9 +1,2 @@\n a\t\n-b\n\n+B", ALL),
}


@pytest.mark.parametrize(("text", "what"), FORGIVEN.values(), ids=FORGIVEN)
def test_what_was_forgiven(text, what):
    assert forgiven("a\nb\n\nc\n", text) == what
    if what & udiff.LOST_BLANK:
        assert read(text)[0].lost_blanks(1) in ([4], [5])


def test_the_last_added_line_of_an_unended_file():
    """§4 the file goes on without a final line end, and what was its last line gets one."""
    assert applied("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n") == "a\nb\nc"
    assert applied("a\nb", "@@ -2 +2 @@\n-b\n+B\n") == "a\nB"
    assert applied("a\nb", "@@ -2,0 +3 @@\n+c\n") == "a\nb\nc"
    assert applied("a\r\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n") == "a\r\nb\r\nc"


def test_context_is_never_rewritten():
    """§4 also where the unended last line goes: the line before it keeps its own end."""
    assert applied("a\nb", "@@ -1,2 +1 @@\n a\n-b\n") == "a\n"


def test_a_context_line_that_lost_blank_and_cr():
    """§4 in a diff with CRs an emptied line stands for the file's empty line."""
    assert applied("a\r\n\r\nb\r\n", "@@ -1,3 +1,3 @@\n a\r\n\n-b\r\n+B\r\n") == "a\r\n\r\nB\r\n"


def test_new_side_marker_belongs_to_the_end():
    """§4 a hunk that takes the final line end away fits at the end only."""
    assert applied("x\ny\nx\n", "@@ @@\n-x\n+z\n\\ No newline at end of file\n") == "x\ny\nz"


def misplaced(content: str, text: str) -> udiff.Misplaced:
    with pytest.raises(udiff.Misplaced) as caught:
        read(text)[0].apply(content.encode(), 1 << 20)
    return caught.value


def test_what_a_refusal_tells():
    error = misplaced("a\nb\nc\n", "@@ -2,2 +2,2 @@\n b\n-zebra\n+x\n")
    assert (error.kind, error.hunk, error.header, error.stated) == ("nowhere", 1, 1, 2)
    assert (error.expected, error.line, error.found, error.absent) == (b"zebra", 3, b"c", (3, b"zebra"))


def test_a_refusal_past_the_end():
    error = misplaced("a\n", "@@ -1,2 +1,2 @@\n a\n-b\n+x\n")
    assert (error.expected, error.line, error.found) == (b"b", 2, None)


def test_hunks_listed_out_of_order_are_not_moved():
    """§4 each fits at its stated line, only the order is wrong: refused, also where the first fits earlier too."""
    error = misplaced("same\ntwo\n-\nsame\n", "@@ -4 +4 @@\n-same\n+x\n@@ -2 +2 @@\n-two\n+y\n")
    assert (error.kind, error.hunk) == ("out of order", 1)


def test_hunks_of_one_place_against_the_stated_line():
    """§4 never a guess: the sure hunk says that the lines are five off, and the other one fits in both places."""
    rows = ["x", "-", "-", "-", "-", "x", "-", "sure", "-"]
    error = misplaced("\n".join(rows) + "\n", "@@ -1 +1 @@\n-x\n+y\n@@ -3 +3 @@\n-sure\n+z\n")
    assert (error.kind, error.places) == ("several", [1, 6])


def test_at_most_ten_places():
    error = misplaced("x\n" * 50, "@@ @@\n-x\n+y\n")
    assert (error.places, error.count) == (list(range(1, 11)), 50)


def test_equal_lines_and_many_hunks_stay_bounded():
    """Two million equal lines, fifty thousand hunks that fit everywhere: refused, after work that does not multiply."""
    text = "".join(f"@@ -{2_000_000 - at} +1 @@\n-a\n+b\n" for at in range(50_000))
    assert misplaced("a\n" * 2_000_000, text).kind == "several"


def test_the_result_is_limited():
    with pytest.raises(udiff.TooLarge) as caught:
        read("@@ -0,0 +1 @@\n+12345\n")[0].apply(b"x\n", 7)
    assert caught.value.size == 8


# --------------------------------------------------------------------------------------------------------- binaries


def encoded(data: bytes) -> str:
    lines = []
    for at in range(0, len(data), 52):
        piece = data[at : at + 52]
        letter = chr(ord("A") + len(piece) - 1) if len(piece) <= 26 else chr(ord("a") + len(piece) - 27)
        lines.append(letter + base64.b85encode(piece, pad=True).decode())
    return "\n".join(lines) + "\n\n"


@pytest.mark.parametrize("size", [1, 3, 4, 26, 27, 51, 52, 53, 1000])
def test_base85(size):
    """The decoder agrees with Python's, whose alphabet is git's."""
    data = zlib.compress(bytes(at * 7 % 251 for at in range(size)))
    assert udiff.Diff(encoded(data).encode()).base85(0)[0] == data


@pytest.mark.parametrize("line", ["z", "A", "A~~~~~", "A0000", "A0000,", "B000000", "!00000"])
def test_not_base85(line):
    with pytest.raises(udiff.MalformedDiff):
        udiff.Diff(line.encode()).base85(0)


BASE = b"0123456789"
DELTAS = {
    "copy": (b"\x0a\x04\x91\x02\x04", b"2345"),
    "insert": (b"\x0a\x03\x03abc", b"abc"),
    "both": (b"\x0a\x05\x90\x03\x02xy", b"012xy"),
    "other base": (b"\x09\x04\x91\x02\x04", None),
    "past the base": (b"\x0a\x04\x91\x08\x04", None),
    "past the result": (b"\x0a\x02\x03abc", None),
    "too short": (b"\x0a\x09\x03abc", None),
    "cut copy": (b"\x0a\x04\x91\x02", None),
    "cut insert": (b"\x0a\x04\x04ab", None),
    "reserved": (b"\x0a\x01\x00", None),
    "no header": (b"", None),
    "endless number": (b"\xff" * 12, None),
}


@pytest.mark.parametrize(("delta", "result"), DELTAS.values(), ids=DELTAS)
def test_delta(delta, result):
    if result is None:
        with pytest.raises(ValueError):
            udiff.apply_delta(BASE, delta, 100)
    else:
        assert udiff.apply_delta(BASE, delta, 100) == result


def test_delta_over_the_limit():
    """A delta that states more than may be is not applied at all."""
    with pytest.raises(udiff.TooLarge):
        udiff.apply_delta(BASE, b"\x0a\xff\xff\xff\x7f", 100)
