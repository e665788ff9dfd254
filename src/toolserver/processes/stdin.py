"""The standard input of a command: writes in the order of the calls, as fast as it reads."""

from __future__ import annotations

import asyncio
import os

from toolserver.errors import ToolError

END_OF_INPUT = b"\x04"
"""What ends the input on a terminal, at the beginning of a line."""


class Stdin:
    """The write end of a command's input; a descriptor below 0: no input. `name` in a call is for its errors."""

    def __init__(self, fd: int, *, terminal: bool) -> None:
        self._fd = fd
        self._terminal = terminal
        self._at_line_start = True
        self._turn = asyncio.Lock()
        self._closed = fd < 0
        self._ended = False
        self._waiting: asyncio.Future[None] | None = None

    async def write(self, data: bytes, name: str) -> int:
        """Wait until all bytes are in the pipe and return how many. ToolError after the close or the exit."""
        async with self._turn:
            return await self._put(data, name)

    async def _put(self, data: bytes, name: str) -> int:
        self._check(name, 0)
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await self._writable()
                self._check(name, len(data) - len(rest))
            except OSError:  # EPIPE, or EIO on a terminal: its last reader has gone
                taken = len(data) - len(rest)
                raise ToolError(f"{name} has closed its input; {taken} bytes were taken") from None
        if data:
            self._at_line_start = data.endswith((b"\n", b"\r"))
        return len(data)

    def _check(self, name: str, taken: int) -> None:
        if self._ended:
            raise ToolError(f"{name} has exited; {taken} bytes were taken")
        if self._closed:
            raise ToolError(f"{name} takes no input: its stdin is closed")

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        loop.add_writer(self._fd, self._wake)
        try:
            await self._waiting
        finally:
            self._waiting = None
            if self._fd >= 0:
                loop.remove_writer(self._fd)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def close(self, name: str) -> None:
        """End the input, after the writes that wait. Does nothing when called again or after the exit."""
        async with self._turn:
            if self._closed or self._ended:
                return
            if self._terminal:
                # inside a line the first one only submits what was typed
                await self._put(END_OF_INPUT if self._at_line_start else END_OF_INPUT * 2, name)
                self._closed = True
            else:
                self._closed = True
                self._release()

    def end(self) -> None:
        """Close the descriptor and fail waiting writes: the command has exited."""
        self._ended = True
        self._wake()
        self._release()

    def _release(self) -> None:
        if self._fd >= 0:
            if self._waiting is not None:
                asyncio.get_running_loop().remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1
