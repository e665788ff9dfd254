"""Mounts for the time of a test; where they are refused the test is skipped."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
from collections.abc import Iterator

import pytest


def mounted(*args: str) -> None:
    """Mount, or skip the test where that is not allowed."""
    made = subprocess.run(["mount", *args], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"mount is refused here: {made.stderr.strip()}")


@contextlib.contextmanager
def mount(where: pathlib.Path, *args: str) -> Iterator[None]:
    where.mkdir(exist_ok=True)
    mounted(*args, str(where))
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", where], check=True)
