"""Diffs with one mistake in each, as language models make them: ours, `git apply` and GNU patch side by side.

Each true diff of random edits to a real file gets one mistake, and the result is compared with the intended one. Run by
hand for the table of docs/patch.md:

    python bench/mistakes.py --cases 1200 --short [--seed 1] [--files DIR] [--suffix .py] [--only ours] [--json]

A result is *right* (the intended bytes), *refused* (an error, nothing kept) or *wrong* (applied, other bytes).
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolserver.errors import ToolError
from toolserver.patches import parser, staging
from toolserver.workspace.root import Workspace
from toolserver.writing.batch import Batch

CONTEXTS = (3, 1)
ENDS = ("LF", "CRLF")
HEADER = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
NEUTRAL = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CEILING_DIRECTORIES": "/"}

# ------------------------------------------------------------------------------------------------------- true diffs


@dataclass(frozen=True)
class Case:
    """A file, its intended content, and the true diff between the two, all with LF."""

    name: str
    before: bytes
    after: bytes
    diff: bytes


def sources(folder: pathlib.Path, suffix: str) -> list[pathlib.Path]:
    """Return the files that are edited: of 500 to 200 000 bytes, with plain names."""
    found = []
    for path in sorted(folder.rglob(f"*{suffix}")):
        if path.is_file() and 500 < path.stat().st_size < 200_000 and re.fullmatch(r"[\w./+-]+", str(path)):
            found.append(path)
    return found


def edited(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Return lines with one to six edits: some replaced, added or removed, near the old text as people's edits are."""
    out = list(lines)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(out))
        count = chance.choice((1, 1, 1, 2, 3, 5))
        kind = chance.choice(("replace", "insert", "delete"))
        if kind == "replace":
            out[at : at + count] = [changed(line, chance) for line in out[at : at + count]]
        elif kind == "insert":
            out[at:at] = [changed(chance.choice(lines), chance) for _ in range(count)]
        elif len(out) > count + 5:
            del out[at : at + count]
    return out


def changed(line: bytes, chance: random.Random) -> bytes:
    words = re.findall(rb"\w+", line)
    if not words:
        return line[:-1] + b"# new\n"
    word = chance.choice(words)
    return line.replace(word, word + b"_%d" % chance.randrange(1000), 1)


def git_diff(before: bytes, after: bytes, name: str, context: int, work: pathlib.Path) -> bytes:
    for side, content in (("a", before), ("b", after)):
        path = work / side / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    found = subprocess.run(
        ["git", "diff", "--no-index", "--no-prefix", f"-U{context}", f"a/{name}", f"b/{name}"],
        cwd=work, capture_output=True, env={**os.environ, **NEUTRAL},
    )  # fmt: skip
    return found.stdout


def cases(count: int, context: int, seed: int, files: list[pathlib.Path]) -> Iterator[Case]:
    """Yield `count` cases; some lines get trailing blanks, which few files have."""
    chance = random.Random(seed * 1000 + context)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        made = 0
        while made < count:
            path = chance.choice(files)
            lines = path.read_bytes().splitlines(keepends=True)
            if not 20 <= len(lines) <= 3000 or b"\r" in path.read_bytes() or not lines[-1].endswith(b"\n"):
                continue
            lines = [line if chance.random() > 0.05 else line[:-1] + b"  \n" for line in lines]
            if b"".join(lines).count(b"\n") != len(lines):
                continue  # form feeds and the like part lines for Python
            after = edited(lines, chance)
            name = f"src/{path.name}"
            text = git_diff(b"".join(lines), b"".join(after), name, context, work)
            if text and after != lines:
                yield Case(name, b"".join(lines), b"".join(after), text)
                made += 1


# --------------------------------------------------------------------------------------------------------- mistakes


def renumbered(diff: bytes, change: Callable[[list[int]], list[int]]) -> bytes:
    """Change the four numbers of every hunk header."""

    def header(found: re.Match[bytes]) -> bytes:
        numbers = [int(text) if text is not None else 1 for text in found.groups()]
        return b"@@ -%d,%d +%d,%d @@" % tuple(change(numbers))

    return HEADER.sub(header, diff)


def shifted(diff: bytes, chance: random.Random) -> bytes:
    first = min(int(found[1]) for found in HEADER.finditer(diff))
    by = -chance.randint(1, min(first - 1, 40)) if first > 1 and chance.random() < 0.5 else chance.randint(1, 40)
    return renumbered(diff, lambda n: [n[0] + by, n[1], max(n[2] + by, 0), n[3]])


def at_line_one(diff: bytes, chance: random.Random) -> bytes:
    return renumbered(diff, lambda n: [1, n[1], 1, n[3]])


def miscounted(diff: bytes, chance: random.Random) -> bytes:
    def change(n: list[int]) -> list[int]:
        by = chance.choice(((1, 1), (-1, -1), (0, 1), (1, 0), (0, -1), (3, 2), (-2, 1), (5, 5)))
        return [n[0], max(n[1] + by[0], 0), n[2], max(n[3] + by[1], 0)]

    return renumbered(diff, change)


def both(diff: bytes, chance: random.Random) -> bytes:
    return miscounted(shifted(diff, chance), chance)


def without_numbers(diff: bytes, chance: random.Random) -> bytes:
    return HEADER.sub(b"@@ @@", diff)


def emptied(diff: bytes, chance: random.Random) -> bytes:
    return re.sub(rb"^ $", b"", diff, flags=re.MULTILINE)


def trimmed(diff: bytes, chance: random.Random) -> bytes:
    return re.sub(rb"^([ -](?!-- ).*?)[ \t]+$", rb"\1", diff, flags=re.MULTILINE)


def cut(diff: bytes, chance: random.Random) -> bytes:
    return diff[:-1]


def fenced(diff: bytes, chance: random.Random) -> bytes:
    return b"Here is the change you asked for:\n\n```diff\n" + diff + b"```\n\nIt does:\n- what you wanted\n- no more\n"


def without_prefixes(diff: bytes, chance: random.Random) -> bytes:
    diff = re.sub(rb"^diff --git a/(.*) b/(.*)$", rb"diff --git \1 \2", diff, flags=re.MULTILINE)
    return re.sub(rb"^(---|\+\+\+) [ab]/", rb"\1 ", diff, flags=re.MULTILINE)


MISTAKES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "none": lambda diff, chance: diff,
    "line numbers shifted": shifted,
    "all hunks at line 1": at_line_one,
    "counts wrong": miscounted,
    "both wrong": both,
    "`@@ @@` without numbers": without_numbers,
    "blank context lines emptied": emptied,
    "trailing blanks lost": trimmed,
    "last line end lost": cut,
    "fenced, prose around": fenced,
    "no `a/` `b/`": without_prefixes,
}

# --------------------------------------------------------------------------------------------------------- programs


class Bench:
    """A folder in which the three programs are run."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.workspace = Workspace(str(folder))

    def put(self, case: Case, before: bytes) -> pathlib.Path:
        path = self.folder / case.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(before)
        return path

    def ours(self, path: pathlib.Path, diff: bytes) -> bytes | str:
        """Return the content that our patch stages, or its error."""
        try:
            read = parser.read(diff)
            with self.workspace.tree("main") as tree, Batch(tree) as batch:
                staging.stage(batch, b"", read)
                (file,) = (
                    batch.files.values() if len(batch.files) == 1 else [f for f in batch.files.values() if f.changed]
                )
                return file.content()
        except ToolError as error:
            return str(error)

    def program(self, argv: list[str], path: pathlib.Path, diff: bytes) -> bytes | str:
        done = subprocess.run(argv, cwd=self.folder, input=diff, capture_output=True, env={**os.environ, **NEUTRAL})
        for left in (".rej", ".orig"):
            path.with_name(path.name + left).unlink(missing_ok=True)
        return path.read_bytes() if done.returncode == 0 else done.stderr.decode(errors="replace")

    def git_apply(self, path: pathlib.Path, diff: bytes) -> bytes | str:
        return self.program(["git", "apply", "--whitespace=nowarn", "-"], path, diff)

    def gnu_patch(self, path: pathlib.Path, diff: bytes) -> bytes | str:
        return self.program(["patch", "-p1", "--force", "--silent", "--no-backup-if-mismatch"], path, diff)


Counts = dict[tuple[int, str, str, str], collections.Counter[str]]


def run(options: argparse.Namespace, told: Callable[[str], None]) -> Counts:
    """Return how often each program was right, refused and wrong, by lines of context, line end, mistake, program."""
    files = sources(pathlib.Path(options.files), options.suffix)
    counts: Counts = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        bench = Bench(pathlib.Path(folder).resolve())
        programs = {"ours": bench.ours, "git apply": bench.git_apply, "GNU patch": bench.gnu_patch}
        wanted = {name: program for name, program in programs.items() if options.only in ("", name)}
        for context, mistake, end, case, diff in slips(options, files):
            before, after = case.before, case.after
            if end == "CRLF":
                before, after = before.replace(b"\n", b"\r\n"), after.replace(b"\n", b"\r\n")
            for name, program in wanted.items():
                got = program(bench.put(case, before), diff)
                # GNU patch ends with 0 where it finds no hunk at all, and leaves the file as it is
                kind = "refused" if isinstance(got, str) or got == before else "right" if got == after else "wrong"
                counts[context, end, mistake, name][kind] += 1
                if name == "ours" and kind != "right":
                    reason = got if isinstance(got, str) else case.name + "\n" + diff.decode(errors="replace")
                    told(f"--- {kind}: {context} lines, {end}, {mistake}: {reason}")
    return counts


def slips(options: argparse.Namespace, files: list[pathlib.Path]) -> Iterator[tuple[int, str, str, Case, bytes]]:
    """Yield every case with every mistake: lines of context, mistake, line end, case, diff."""
    for context in CONTEXTS:
        for case in cases(options.cases, context, options.seed, files):
            chance = random.Random(case.diff)
            for mistake, make in MISTAKES.items():
                diff = make(case.diff, chance)
                if diff != case.diff or mistake == "none":
                    for end in ENDS:
                        yield context, mistake, end, case, diff


def table(counts: Counts) -> str:
    """Return the table as Markdown: percent right and wrong, the rest is refused."""
    names = list(dict.fromkeys(key[3] for key in counts))
    lines = [
        "| context | line ends | mistake | diffs | " + " | ".join(f"{name}: right, wrong" for name in names) + " |",
        "|---|---|---|---|" + "---|" * len(names),
    ]
    for context, end, mistake in dict.fromkeys(key[:3] for key in counts):
        row = []
        total = 0
        for name in names:
            found = counts[context, end, mistake, name]
            total = sum(found.values())
            row.append(f"{100 * found['right'] / total:.1f} %, {100 * found['wrong'] / total:.1f} %")
        lines.append(f"| {context} | {end} | {mistake} | {total} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def short(counts: Counts) -> str:
    """Return the table of docs/patch.md: percent right / wrong by mistake, then for CRLF files, then for all."""
    names = list(dict.fromkeys(key[3] for key in counts))
    sums: Counts = collections.defaultdict(collections.Counter)
    for (context, end, mistake, name), counted in counts.items():
        sums[context, "", mistake if end == "LF" else "any of these, CRLF file", name] += counted
        sums[context, "", "all", name] += counted
    columns = [(context, name) for context in CONTEXTS for name in names]
    lines = [
        "| mistake | " + " | ".join(f"{name}, {context}" for context, name in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for mistake in sorted(
        dict.fromkeys(key[2] for key in sums), key=[*MISTAKES, "any of these, CRLF file", "all"].index
    ):
        row = []
        for context, name in columns:
            found = sums[context, "", mistake, name]
            right, wrong = (100 * found[kind] / sum(found.values()) for kind in ("right", "wrong"))
            row.append(f"{right:.1f} / {wrong:.1f}")
        lines.append(f"| {mistake} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", default=sysconfig.get_paths()["stdlib"])
    parser.add_argument("--suffix", default=".py")
    parser.add_argument("--work", default=None, help="a folder, such as one on tmpfs, to work in")
    parser.add_argument("--only", default="", choices=["", "ours", "git apply", "GNU patch"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--short", action="store_true", help="the table of docs/patch.md")
    parser.add_argument("--tell", action="store_true", help="print each diff that ours does not get right")
    options = parser.parse_args()
    counts = run(options, print if options.tell else lambda text: None)
    if options.json:
        print(json.dumps([{"case": key, **counted} for key, counted in counts.items()]))
    else:
        print(short(counts) if options.short else table(counts))


if __name__ == "__main__":
    main()
