"""`_fast.lines` against a slow twin in Python: any bytes, offset and limit, every kind of processor there is."""

from __future__ import annotations

import orjson

from toolserver._fast import lines


def shown(text: bytes) -> list[str]:
    """Return the lines of a text as `read` shows them, without their numbers."""
    parts = text.split(b"\n")
    last = parts.pop()
    ended = [part.removesuffix(b"\r") for part in parts]
    return [part.decode("utf-8", "replace") for part in [*ended, *([last] if last else [])]]


def twin(data: bytes, offset: int, limit: int, start: int = 0) -> tuple[str, int, bool]:
    """Return what `lines.number` answers, its JSON decoded."""
    every = shown(data[start:])
    window = every[offset - 1 : offset - 1 + limit]
    text = "\n".join(f"{number}\t{line}" for number, line in enumerate(window, offset))
    return text, len(every), offset - 1 + limit < len(every)


def utf16(data: bytes, order: str) -> str:
    """Decode UTF-16 a unit at a time; a lone surrogate and an odd last byte are U+FFFD."""
    units = [int.from_bytes(data[at : at + 2], order) for at in range(0, len(data) - 1, 2)]
    out: list[str] = []
    at = 0
    while at < len(units):
        unit, at = units[at], at + 1
        if 0xD800 <= unit < 0xDC00 and at < len(units) and 0xDC00 <= units[at] < 0xE000:
            out.append(chr(0x10000 + ((unit - 0xD800) << 10) + units[at] - 0xDC00))
            at += 1
        else:
            out.append("\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit))
    return "".join(out) + "\ufffd" * (len(data) % 2)


def check(data: bytes, offset: int, limit: int, start: int = 0) -> None:
    """Ask every kind the same and compare."""
    wanted = twin(data, offset, limit, start)
    text = data.decode("utf-8", "replace")
    try:
        data.decode()
        prefix = len(data)
    except UnicodeDecodeError as error:
        prefix = error.start
    before = lines.use(lines.kinds()[0])
    try:
        for kind in lines.kinds():
            lines.use(kind)
            content, total, truncated = lines.number(data, offset, limit, start=start)
            assert (orjson.loads(content), total, truncated) == wanted, kind
            assert orjson.loads(lines.json_string(data)) == text, kind
            assert lines.count(data) == data.count(b"\n"), kind
            assert lines.well_formed(data) == prefix, kind
    finally:
        lines.use(before)
    assert lines.utf8_of_utf16(data, big=False, start=start).decode() == utf16(data[start:], "little")
    assert lines.utf8_of_utf16(data, big=True, start=start).decode() == utf16(data[start:], "big")


def target(data: bytes) -> None:
    if len(data) >= 3:
        check(data[3:], data[0] + 1, data[1] if data[1] < 250 else 2**63 - 1, min(data[2] % 4, len(data) - 3))
