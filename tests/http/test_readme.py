"""The README's examples, in its order, on the workspace that it makes: each answer is the one shown."""

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

README = pathlib.Path(__file__).parents[2] / "README.md"
VARYING = {"ms", "started_at"}
CALL = re.compile(r"POST /tools/(\w+) (\{.*\})\n(?:(\d{3}) )?(\{.*\})")


def blocks(kind: str) -> list[str]:
    """Return the README's fenced blocks of one language."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def steady(value: Any) -> Any:
    """Take out what differs from run to run, and put globbed paths, which come newest first, in order."""
    if isinstance(value, dict):
        return {
            name: sorted(of) if name == "paths" else steady(of) for name, of in value.items() if name not in VARYING
        }
    return value


def test_examples(serve: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    (setup,) = blocks("sh")
    subprocess.run(["sh", "-ec", setup], cwd=tmp_path, check=True)
    server = serve(root=tmp_path)
    calls = [found for block in blocks("http") for found in CALL.findall(block)]
    assert len(calls) == sum(block.count("POST /tools/") for block in blocks("http")) > 10
    for tool, arguments, status, shown in calls:
        end = time.monotonic() + 5
        while True:
            got = server.tool(tool, **json.loads(arguments))
            # events come within a moment; everything else is as shown at once
            if tool != "watch_poll" or got[1]["events"] or time.monotonic() > end:
                break
        assert (got[0], steady(got[1])) == (int(status or 200), steady(json.loads(shown))), (tool, arguments)


@pytest.mark.parametrize("heading", ["Tools", "Limits", "Security", "Benchmarks", "Architecture"])
def test_has_its_parts(heading: str) -> None:
    assert f"\n## {heading}\n" in README.read_text()


def test_table_names_every_tool(server: Server) -> None:
    table = README.read_text().split("\n## Tools\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert named - {"tool"} == {tool["name"] for tool in server.http.get("/tools").json()["tools"]}


def test_flags_are_those_of_serve() -> None:
    usage = README.read_text().split("serve [ROOT]")[1].split("\n\n")[0]
    from toolserver.settings import SERVE

    assert set(re.findall(r"--([\w-]+)", usage)) | {"container-cli"} == {flag.name for flag in SERVE}
