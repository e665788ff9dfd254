"""Threads that read: a descriptor is closed once, whatever becomes of the call."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest

from toolserver.workspace.offload import Readers


@pytest.fixture
def readers() -> Iterator[Readers]:
    made = Readers()
    yield made
    made.close()


def closed(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return True
    return False


def test_closed_after_the_work(readers: Readers) -> None:
    fd = os.open("/dev/null", os.O_RDONLY)
    assert asyncio.run(readers.with_descriptor(fd, lambda: closed(fd))) is False
    assert closed(fd)


def test_closed_after_a_failure(readers: Readers) -> None:
    fd = os.open("/dev/null", os.O_RDONLY)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(readers.with_descriptor(fd, lambda: 1 // 0))
    assert closed(fd)


def test_a_cancelled_call_leaves_the_descriptor_to_its_work(readers: Readers) -> None:
    """The thread may still read from it, so it is closed only when the work has ended."""
    fd = os.open("/dev/null", os.O_RDONLY)
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    still_open: list[bool] = []

    def work() -> None:
        begun.set()
        go_on.wait()
        still_open.append(not closed(fd))
        ended.set()

    async def cancelled() -> None:
        task = asyncio.ensure_future(readers.with_descriptor(fd, work))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    go_on.set()
    assert ended.wait(10)
    assert still_open == [True]


def test_work_that_never_begins(readers: Readers) -> None:
    """After the close nothing begins, and nothing stays open."""
    readers.close()
    fd = os.open("/dev/null", os.O_RDONLY)
    with pytest.raises(RuntimeError):
        asyncio.run(readers.with_descriptor(fd, lambda: None))
    assert closed(fd)


def test_images_come_one_after_the_other(readers: Readers) -> None:
    """However many wait, one thread decodes them all."""
    threads: list[int] = []
    go_on = threading.Event()

    def work() -> None:
        go_on.wait()
        threads.append(threading.get_ident())

    async def many() -> None:
        waiting = [asyncio.ensure_future(readers.with_image(work)) for _ in range(20)]
        await asyncio.sleep(0)  # all are handed over now
        go_on.set()
        await asyncio.gather(*waiting)

    asyncio.run(many())
    assert (len(threads), len(set(threads))) == (20, 1)
