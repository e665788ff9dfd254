"""`docs/` says what is so: names of code, sections, links."""

from __future__ import annotations

import pathlib
import re
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAPERS = [*DOCS, *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))]
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
OUTSIDE = re.compile(r"\.\./(?:seeds|shared|spec)|iii-worker|(?<!-)\bseeds?\b|details\.md")
"""What a document must not cite: nothing outside the repository."""
SPECIFICATION = (ROOT / "docs/specification.md").read_text()


def source(name: str) -> pathlib.Path:
    """Return the file that a document names: from the repository's top, of the package, or a kernel."""
    places = [ROOT / name, ROOT / "src/toolserver" / name, ROOT / "src/_fast" / name, ROOT / "src" / name]
    found = [place for place in places if place.is_file()]
    assert found, f"{name} is no file"
    return found[0]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_files_exist(paper: pathlib.Path) -> None:
    """Each file that is named with its ending and a folder is there."""
    text = paper.read_text() if paper != ROOT / "docs/specification.md" else ""
    for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.(?:py|pyx|pxd|h|md))`", text):
        source(name)


def test_functions_exist() -> None:
    """`file` `Class.method` or `function` in the architecture are defined in that file."""
    pairs = re.findall(r"`([\w/]+\.pyx?)`\s+`([\w.]+)`", ARCHITECTURE)
    assert len(pairs) > 25
    for name, dotted in pairs:
        text = source(name).read_text()
        for part in dotted.split("."):
            assert re.search(rf"^\s*(?:async def|def|cdef class|class|cpdef [\w ]*) ?{part}\b", text, re.MULTILINE), (
                name,
                part,
            )


def test_contract() -> None:
    """The layers are those of the import contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [line.replace("toolserver.", "") for line in contracts[0]["layers"]]
    assert "\n".join(layers) in ARCHITECTURE


def test_cited_sections_exist() -> None:
    """Every section of the specification that code cites has its heading, and they are numbered in order."""
    headings = [int(number) for number in re.findall(r"^## (\d+)\. ", SPECIFICATION, re.MULTILINE)]
    assert headings == list(range(1, 16))
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "src/_fast").glob("*.py[xid]*")]:
        for number in re.findall(r"specification,\s+section\s+(\d+)", path.read_text()):
            assert int(number) in headings, path


def test_nothing_outside() -> None:
    """The documents cite nothing that is not in the repository."""
    for paper in PAPERS:
        assert not re.search(
            r"\.\./(?:seeds|shared|spec)|iii-worker|(?<!-)\bseeds?\b|details\.md", paper.read_text()
        ), paper
