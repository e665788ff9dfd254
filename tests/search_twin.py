"""Grep as plainly as it can be written: files from a dict, one line at a time. What the kernel is compared with."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from toolserver._fast.grep import Grep
from toolserver._fast.ignore import BaseRules
from toolserver.search.engine import _matching
from toolserver.search.pattern import analyse

MAX_FILE = 10 << 20
LONG = 4096


def text_of(data: bytes) -> bytes | None:
    """Return what of a file is searched, as UTF-8; None for one that is skipped."""
    if len(data) > MAX_FILE:
        return None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raw, units = data[2:], "utf-16-le" if data[0] == 0xFF else "utf-16-be"
        even = raw[: len(raw) & ~1].decode(units, "surrogatepass")
        text = "".join("\ufffd" if 0xD800 <= ord(one) < 0xE000 else one for one in even)
        return (text + "\ufffd" * (len(raw) & 1)).encode()
    if b"\0" in data[:8192]:
        return None
    return data.removeprefix(b"\xef\xbb\xbf")


def lines_of(text: bytes) -> list[bytes]:
    """Return the lines without their ends."""
    if not text:
        return []
    lines = text.split(b"\n")
    last = lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    return [*lines, last] if last else lines


def order(path: bytes) -> list[bytes]:
    return path.split(b"/")


def shown(path: bytes) -> dict[str, str]:
    try:
        return {"path": path.decode()}
    except UnicodeDecodeError:
        return {"path": path.decode(errors="replace"), "path_b64": base64.b64encode(path).decode()}


def expected(
    files: dict[bytes, bytes], matches: Callable[[bytes], bool], mode: str, context: int, most: int
) -> tuple[list[Any], bool]:
    """Return the results of a search of `files`, which are all shorter than LONG a line, and `truncated`."""
    found = list(_results(files, matches, mode, context))
    return found[:most], len(found) > most


def _results(files: dict[bytes, bytes], matches: Callable[[bytes], bool], mode: str, context: int) -> Iterator[Any]:
    for path in sorted(files, key=order):
        text = text_of(files[path])
        lines = [] if text is None else lines_of(text)
        hits = [number for number, line in enumerate(lines) if matches(line)]
        if mode == "count" and hits:
            yield {**shown(path), "count": len(hits)}
        elif mode == "files" and hits:
            yield shown(path)["path"]
        elif mode == "content":
            for number in hits:
                around = b"\n".join(lines[max(number - context, 0) : number + context + 1])
                yield {
                    **shown(path),
                    "line": number + 1,
                    "text": lines[number].decode(errors="replace"),
                    "context": around.decode(errors="replace") if context else None,
                }


def put(root: pathlib.Path, files: dict[bytes, bytes]) -> None:
    """Make the files below a directory."""
    for path, data in files.items():
        target = os.path.join(os.fsencode(root), path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)


def drive(job: Any) -> Any:
    """Run a walk to its end, each of its workers on a thread of its own; short slices, as under load."""
    errors: list[BaseException] = []

    def work(index: int) -> None:
        try:
            while job.work(index, 0.0005):
                pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(1, job.width)]
    for thread in threads:
        thread.start()
    work(0)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return job


PATHS = [
    {"width": 1},
    {"width": 1, "run": 1, "batch": 1},
    {"width": 2, "run": 2, "batch": 64},
    {"width": 4, "run": 1},
]
"""Ways through the kernel that must not differ: threads, files of a run, bytes of a batch."""


def grep(root: int, pattern: str, *, way: dict[str, int], regex: bool = False, **asked: Any) -> tuple[list[Any], bool]:
    """Search with the kernel; `regex`: RE2 is asked about every line, whatever is known of the pattern."""
    options = {name: asked.pop(name) for name in ("literal", "ignore_case") if name in asked}
    plan = analyse(pattern, **options)
    if plan.never:
        return [], False
    job = drive(Grep(root, b"", BaseRules(), **way, **_matching(plan, regex=regex), **asked))
    answer, truncated = job.answer()
    return json.loads(answer), truncated
