"""The byte ring against a model that keeps everything."""

from __future__ import annotations

import codecs
import os

from hypothesis import given, settings
from hypothesis import strategies as st

from toolserver._fast.ring import Ring

TEXT = "".join(f"zeile {number} ≤ 😀 é\n" for number in range(400)).encode() + bytes(range(256)) * 4

sizes = st.one_of(st.integers(0, 300), st.integers(0, 60_000), st.just(270_000))
steps = st.lists(
    st.tuples(st.sampled_from(["append", "read", "shrink", "release"]), sizes, st.integers(0, len(TEXT))),
    max_size=12,
)


def unfinished(data: bytes) -> int:
    """Return how many bytes at the end are the beginning of a character, as Python's decoder has it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return len(decoder.getstate()[0])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from([1, 2, 3, 100, 4096, 70_000]), steps, st.data())
def test_ring_is_the_end_of_everything(limit: int, todo: list[tuple[str, int, int]], data: st.DataObject) -> None:
    ring = Ring(limit)
    everything = bytearray()
    start = 0
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        for what, size, at in todo:
            piece = (TEXT[at:] + TEXT * (size // len(TEXT) + 1))[:size]
            if what == "append":
                ring.append(piece)
                everything += piece
            elif what == "read":
                taken = os.write(write, piece[:60_000]) if piece else 0
                got = 0
                while (now := ring.read_from(read)) > 0:  # it reads up to where its memory wraps
                    got += now
                assert (now, got) == (-1, taken)
                everything += piece[:taken]
            elif what == "shrink":
                ring.shrink()
            else:
                ring.release()
                start = len(everything)
            start = max(start, len(everything) - limit)
            assert (ring.start, ring.total) == (start, len(everything))
            since = data.draw(st.integers(0, len(everything) + 3))
            until = data.draw(st.integers(0, len(everything) + 3))
            assert ring.slice(since, until) == bytes(everything[max(since, start) : max(until, 0)])
            until = data.draw(st.integers(start, len(everything)))
            assert ring.boundary(until) == until - unfinished(bytes(everything[start:until]))
            lines = data.draw(st.integers(0, 12))
            held = bytes(everything[start:]).split(b"\n")
            held = [line + b"\n" for line in held[:-1]] + ([held[-1]] if held[-1] else [])
            assert ring.after_lines(lines) == start + len(b"".join(held[:lines]))
            assert ring.last_lines(lines) == len(everything) - len(b"".join(held[-lines:] if lines else []))
    finally:
        os.close(read)
        os.close(write)
