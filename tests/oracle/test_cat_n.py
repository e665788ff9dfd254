"""Line numbers against `cat -n`."""

from __future__ import annotations

import os
import pathlib
import random
import re
import subprocess
import sysconfig

import orjson
import pytest

from toolserver._fast import lines


def cat(path: pathlib.Path) -> list[tuple[int, bytes]]:
    """Return number and bytes of each line as cat has them."""
    out = subprocess.run(["cat", "-n", str(path)], check=True, capture_output=True).stdout
    rows = out.split(b"\n")
    if rows[-1] == b"":
        rows.pop()
    found = [re.fullmatch(rb" *(\d+)\t(.*)", row, re.DOTALL) for row in rows]
    return [(int(row[1]), row[2]) for row in found if row]


def agree(path: pathlib.Path) -> None:
    data = path.read_bytes()
    rows = cat(path)
    content, total, truncated = lines.number(data, 1, 2**62)
    assert (total, truncated) == (len(rows), False), path
    ends = [True] * len(rows)
    if rows and not data.endswith(b"\n"):
        ends[-1] = False
    wanted = [
        f"{number}\t{(text.removesuffix(chr(13).encode()) if end else text).decode('utf-8', 'replace')}"
        for (number, text), end in zip(rows, ends, strict=True)
    ]
    assert orjson.loads(content) == "\n".join(wanted), path


@pytest.mark.parametrize("seed", range(30))
def test_generated(tmp_path: pathlib.Path, seed: int) -> None:
    rng = random.Random(seed)
    words = [b"a", b" ", b"\t", b"\n", b"\r\n", b"\n\n", b"word" * 30, b"\xc3\xbc", b"\xff", b'"\\', b"\x0c", b"\x0b"]
    path = tmp_path / "f"
    path.write_bytes(b"".join(rng.choices(words, k=rng.choice([0, 1, 5, 100, 5000]))))
    agree(path)


def test_real_files() -> None:
    """The standard library: text of every kind, and some that is none."""
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    found = [
        pathlib.Path(folder, name)
        for folder, _, names in os.walk(library / "email")
        for name in names
        if "pyc" not in name
    ]
    found += sorted(library.glob("*.py"))[:60]
    found += [path for path in (pathlib.Path("/etc/services"), pathlib.Path("/usr/bin/env")) if path.exists()]
    assert len(found) > 60
    for path in found:
        agree(path)
