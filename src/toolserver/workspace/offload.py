"""Reading that may wait and images that take long, off the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Readers:
    """The threads of a server that read files and decode images; they start when they are first needed."""

    def __init__(self) -> None:
        self._files = ThreadPoolExecutor(min(32, len(os.sched_getaffinity(0)) + 4), "toolserver-files")
        # One at a time: a decoded image takes up to some 400 MB.
        self._images = ThreadPoolExecutor(1, "toolserver-images")

    async def with_descriptor(self, fd: int, work: Callable[[], T]) -> T:
        """Run `work` in a thread; `fd` is closed once it has ended, or will never begin as the call was cancelled."""
        try:
            future: Future[T] = self._files.submit(work)
        except BaseException:
            os.close(fd)
            raise
        future.add_done_callback(lambda _: os.close(fd))
        try:
            return await asyncio.wrap_future(future)
        finally:
            del future  # the traceback of an error in it refers to this frame; the two would keep each other

    async def with_image(self, work: Callable[[], T]) -> T:
        """Run `work` that decodes an image, after those that came before it."""
        return await asyncio.wrap_future(self._images.submit(work))

    def close(self) -> None:
        """Begin nothing more; what runs ends by itself."""
        for pool in (self._files, self._images):
            pool.shutdown(wait=False, cancel_futures=True)
