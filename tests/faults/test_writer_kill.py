"""A server killed at any step of a write leaves every file old or new, and nothing else once another server wrote."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Callable

import pytest
import steps

from toolserver.patches import parser, staging
from toolserver.workspace.root import Workspace
from toolserver.writing.batch import Batch
from toolserver.writing.temps import TEMP
from toolserver.writing.writer import Writer

pytestmark = pytest.mark.skipif(not steps.allowed(), reason="a child may not be traced here (ptrace)")


def temps_in(root: pathlib.Path) -> list[str]:
    return [name for _, _, names in os.walk(root) for name in names if TEMP.fullmatch(name.encode())]


class Case:
    """A root with files, and changes of it, made by a writer that is new each time, as in a server just started."""

    def __init__(self, root: pathlib.Path, files: dict[str, str], work: Callable[[Case, Batch], None]) -> None:
        self.root = root
        self.before = files
        self.work = work
        self.workspace = Workspace(str(root))

    def prepare(self) -> None:
        for entry in self.root.iterdir():
            if entry.name != ".kd":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for name, text in self.before.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def run(self) -> None:
        writer = Writer(self.workspace.root)
        with self.workspace.tree("main") as tree:
            self.tree = tree
            writer.apply(tree, lambda batch: self.work(self, batch))

    def put(self, batch: Batch, name: str, text: str) -> None:
        batch.look(self.tree.place(name)).put(text.encode())

    def remove(self, batch: Batch, name: str) -> None:
        batch.look(self.tree.place(name)).remove(prune=True)

    def files(self) -> dict[str, str]:
        found = {}
        for directory, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name != ".kd"]
            for name in names:
                path = pathlib.Path(directory, name)
                found[str(path.relative_to(self.root))] = path.read_text()
        return found


def write_one(case: Case, batch: Batch) -> None:
    case.put(batch, "f", "new f\n")


def write_new(case: Case, batch: Batch) -> None:
    case.put(batch, "made/for/it", "new\n")


def edit_two(case: Case, batch: Batch) -> None:
    for name in ("f", "d/g"):
        file = batch.look(case.tree.place(name))
        file.put(file.content().replace(b"old", b"new"))


DIFF = parser.read(b"""\
--- a/f
+++ b/f
@@ -1 +1 @@
-old f
+new f
diff --git a/d/g b/n/h
rename from d/g
rename to n/h
--- a/d/g
+++ b/n/h
@@ -1 +1 @@
-old g
+new h
--- a/i
+++ b/i
@@ -1 +1 @@
-old i
+new i
""")


def patch_many(case: Case, batch: Batch) -> None:
    staging.stage(batch, b"", DIFF)


def folder_to_file(case: Case, batch: Batch) -> None:
    case.remove(batch, "d/g")
    case.put(batch, "d", "a file now\n")


BEFORE = {"f": "old f\n", "d/g": "old g\n", "i": "old i\n"}
CASES = {
    "write": (write_one, BEFORE | {"f": "new f\n"}),
    "write with parents": (write_new, BEFORE | {"made/for/it": "new\n"}),
    "edit of two files": (edit_two, BEFORE | {"f": "new f\n", "d/g": "new g\n"}),
    "patch": (patch_many, {"f": "new f\n", "n/h": "new h\n", "i": "new i\n"}),
    "a folder becomes a file": (folder_to_file, {"f": "old f\n", "i": "old i\n", "d": "a file now\n"}),
}


@pytest.mark.parametrize(("work", "after"), CASES.values(), ids=CASES)
def test_killed_at_every_step(tmp_path, work, after):
    """§4 each file is its old or its new self, and no temporary file stays behind the next server's start."""
    case = Case(tmp_path, BEFORE, work)
    case.prepare()
    case.run()
    assert case.files() == after
    named = 0
    for step in steps.every_step(case.prepare, case.run):
        named += bool(temps_in(case.root))
        Writer(case.workspace.root).close()
        found = case.files()
        for name in BEFORE.keys() | after.keys():
            assert found.get(name) in (BEFORE.get(name), after.get(name)), f"{name} after a kill at step {step}"
        assert found.keys() <= BEFORE.keys() | after.keys(), f"left over after a kill at step {step}"
    assert case.files() == after
    assert bool(named) == (work is not write_new), "the steps at which a temp has a name are among those tried"
