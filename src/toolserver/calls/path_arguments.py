"""The `path` and `path_b64` pair that every tool with a path takes."""

from __future__ import annotations

from typing import Annotated, Protocol

from msgspec import Meta

from toolserver.errors import BadArgument
from toolserver.workspace.paths import Place, Tree, decode_base64

PathText = Annotated[
    str | None, Meta(description="Path relative to the working directory's root, or absolute below it.")
]
PathBase64 = Annotated[
    str | None, Meta(description="The path's bytes as base64, for a name that is not UTF-8; `path` wins over it.")
]


class HasPath(Protocol):
    """Arguments or an entry with a path."""

    @property
    def path(self) -> str | None: ...
    @property
    def path_b64(self) -> str | None: ...


def place_of(tree: Tree, given: HasPath, where: str = "") -> Place:
    """Return the checked place of arguments. `where`, such as `files[1].`, prefixes the field's name in errors."""
    if given.path is not None:
        return tree.place(given.path, f"{where}path")
    if given.path_b64 is not None:
        return tree.place(decode_base64(given.path_b64, f"{where}path_b64"), f"{where}path_b64")
    raise BadArgument(f"{where}path is required: expected a string")
