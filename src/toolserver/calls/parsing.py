"""JSON from a caller, parsed only when it holds a bounded number of values (specification, section 13)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import orjson

from toolserver._fast.json import count_values
from toolserver.errors import BadArgument

MAX_VALUES = 200_000
"""JSON values of a body, and of all the strings of a call that hold JSON."""
LARGE = 256 * 1024
"""Bytes of a body from which on its parse and check may take more than a few milliseconds."""

R = TypeVar("R")
P = ParamSpec("P")


class NotJson(Exception):
    """The text is not JSON (RFC 8259, UTF-8). The message says what is wrong and where."""


async def off_loop(size: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `work` on what came in a body of `size` bytes: in a thread where it may hold up the event loop."""
    if size < LARGE:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


class JsonParser:
    """Parses the JSON texts of one call; all together may hold MAX_VALUES values."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def parse(self, text: bytes | str, place: str) -> Any:
        """Return the value of a text found at `place`. Raises NotJson, and BadArgument for too many values."""
        self._left -= count_values(text, self._left)
        if self._left < 0:
            raise BadArgument(f"{place}: expected at most {MAX_VALUES} JSON values")
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise NotJson(f"{error.msg} (line {error.lineno}, column {error.colno})") from None

    def decoded(self, value: Any, place: str, *wanted: type) -> Any:
        """Return what a string holds as JSON where that is of a wanted type, else the value as it is."""
        if type(value) is str:
            try:
                found = self.parse(value, place)
            except NotJson:
                return value
            if type(found) in wanted:
                return found
        return value
