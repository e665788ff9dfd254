"""Globs as callers write them: compiled, or refused with a sentence (specification, section 5)."""

from __future__ import annotations

from toolserver._fast.globs import Glob
from toolserver.errors import BadArgument


def compiled(text: str, field: str) -> Glob:
    """Compile the glob of an argument; a malformed or too large one is a BadArgument that names the field."""
    try:
        pattern = text.encode()
    except UnicodeEncodeError:
        raise BadArgument(f"{field}: expected a string without lone surrogates") from None
    try:
        return Glob(pattern)
    except ValueError as error:
        shown = text if len(text) <= 200 else text[:200] + "…"
        raise BadArgument(f"{field}: {shown!r} is no valid glob: {error}") from error
