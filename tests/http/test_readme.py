"""What the README and the pages of docs/ show: each example is answered as shown, each link leads somewhere."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kit import Server

ROOT = pathlib.Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
VARYING = {"ms", "started_at", "created_at", "mtime", "head"}
CALL = re.compile(r"(POST|GET) (/\S+)(?: (.*))?\n(?:(\d{3}) )?(\{.*\})")


def blocks(page: pathlib.Path, kind: str) -> list[str]:
    """Return a page's fenced blocks of one language."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def steady(value: Any) -> Any:
    """Take out what differs from run to run, and put globbed paths, which come newest first, in order."""
    if isinstance(value, list):
        return [steady(one) for one in value]
    if isinstance(value, dict):
        return {
            name: sorted(of) if name == "paths" else steady(of) for name, of in value.items() if name not in VARYING
        }
    return value


@pytest.mark.parametrize("page", [page for page in PAGES if "```http" in page.read_text()], ids=lambda page: page.name)
def test_examples(page: pathlib.Path, serve: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    for setup in (*blocks(README, "sh"), *blocks(page, "shell")):
        subprocess.run(["sh", "-ec", setup], cwd=tmp_path, check=True)
    server = serve(root=tmp_path)
    calls = [found for block in blocks(page, "http") for found in CALL.findall(block)]
    assert len(calls) == len(re.findall(r"^(?:POST|GET) /", page.read_text(), re.MULTILINE)) > 0
    for method, target, body, status, shown in calls:
        end = time.monotonic() + 5
        while True:
            got = server.http.request(method, target, content=body.encode())
            # events come within a moment; everything else is as shown at once
            if "watch_poll" not in target or got.json()["events"] or time.monotonic() > end:
                break
        assert (got.status_code, steady(got.json())) == (int(status or 200), steady(json.loads(shown))), (target, body)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: pathlib.Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, target


@pytest.mark.parametrize("heading", ["A first call", "Tools", "Safety", "Benchmarks"])
def test_has_its_parts(heading: str) -> None:
    assert f"\n## {heading}\n" in README.read_text()


def test_is_read_in_a_sitting() -> None:
    assert len(README.read_text().splitlines()) <= 150


def test_table_names_every_tool(server: Server) -> None:
    table = README.read_text().split("\n## Tools\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert named - {"tool"} == {tool["name"] for tool in server.http.get("/tools").json()["tools"]}


def test_flags_are_those_of_serve() -> None:
    usage = README.read_text().split("serve [ROOT]")[1].split("\n\n")[0]
    from toolserver.settings import SERVE

    assert set(re.findall(r"--([\w-]+)", usage)) | {"container-cli"} == {flag.name for flag in SERVE}
