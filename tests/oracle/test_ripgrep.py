"""Grep against ripgrep on real files: patterns of every class of RE2 syntax and random ones, line by line.

Left out are the places where the two differ by design: `\\b` (ASCII in RE2), repetitions over 1000, lone CRs, what is
binary, bytes that are not UTF-8.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import shutil
import subprocess
from collections import Counter
from typing import Any

import pytest
import realtrees
import search_twin as twin

PACKAGES = ["_pytest", "attr", "httpx", "iniconfig", "starlette", "yaml", "mypy_extensions.py", "uvicorn"]
MOST = 2000

BY_CLASS = {
    "plain": [
        "import",
        "self",
        "zzqx",
        r"def __init__\(self",
        "return None",
        "\t",
        " ",
        "e",
        "http://",
        '"""',
        "≤",
        "#!",
    ],
    "escapes": [r"\.", r"\(\)", r"\x41", r"\x{e9}", r"\t", r"\\", r"\[", r"\*\*", r"\$", r"\{\}", r"\|", r"\x{1F600}"],
    "dot": ["a.c", "s.lf", "^.$", "^...$", "f..m", "x.*y", ".+import.+"],
    "classes": [
        "[A-Z]",
        "[^a-z]",
        "[aeiou]{3}",
        "[0-9a-f]{8}",
        "[]]",
        "[^]]$",
        r"[\d_]+x",
        r"[^\w\s]{4}",
        "[a-c-]z",
        "[.]py",
    ],
    "perl": [r"\d", r"\D\d\D", r"\w+_\w+", r"\W{5}", r"\s$", r"\S{40}", r"^\s+def\s", r"\d{4}-\d\d", r"[^\d\s]\d\s"],
    "posix": ["[[:upper:]]{4}", "[[:^alpha:]]{6}", "[[:digit:]]+[[:space:]]", "[[:punct:]]{3}", "[[:xdigit:]]{6}"],
    "unicode": [
        r"\pL\pN",
        r"\p{Lu}{3}",
        r"\P{L}{8}",
        r"\p{Greek}",
        r"\p{Han}",
        r"[\p{L}_]{20}",
        r"[^\p{L}\s]{3}",
        r"\pZ\pP",
    ],
    "repetitions": [
        "a*b",
        "fo+",
        "colou?r",
        "(ab)+",
        "x{3}",
        "_{2}",
        "_{2,}",
        "e{2,3}$",
        "l{1,2}o",
        "(a*)*b",
        "[a-z]{12,14}",
    ],
    "lazy": ["a*?b", "f.+?m", "s??elf", "(e{2,4}?)d", "x{2,}?y"],
    "alternation": [
        "class|def",
        "import|from|return",
        "foo|",
        "(GET|POST|PUT)",
        "a|b|cd",
        "True|False$",
        "x(y|z)w",
        "TODO|FIXME|XXX",
    ],
    "groups": ["(self)\\.(\\w+)", "(?:im)port", "(?P<name>\\w+)=", "((a)(b))", "()x", "(?i:SELF)\\.", "(?:a|(?:b|c))d"],
    "anchors": [
        "^import",
        "import$",
        "^$",
        "^",
        "$",
        "^def .*:$",
        "^ {8}\\w",
        ":$",
        "^#.*$",
        "^^a",
        "(^|x)import",
    ],
    "flags": [
        "(?i)error",
        "(?i)HTTP",
        "(?s)a.b",
        "(?m)^class",
        "(?U)a+b",
        "(?i)[A-C]{5}",
        "a(?i)B",
        "(?i)stra\u00dfe",
        "(?i-s)x.Y",
    ],
    "case": ["(?i)k", "(?i)skip", "(?i)\u017felf", "(?i)[^a-z]{9}", "(?i)\\x{212a}ey", "(?i)É"],
    "mixed": [
        r"\w+Error",
        r"raise \w+\(",
        r"[A-Z]+_[A-Z]+ = ",
        r"^from [\w.]+ import \(",
        r"\w{5}\s+\w{5}\s+\w{5}",
        r"(\w+)\s*=\s*\w+\(\)",
        '"[^"]*"',
        r"'[^']*'",
        r"lambda.*:.*\(",
        r"(a+)+$",
        r"https?://[\w./-]+",
        r"\d+\.\d+\.\d+",
        r"^\s*@\w+",
        r"#.*x",
        r"->\s*\w+\[",
        r"[a-z]+[A-Z]\w*\(",
        r"\{\s*\}",
        r"if .* in .*:",
        r"(?:.*,){6}",
        r"\S+ \S+ \S+ \S+ \S+ \S+ \S+ \S+ \S+ \S+$",
    ],
}


ATOMS = [
    *"aeinstr_.,= :x#",
    *["re", "self", "in", "er", "the", "import", '"'],
    *[r"\(", r"\.", r"\d", r"\w", r"\s", r"\S", r"\pP", r"\p{Lu}", "[a-f]", "[^a-z ]", r"[A-Z\d]", "[[:alpha:]]"],
]


def random_pattern(rand: random.Random, depth: int = 0) -> str:
    """Make a pattern of syntax that both know alike."""

    def atom() -> str:
        if depth < 2 and rand.random() < 0.25:
            return rand.choice(["(", "(?:", "(?i:"]) + random_pattern(rand, depth + 1) + ")"
        return rand.choice(ATOMS)

    def piece() -> str:
        return atom() + rand.choice(["", "", "", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "+?", "{2,}"])

    def branch() -> str:
        whole = "".join(piece() for _ in range(rand.choice([1, 2, 2, 3, 4])))
        return rand.choice(["", "", "", "^"]) + whole + rand.choice(["", "", "", "$"])

    return "|".join(branch() for _ in range(rand.choice([1, 1, 1, 2, 3])))


def all_patterns() -> list[str]:
    rand = random.Random(20)
    given = [pattern for patterns in BY_CLASS.values() for pattern in patterns]
    return given + [random_pattern(rand) for _ in range(len(given) // 2 + 1)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Python packages as they are installed, less what the two see differently; and a few files of all kinds."""
    root = tmp_path_factory.mktemp("packages")
    for name in PACKAGES:
        source = realtrees.site_packages() / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        elif source.exists():
            shutil.copy(source, root / name)
    (root / "crlf").write_bytes((root / "httpx/_client.py").read_bytes().replace(b"\n", b"\r\n"))
    odd = "import stra\u00dfe\n\u017felf \u212aey É ≤ 日本 \u03b1\u03b3 \u0663 😀\n\nno end"
    (root / "wide").write_bytes(f"\ufeff{odd}".encode("utf-16-le"))
    (root / "plain").write_text(odd, encoding="utf-8")
    for path in list(root.rglob("*")):
        if path.is_file() and path.name != "wide" and not usable(path.read_bytes()):
            path.unlink()
    return root


def usable(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data and b"\r" not in data.replace(b"\r\n", b"")


FLAGS = ["--no-config", "--no-ignore", "--hidden", "--crlf", "--text", "--null", "-nH", "--no-heading", "--color=never"]


def ripgrep(tree: pathlib.Path, pattern: str) -> list[tuple[str, int, str]]:
    """Return all matching lines as ripgrep has them, in our order."""
    done = subprocess.run(
        ["rg", *FLAGS, "--regexp", pattern, "."],
        cwd=tree,
        capture_output=True,
    )
    assert done.returncode in (0, 1), done.stderr
    found = []
    for line in done.stdout.decode().split("\n")[:-1]:
        path, _, rest = line.partition("\0")
        number, _, text = rest.partition(":")
        found.append((path.removeprefix("./"), int(number), text.removesuffix("\r").removeprefix("\ufeff")))
    found.sort(key=lambda row: (twin.order(os.fsencode(row[0])), row[1]))
    return found


@pytest.mark.parametrize("part", range(8))
def test_every_line_agrees(tree: pathlib.Path, part: int) -> None:
    fd = os.open(tree, os.O_PATH)
    for index, pattern in enumerate(all_patterns()[part::8]):
        wanted = ripgrep(tree, pattern)
        way: dict[str, int] = twin.PATHS[index % len(twin.PATHS)] if len(wanted) < 5000 else {"width": 2}
        found, truncated = twin.grep(fd, pattern, way=way, most=MOST)
        lines = [(match["path"], match["line"], match["text"]) for match in found if not match.get("cut")]
        first = [row for row in wanted[:MOST] if len(row[2].encode()) <= twin.LONG]
        assert lines == first, pattern
        assert truncated == (len(wanted) > MOST), pattern
        counts, _ = twin.grep(fd, pattern, way=way, mode="count", most=10**6)
        assert {row["path"]: row["count"] for row in counts} == Counter(row[0] for row in wanted), pattern
    os.close(fd)


def test_there_are_patterns_enough() -> None:
    patterns = all_patterns()
    assert len(patterns) >= 200
    assert len(set(patterns)) > 190


def test_an_answer_is_json_for_others_too(tree: pathlib.Path) -> None:
    """What the kernel writes is read alike by another parser, and holds nothing but what was asked for."""
    fd = os.open(tree, os.O_PATH)
    found, _ = twin.grep(fd, "import", way={"width": 2}, lines=1)
    os.close(fd)
    rows: list[dict[str, Any]] = json.loads(json.dumps(found))
    assert {tuple(row) for row in rows} == {("path", "line", "text", "context")}
