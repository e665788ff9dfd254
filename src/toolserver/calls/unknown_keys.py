"""The keys of a call that its tool does not declare, for the errors that name them (specification, section 15)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import inspect

from toolserver.calls.arguments import KEY_CUT, Arguments, bare
from toolserver.calls.parsing import JsonParser
from toolserver.errors import BadArgument

MAX_KEYS = 5
"""How many unknown keys are named."""
MAX_ENTRIES = 1000
"""How many entries of arrays are searched, so that a call with very many of them does not take long to refuse."""


def unknown_keys(kind: type[Arguments], raw: dict[str, Any]) -> list[str]:
    """Return the keys that `kind` does not declare, those of entries as `edits[0].x`; at most five, each cut."""
    found: list[str] = []
    search = _Search()
    with contextlib.suppress(BadArgument):  # strings that hold too much JSON: what was found before is named
        found.extend(islice(search.keys(inspect.type_info(kind), raw, ""), MAX_KEYS))
    return found


class _Search:
    """One search: entries that may still be looked at, and the parser of strings that hold JSON."""

    def __init__(self) -> None:
        self._entries = MAX_ENTRIES
        self._parser = JsonParser()

    def keys(self, info: inspect.Type, value: Any, place: str) -> Iterator[str]:
        """Find unknown keys in a value and in the entries below it, those given as JSON strings too."""
        declared = bare(info)[0]
        types = declared.types if isinstance(declared, inspect.UnionType) else (declared,)
        kinds = [bare(one)[0] for one in types]
        if not any(isinstance(one, inspect.StrType | inspect.LiteralType) for one in kinds):
            value = self._parser.decoded(value, place, dict, list)
        for kind in kinds:
            if isinstance(kind, inspect.StructType) and type(value) is dict:
                yield from self._of_struct(kind, value, place)
            elif isinstance(kind, inspect.ListType) and type(value) is list:
                for index, item in enumerate(value):
                    self._entries -= 1
                    if self._entries < 0:
                        return
                    yield from self.keys(kind.item_type, item, f"{place}[{index}]")

    def _of_struct(self, kind: inspect.StructType, value: dict[str, Any], place: str) -> Iterator[str]:
        fields = {field.encode_name: field.type for field in kind.fields}
        inner = f"{place}." if place else ""
        yield from (inner + name[:KEY_CUT] for name in value if name not in fields)
        for name, below in fields.items():
            yield from self.keys(below, value.get(name), inner + name)
