"""`search.pattern`: any pattern is refused in a sentence, or its plan holds for any text."""

from __future__ import annotations

from toolserver.errors import BadArgument
from toolserver.search.pattern import Plan, analyse


def lines_of(content: bytes) -> list[tuple[int, int]]:
    """Return where each line of a file stands, without its end."""
    spans, start = [], 0
    for line in content.removesuffix(b"\n").split(b"\n") if content else ():
        end = start + len(line)
        spans.append((start, end - (content[end : end + 1] == b"\n" and line.endswith(b"\r"))))
        start = end + 1
    return spans


def found_in_buffer(plan: Plan, lines: list[bytes]) -> list[int]:
    """Return the numbers of the lines in which RE2 finds the plan's source over all of them at once."""
    buffer, found, at = b"\n".join(lines), [], 0
    while at <= len(buffer) and (match := plan.compiled.search(buffer, at)) is not None:
        assert b"\n" not in buffer[match.start() : match.end()]
        found.append(buffer.count(b"\n", 0, match.start()))
        end = buffer.find(b"\n", match.end())
        at = len(buffer) + 1 if end < 0 else end + 1
    return found


def holds(strings: tuple[bytes, ...], line: bytes, fold: bool) -> bool:
    return any(one in (line.lower() if fold else line) for one in strings)


def check(plan: Plan, content: bytes, want: list[int] | None = None) -> None:
    """Check every promise of a plan on a file's content; `want` are the lines that match, if known from elsewhere."""
    spans = lines_of(content)
    lines = [content[start:end] for start, end in spans]
    view = memoryview(content)
    alone = [number for number, span in enumerate(spans) if plan.matches_line(view, *span)]
    want = alone if want is None else want
    assert alone == want
    assert plan.alone or not lines or found_in_buffer(plan, lines) == want
    assert not (plan.never and want)
    assert not plan.every or want == list(range(len(lines)))
    for strings in (plan.literals, *plan.also) if plan.literals else ():
        assert all(strings), "an empty literal says nothing"
        assert all(holds(strings, lines[number], plan.fold) for number in want)
    if plan.exact:
        assert plan.literals
        raw = content.split(b"\n")
        assert [number for number in range(len(lines)) if holds(plan.literals, raw[number], plan.fold)] == want


def target(data: bytes) -> None:
    """Take one byte of flags, a pattern of at most 99 bytes up to the first NUL, and a text."""
    pattern, _, content = data[1:].partition(b"\0")
    flags = data[0] if data else 0
    try:
        plan = analyse(
            pattern[:99].decode("utf-8", "surrogateescape"), literal=bool(flags & 2), ignore_case=flags & 1 > 0
        )
    except BadArgument:
        return
    check(plan, content)
