"""What of a job's output is answered: first and last lines, quiet."""

from __future__ import annotations

import os

import pytest

from toolserver._fast.ring import RING_SIZE
from toolserver.processes.output import Output
from toolserver.processes.windows import Window, Windows, cut


def printed(data: bytes, head: int | None = None) -> Output:
    """Return an output that has read these bytes from a pipe."""
    output = Output(head)
    reading = output.reading()
    read, write = os.pipe2(os.O_CLOEXEC)
    try:
        for at in range(0, len(data), 60_000):
            piece = data[at : at + 60_000]
            os.write(write, piece)
            left = len(piece)
            while left:
                left -= reading(read, 256 * 1024)
    finally:
        os.close(read)
        os.close(write)
    return output


@pytest.mark.parametrize("data", [b"", b"\n", b"a", b"a\n", b"a\nb", b"a\nb\nc\n", b"\n\n\n", b"a\r\n\nb\r\n"])
@pytest.mark.parametrize("head", [None, 0, 1, 2, 3, 9])
@pytest.mark.parametrize("tail", [None, 0, 1, 2, 3, 9])
def test_windows_are_those_of_a_list_of_lines(data: bytes, head: int | None, tail: int | None) -> None:
    lines = data.splitlines(keepends=True) if b"\r" not in data else [line + b"\n" for line in data.split(b"\n")[:-1]]
    first = len(lines) if head is None and tail is None else head or 0
    last = len(lines) if tail is None else tail
    if (head is None and tail is None) or first + (0 if tail is None else last) >= len(lines):
        want = lines
    else:
        want = lines[:first] + (lines[len(lines) - last :] if tail else [])
    got, trimmed = cut(printed(data, head), Window(head, tail))
    assert (got, trimmed) == (b"".join(want), len(want) < len(lines))


def test_first_lines_outlive_the_ring() -> None:
    """§7: head counts from the first byte written, also past 4 MiB."""
    data = b"".join(b"%d\n" % number for number in range(800_000))
    lines = data.splitlines(keepends=True)
    assert len(data) > RING_SIZE + 1_000_000
    got, trimmed = cut(printed(data, 3), Window(3, 2))
    assert (got, trimmed) == (b"".join(lines[:3] + lines[-2:]), True)


def test_both_ends_that_meet_past_the_ring_leave_nothing_out() -> None:
    """§7: what head kept and what the ring holds overlap: the answer is whole."""
    data = b"x" * 999_999 + b"\n" + b"y" * 999_999 + b"\n" + b"z" * (RING_SIZE - 500_000)
    got, trimmed = cut(printed(data, 2), Window(2, 1))
    assert (got == data, trimmed) == (True, False)


def test_a_first_line_longer_than_the_ring_is_cut_at_4_mib() -> None:
    output = printed(b"a" * (RING_SIZE + 300_000) + b"\nend\n", 1)
    assert cut(output, Window(1, None)) == (b"a" * RING_SIZE, True)


@pytest.mark.parametrize(("success", "left"), [(True, b""), (False, b"".join(b"e%d\n" % n for n in range(5, 25)))])
def test_quiet_beats_the_numbers(success: bool, left: bytes) -> None:
    out, err = printed(b"o\n"), printed(b"".join(b"e%d\n" % number for number in range(25)))
    assert Windows(Window(3, 3), quiet=True).cut(out, err, success=success) == (b"", left, True)
