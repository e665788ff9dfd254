"""How a tool declares its arguments: msgspec structs, from which the schema and the check are made.

A tool declares a subclass of `Arguments`; every field has a `Meta` with a description. In `Meta`, `ge`, `min_length`
and `max_length` are checked, and `extra={"lower_to": N}` lowers a larger number to N (specification, section 2).
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, inspect

KEY_CUT = 64
"""How many characters of a caller's key an error shows."""


class Entry(msgspec.Struct, kw_only=True, frozen=True):
    """Base of the objects inside an argument, such as one edit of `edits`."""


class Arguments(msgspec.Struct, kw_only=True, frozen=True):
    """Base of every tool's arguments."""

    tree: Annotated[
        str | None,
        Meta(
            description="Name of the working directory: 1 to 32 of a-z, 0-9 and -. Default: main, the workspace itself."
        ),
    ] = None


def bare(info: inspect.Type) -> tuple[inspect.Type, dict[str, Any], dict[str, Any]]:
    """Return the type without its `Meta` wrapper, its extra JSON Schema and its `extra`."""
    if isinstance(info, inspect.Metadata):
        return info.type, dict(info.extra_json_schema or {}), dict(info.extra or {})
    return info, {}, {}


def branches(union: inspect.UnionType) -> list[inspect.Type]:
    """Return the types of a union, null left out: null means that an argument is absent."""
    return [branch for branch in union.types if not isinstance(branch, inspect.NoneType)]
