"""What all tests share: a running server to speak to, and the allowance that the conformance suite needs."""

from __future__ import annotations

import contextlib
import gc
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

HERE = pathlib.Path(__file__).parent
CONFORMANCE = HERE / "conformance"
sys.path.insert(0, str(CONFORMANCE))

if TYPE_CHECKING:
    from kit import Server


@pytest.fixture(scope="module")
def module_server() -> Iterator[Server]:
    """One server for the tests of a module."""
    from kit import serving

    with serving() as server:
        yield server


@pytest.fixture
def server(module_server: Server) -> Server:
    """A running server whose workspace is empty."""
    module_server.empty()
    return module_server


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start servers of the test's own, `serve(*flags, root=…, env=…)`; they are stopped at its end."""
    from kit import serving

    with contextlib.ExitStack() as stack:

        def start(*flags: str, root: pathlib.Path | None = None, env: dict[str, str] | None = None) -> Server:
            return stack.enter_context(serving(*flags, root=root, env=env))

        yield start


def _of_conformance(item: pytest.Item | None) -> bool:
    return item is not None and CONFORMANCE in item.path.parents


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _of_conformance(item):
            # the suite leaves HTTP clients open to the garbage collector, and it is not ours to change
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collect what the suite left open before other tests, which allow no such warning."""
    if _of_conformance(item) and not _of_conformance(nextitem):
        gc.collect()
