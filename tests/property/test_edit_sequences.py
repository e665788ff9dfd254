"""edit against a plain string model: random edits of random files, each call applied or refused as a whole."""

from __future__ import annotations

import asyncio
import pathlib
import tempfile
import types
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolserver.calls.call import Call
from toolserver.calls.coercion import check
from toolserver.errors import ToolError
from toolserver.tools import edit
from toolserver.workspace.root import Workspace
from toolserver.writing.writer import Writer

NAMES = ("f", "d/g", "link")
WORDS = st.lists(st.sampled_from(["one", "two", "é", "\n", " ", "$&", "\\1", "\u2028"]), max_size=8).map("".join)
EDIT = st.fixed_dictionaries({"old": WORDS.filter(bool), "new": WORDS, "replace_all": st.booleans()})
FILES = st.lists(
    st.fixed_dictionaries({"path": st.sampled_from(NAMES), "edits": st.lists(EDIT, min_size=1, max_size=3)}),
    min_size=1,
    max_size=3,
)


@pytest.fixture(scope="module")
def desk() -> Iterator[tuple[pathlib.Path, Any]]:
    with tempfile.TemporaryDirectory() as made:
        root = pathlib.Path(made).resolve()
        (root / "d").mkdir()
        (root / "link").symlink_to("d/g")
        services = types.SimpleNamespace(workspace=Workspace(str(root)), writer=Writer(bytes(root)))
        yield root, services
        services.writer.close()


def model(before: dict[str, str], files: list[dict[str, Any]]) -> dict[str, str] | None:
    """Apply the edits to strings; None where the call is refused. `link` is `d/g`."""
    after = dict(before)
    for entry in files:
        name = "d/g" if entry["path"] == "link" else entry["path"]
        for one in entry["edits"]:
            count = after[name].count(one["old"])
            if count == 0 or (count > 1 and not one["replace_all"]):
                return None
            after[name] = after[name].replace(one["old"], one["new"])
    touched = {"d/g" if entry["path"] == "link" else entry["path"] for entry in files}
    return None if any(after[name] == before[name] for name in touched) else after


@settings(max_examples=150)
@given(st.tuples(WORDS, WORDS), FILES)
def test_like_strings(desk, texts, files):
    root, services = desk
    before = dict(zip(("f", "d/g"), texts, strict=True))
    for name, text in before.items():
        (root / name).write_bytes(text.encode())
    want = model(before, files)
    with services.workspace.tree("main") as tree:
        call = edit.run(Call(tree, services), check(edit.EditArguments, {"files": files}))
        if want is None:
            with pytest.raises(ToolError):
                asyncio.run(call)
        else:
            answer = asyncio.run(call)
            assert answer["applied"] == sum(len(entry["edits"]) for entry in files)
            assert [row["path"] for row in answer["files"]] == [entry["path"] for entry in files]
    assert {name: (root / name).read_bytes().decode() for name in before} == (want or before)
    assert sorted(path.name for path in root.iterdir() if path.name != ".kd") == ["d", "f", "link"]
