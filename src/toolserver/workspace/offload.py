"""Thread pools for reading files and for decoding images."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Readers:
    """The threads of a server that read files and decode images, started on first use."""

    def __init__(self) -> None:
        self._files = ThreadPoolExecutor(min(32, len(os.sched_getaffinity(0)) + 4), "toolserver-files")
        # One at a time: a decoded image takes up to some 400 MB.
        self._images = ThreadPoolExecutor(1, "toolserver-images")

    async def with_descriptor(self, fd: int, work: Callable[[], T]) -> T:
        """Run `work` in a thread and close `fd` when it ends, or when it was cancelled before it began."""
        try:
            future: Future[T] = self._files.submit(work)
        except BaseException:
            os.close(fd)
            raise
        future.add_done_callback(lambda _: os.close(fd))
        try:
            return await asyncio.wrap_future(future)
        finally:
            del future  # an error's traceback refers to this frame: keeping the future here would be a cycle

    async def with_image(self, work: Callable[[], T]) -> T:
        """Run `work` that decodes an image, one at a time, in order of arrival."""
        return await asyncio.wrap_future(self._images.submit(work))

    def close(self) -> None:
        """Start nothing more; running work ends by itself."""
        for pool in (self._files, self._images):
            pool.shutdown(wait=False, cancel_futures=True)
