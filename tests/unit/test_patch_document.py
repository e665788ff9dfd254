"""docs/patch.md: its example is true, and its table is the one that bench/mistakes.py prints."""

from __future__ import annotations

import json
import pathlib
import re
import sys

from toolserver.patches import parser, staging
from toolserver.workspace.root import Workspace
from toolserver.writing.writer import Writer

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "docs/patch.md").read_text()


def test_example(tmp_path: pathlib.Path) -> None:
    found = re.search(r"POST /tools/patch (.*)\n(.*)\n", TEXT)
    assert found
    (tmp_path / "greet.py").write_text("print('hello')\n")
    workspace = Workspace(str(tmp_path))
    writer = Writer(workspace.root)
    diff = parser.read(json.loads(found[1])["diff"].encode())
    with workspace.tree("main") as tree:
        outcome = writer.apply(tree, lambda batch: staging.stage(batch, b"", diff))
    writer.close()
    answer = {"cwd": ".", "files": [path.decode() for path in outcome.files], "notes": outcome.notes}
    assert answer == json.loads(found[2])
    assert (tmp_path / "greet.py").read_text() == "print('hello, world')\n"


def test_table_has_every_mistake(monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench"), *sys.path])
    import mistakes

    rows = [line.split("|")[1].strip() for line in TEXT.splitlines() if line.startswith("| ")][1:]
    assert rows == [*mistakes.MISTAKES, "any of these, CRLF file", "all"]
