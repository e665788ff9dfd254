"""`_fast.udiff`: any bytes as a diff, hunks against the slow model, git's deltas and base85 against twins in Python."""

from __future__ import annotations

import base64
import contextlib

from test_udiff_twin import test_places_and_result

from toolserver._fast import udiff

LIMIT = 1 << 20

place_like_the_model = test_places_and_result.hypothesis.fuzz_one_input


def signs(text: bytes) -> list[bytes]:
    """Return the signs that may begin the lines of a diff, an emptied line as a blank."""
    return [line[:1].strip(b"\r") or b" " for line in text.split(b"\n")]


def any_diff(text: bytes, content: bytes) -> None:
    """Walk through a diff from every line on, and apply what hunks there are: all lines are accounted for."""
    diff = udiff.Diff(text)
    assert len(diff) == len(text.removesuffix(b"\n").split(b"\n")) * bool(text)
    for in_header, halves in ((True, True), (False, False)):
        at = 0
        while at < len(diff):
            kind, at = diff.next(at, in_header, halves)
            assert (kind == udiff.END) == (at == len(diff))
            if kind == udiff.BINARY:
                with contextlib.suppress(udiff.MalformedDiff):
                    diff.base85(at + 1)
            if kind == udiff.HUNK:
                apply(diff, at, text, content)
            at += 1
    for index in range(len(diff)):
        assert b"\n" not in diff.line(index)


def apply(diff: udiff.Diff, at: int, text: bytes, content: bytes) -> None:
    """Apply the hunks from a line on; the result has the lines that were taken out and put in, and no others."""
    try:
        hunks, end = diff.hunks(at)
    except udiff.MalformedDiff as error:
        assert at < error.line <= len(diff)
        return
    assert at < end <= len(diff)
    for number in range(1, len(hunks) + 1):
        hunks.lost_blanks(number)
    try:
        result, forgiven = hunks.apply(content, LIMIT)
    except udiff.TooLarge as error:
        assert error.size > LIMIT
    except udiff.Misplaced as error:
        assert error.kind
        assert 1 <= error.hunk <= len(hunks)
        assert len(error.places) <= min(error.count, 10)
    else:
        assert all(1 <= number <= len(hunks) for number, *_ in forgiven)
        most = sum(len(line) + 2 for line in text.split(b"\n")[at:end])
        assert len(content) - most <= len(result) <= len(content) + most
        kept = set(content.split(b"\n")) | {line[1:] for line in text.split(b"\n")}
        assert {line.removesuffix(b"\r") for line in result.split(b"\n")} <= {
            one.removesuffix(b"\r") for one in kept
        } | {b""}


def delta(base: bytes, steps: bytes, limit: int) -> bytes | None:
    """Return what a delta of git's makes of `base`, None for a damaged one or more than `limit` bytes."""
    at = 0

    def number() -> int | None:
        nonlocal at
        value = shift = 0
        while at < len(steps) and shift < 63:
            byte = steps[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
        return None

    size = number() if number() == len(base) else None
    if size is None or size > limit:
        return None
    out = b""
    while at < len(steps):
        op, at = steps[at], at + 1
        if op & 128:
            field = [0] * 7
            for bit in range(7):
                if op >> bit & 1:
                    if at == len(steps):
                        return None
                    field[bit], at = steps[at], at + 1
            offset, length = int.from_bytes(field[:4], "little"), int.from_bytes(field[4:], "little") or 0x10000
            if offset + length > len(base):
                return None
            out += base[offset : offset + length]
        else:
            if op == 0 or at + op > len(steps):
                return None
            out += steps[at : at + op]
            at += op
        if len(out) > size:
            return None
    return out if len(out) == size else None


def any_delta(base: bytes, steps: bytes) -> None:
    try:
        got = udiff.apply_delta(base, steps, LIMIT)
    except ValueError:
        got = None
    assert got == delta(base, steps, LIMIT)


def any_base85(data: bytes) -> None:
    """Write data as git does and read it back, then read the data itself as if it were such lines."""
    rows = [data[at : at + 52] for at in range(0, len(data), 52)]
    text = b"".join(
        (b"%c" % (len(row) + 64 if len(row) < 27 else len(row) + 70)) + base64.b85encode(row, pad=True) + b"\n"
        for row in rows
    )
    assert udiff.Diff(text + b"\n").base85(0) == (data, len(rows))
    with contextlib.suppress(udiff.MalformedDiff):
        udiff.Diff(data).base85(0)


def target(data: bytes) -> None:
    """The first byte says what is asked; where it is a diff or a delta, what it is applied to ends at the first NUL."""
    kind, rest = data[:1], data[1:]
    first, _, second = rest.partition(b"\0")
    if kind < b"\xa0":
        any_diff(second, first)
    elif kind < b"\xb0":
        place_like_the_model(rest)
    elif kind < b"\xd0":
        any_delta(first, second)
    else:
        any_base85(rest)
