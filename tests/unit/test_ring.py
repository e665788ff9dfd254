"""The byte ring: offsets, what is kept, reading from descriptors, lines, characters."""

from __future__ import annotations

import os
import pty
import random
import threading
from collections.abc import Iterator

import pytest

from toolserver._fast.ring import Ring

SLACK = 256 * 1024
"""What a ring takes beside its limit; offsets wrap after limit and slack."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    yield read, write
    os.close(read)
    os.close(write)


def test_offsets_count_from_the_first_byte_ever() -> None:
    ring = Ring(4)
    for piece in (b"ab", b"cd", b"", b"ef"):
        ring.append(piece)
    assert (ring.start, ring.total, ring.slice(0, 99)) == (2, 6, b"cdef")
    assert ring.slice(3, 5) == b"de"
    assert ring.slice(5, 3) == ring.slice(6, 9) == b""


def test_more_than_fits_at_once_keeps_its_end() -> None:
    ring = Ring(10)
    ring.append(b"x" * 1000 + b"0123456789")
    assert (ring.start, ring.total, ring.slice(0, 2000)) == (1000, 1010, b"0123456789")


@pytest.mark.parametrize("piece", [1, 7, 65_535, 65_536, 65_537, 300_000])
def test_round_the_end_of_the_memory(piece: int) -> None:
    limit = 100_000
    ring = Ring(limit)
    data = bytes(range(251)) * 8000
    for at in range(0, len(data) if piece > 100 else 30_000, piece):
        ring.append(data[at : at + piece])
    whole = data[: ring.total]
    assert ring.slice(0, ring.total) == whole[-limit:]
    assert ring.slice(ring.total - 1000, ring.total - 10) == whole[-1000:-10]


def test_memory_is_taken_on_demand_and_given_back() -> None:
    ring = Ring(4 << 20)
    assert ring.allocated == 0
    ring.append(b"x")
    assert ring.allocated <= 64 * 1024
    ring.append(bytes(9 << 20))
    assert ring.allocated == (4 << 20) + SLACK
    ring.release()
    assert (ring.allocated, ring.start, ring.total, ring.slice(0, 1 << 30)) == (0, (9 << 20) + 1, (9 << 20) + 1, b"")


def test_a_released_ring_goes_on_at_its_offset() -> None:
    ring = Ring(8)
    ring.append(b"0123456789")
    ring.release()
    ring.append(b"abc")
    assert (ring.start, ring.total, ring.slice(0, 99)) == (10, 13, b"abc")


def test_shrinking_keeps_what_is_held() -> None:
    ring = Ring(4 << 20)
    ring.append(b"x" * 70_000)
    ring.shrink()
    assert ring.allocated == 70_000
    ring.append(b"y" * 100_000)
    assert ring.slice(0, 1 << 20) == b"x" * 70_000 + b"y" * 100_000


def test_reading_from_a_pipe(pipe: tuple[int, int]) -> None:
    read, write = pipe
    ring = Ring(100)
    assert ring.read_from(read) == -1
    os.write(write, b"hello")
    assert ring.read_from(read, 2) == 2
    assert ring.read_from(read) == 3
    assert ring.slice(0, 9) == b"hello"


def test_following_a_writer() -> None:
    """As long as more comes: over the place where the memory wraps, up to the bytes, the time, or the end."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    data = random.Random(1).randbytes(3_000_000)

    def writer() -> None:
        for at in range(0, len(data), 4096):
            os.write(write, data[at : at + 4096])
        os.close(write)

    thread = threading.Thread(target=writer)
    thread.start()
    ring = Ring(4 << 20)
    sizes = []
    while (got := ring.read_from(read, 700_000, 50_000_000)) != 0:
        if got > 0:
            sizes.append(got)
    thread.join()
    os.close(read)
    assert ring.slice(0, len(data)) == data
    assert max(sizes) <= 700_000
    assert max(sizes) > 65_536  # more than the pipe holds at once
    assert sum(sizes) == len(data)


@pytest.mark.parametrize("limit", [1000, 100_000, 1_000_000])
def test_following_into_a_ring_that_drops(limit: int) -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)
    thread = threading.Thread(target=lambda: (os.writev(write, [b"x" * 9] * 99), os.write(write, b"y" * 3_000_000)))
    thread.start()
    ring = Ring(limit)
    while ring.total < 891 + 3_000_000:
        ring.read_from(read, 1 << 21, 1_000_000)
    thread.join()
    os.write(write, b"end")
    assert ring.read_from(read, 1 << 21, 1_000_000) == 3
    for fd in (read, write):
        os.close(fd)
    assert (ring.start, ring.total) == (3_000_894 - limit, 3_000_894)
    assert ring.slice(0, 1 << 30) == b"y" * (limit - 3) + b"end"


def test_the_end_of_a_pipe() -> None:
    read, write = os.pipe()
    os.close(write)
    assert Ring(1).read_from(read) == 0
    os.close(read)


def test_the_end_of_a_terminal() -> None:
    master, slave = pty.openpty()
    os.write(slave, b"bye")
    ring = Ring(10)
    assert ring.read_from(master) == 3
    os.close(slave)
    assert ring.read_from(master) == 0
    os.close(master)


def test_a_descriptor_that_cannot_be_read() -> None:
    folder = os.open("/", os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        Ring(1).read_from(folder)
    os.close(folder)
    with pytest.raises(OSError, match="Bad file descriptor"):
        Ring(1).read_from(folder)


def test_only_one_fills_it_while_others_slice() -> None:
    read, write = os.pipe()
    ring = Ring(100)
    ring.append(b"before")
    thread = threading.Thread(target=ring.read_from, args=(read,))
    thread.start()
    refused = None
    while refused is None:
        try:
            ring.append(b"")
        except RuntimeError as error:
            refused = error
    assert ring.slice(0, 99) == b"before"
    os.write(write, b", after")
    thread.join()
    assert ring.slice(0, 99) == b"before, after"
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("limit", [0, -1, 1 << 41])
def test_a_limit_that_makes_no_sense(limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        Ring(limit)


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b"", 0), (b"a", 1), ("é".encode(), 2), (b"a\xc3", 1), (b"\xe2", 0), (b"\xe2\x89", 0), (b"\xe2\x89\xa4", 3),
        (b"\xf0\x9f\x98", 0), (b"\xf0\x9f\x98\x80", 4), (b"x\xf0", 1), (b"\x80\x80\x80\x80", 4), (b"\xff", 1),
        (b"\xc0", 1), (b"\xc1", 1), (b"\xf5", 1), (b"\xe0\x80", 2), (b"\xe0\xa0", 0), (b"\xed\xa0", 2),
        (b"\xed\x9f", 0), (b"\xf0\x8f", 2), (b"\xf0\x90", 0), (b"\xf4\x90", 2), (b"\xf4\x8f\xbf", 0),
        (b"\xe2\x89\xa4\x89", 4),
    ],
)  # fmt: skip
def test_an_unfinished_character_is_told_from_an_ill_formed_one(data: bytes, whole: int) -> None:
    ring = Ring(100)
    ring.append(data)
    assert ring.boundary(ring.total) == whole


@pytest.mark.parametrize(
    ("data", "lines", "after", "before"),
    [
        (b"", 3, 0, 0), (b"a\nb\nc\n", 0, 0, 6), (b"a\nb\nc\n", 1, 2, 4), (b"a\nb\nc\n", 2, 4, 2),
        (b"a\nb\nc\n", 3, 6, 0),
        (b"a\nb\nc\n", 9, 6, 0), (b"a\nb\nc", 1, 2, 4), (b"a\nb\nc", 3, 5, 0), (b"\n\n", 1, 1, 1), (b"abc", 1, 3, 0),
    ],
)  # fmt: skip
def test_lines_at_either_end(data: bytes, lines: int, after: int, before: int) -> None:
    ring = Ring(100)
    ring.append(data)
    assert (ring.after_lines(lines), ring.last_lines(lines)) == (after, before)


def test_lines_round_the_end_of_the_memory() -> None:
    ring = Ring(1000)
    text = b"".join(b"line %d\n" % number for number in range(60_000))
    for at in range(0, len(text), 999):
        ring.append(text[at : at + 999])
        held = text[ring.start : ring.total]
        lines = held.splitlines(keepends=True)
        assert ring.slice(ring.last_lines(5), ring.total) == b"".join(lines[-5:])
        assert ring.slice(0, ring.after_lines(5)) == b"".join(lines[:5])
