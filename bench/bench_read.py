"""read over HTTP and its kernel alone, beside `cat -n`; and many small reads at once, beside bare Starlette."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import inputs
import pytest
from serving import TOKEN, Served, drained, free_port, serving
from sidebyside import record, side_by_side

from toolserver._fast import lines

MIB = 1024 * 1024
WRK_SECONDS = 3


@pytest.fixture(scope="module")
def root() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-") as made:
        where = pathlib.Path(made)
        (where / "big.c").write_bytes(inputs.source_text(10 * MIB, seed=1))
        (where / "f.c").write_bytes(inputs.source_text(2000, seed=2))
        for size in (1_000, 10_000, 100_000, 1_000_000):
            (where / f"{size}.c").write_bytes(inputs.source_text(size, seed=3))
        yield where


@pytest.fixture(scope="module")
def server(root: pathlib.Path) -> Iterator[Served]:
    with serving(root) as made:
        yield made


def test_read_10_mib(benchmark: Any, server: Served, root: pathlib.Path) -> None:
    """All lines of a 10 MiB source file, to the last byte of the answer."""
    benchmark.group = "read"
    side_by_side(
        benchmark,
        lambda: server.connection.post("read", path="big.c", limit=10**9),
        {"cat -n": lambda: drained("cat", "-n", str(root / "big.c"))},
        rounds=15,
        bound=2.0,
    )


def test_lines_10_mib(benchmark: Any, root: pathlib.Path) -> None:
    """The kernel alone, on the same bytes."""
    data = (root / "big.c").read_bytes()
    benchmark.group = "read"
    side_by_side(
        benchmark,
        lambda: lines.number(data, 1, 10**9),
        {"cat -n": lambda: drained("cat", "-n", str(root / "big.c"))},
        rounds=15,
        bound=0.40,
    )


@pytest.mark.parametrize("size", [1_000, 10_000, 100_000, 1_000_000])
def test_read_growth(benchmark: Any, server: Served, root: pathlib.Path, size: int) -> None:
    """How read grows with the file; shown without a bound."""
    benchmark.group = "read by size"
    side_by_side(
        benchmark,
        lambda: server.connection.post("read", path=f"{size}.c", limit=10**9),
        {"cat -n": lambda: drained("cat", "-n", str(root / f"{size}.c"))},
        rounds=20,
        facts={"bytes": size},
    )


@contextlib.contextmanager
def bare_starlette() -> Iterator[int]:
    port = free_port()
    command = [sys.executable, str(pathlib.Path(__file__).with_name("echo.py")), str(port)]
    with subprocess.Popen(command) as process:
        try:
            time.sleep(1.5)
            yield port
        finally:
            process.terminate()


def requests_per_second(port: int) -> float:
    """Return what wrk counts with 32 connections."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        body = json.dumps({"path": "f.c"})
        script.write(f'wrk.method = "POST"\nwrk.body = {json.dumps(body)}\n')
        script.write(f'wrk.headers["Authorization"] = "Bearer {TOKEN}"\n')
        script.flush()
        url = f"http://127.0.0.1:{port}/tools/read"
        command = [inputs.program("wrk"), "-t1", "-c32", f"-d{WRK_SECONDS}s", "-s", script.name, url]
        done = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in done, done
    found = re.search(r"Requests/sec:\s+([\d.]+)", done)
    assert found, done
    return float(found[1])


def test_small_reads(benchmark: Any, server: Served) -> None:
    """Seconds a request of a 2 kB read on 32 connections; the bound 1 / 0.60 means 0.60 of the anchor's rate."""
    ours: list[float] = []
    theirs: list[float] = []
    with bare_starlette() as port:
        for _ in range(6):
            theirs.append(1 / requests_per_second(port))
            ours.append(1 / requests_per_second(server.port))
    benchmark.group = "small reads, 32 connections"
    benchmark.pedantic(lambda: server.connection.post("read", path="f.c"), rounds=1, iterations=100)
    facts = {"requests per second": round(1 / sorted(ours)[3]), "bare Starlette": round(1 / sorted(theirs)[3])}
    record(benchmark, ours[1:], {"bare Starlette": theirs[1:]}, bound=1 / 0.60, facts=facts)
