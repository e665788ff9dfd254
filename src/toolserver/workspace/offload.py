"""Work that may wait or take long, off the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_pool = ThreadPoolExecutor(min(32, len(os.sched_getaffinity(0)) + 4), "toolserver")
# One at a time: a decoded image takes up to some 400 MB.
_images = ThreadPoolExecutor(1, "toolserver-images")


async def with_descriptor(fd: int, work: Callable[[], T]) -> T:
    """Run `work` in a thread and close `fd` once it has ended, or will never begin because the call was cancelled."""
    future: Future[T] = _pool.submit(work)
    future.add_done_callback(lambda _: os.close(fd))
    return await asyncio.wrap_future(future)


async def with_image(work: Callable[[], T]) -> T:
    """Run `work` that decodes an image, after those that came before it."""
    return await asyncio.wrap_future(_images.submit(work))
