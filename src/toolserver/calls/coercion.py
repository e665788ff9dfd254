"""The check of a call's arguments: JSON values become the declared types (specification, section 2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import inspect

from toolserver.calls.arguments import KEY_CUT, Arguments, bare, branches
from toolserver.calls.parsing import JsonParser
from toolserver.errors import BadArgument

MAX_INTEGER = 2**63 - 1
MAX_DIGITS = 4096
"""Characters of a string that may be a decimal integer."""

T = TypeVar("T", bound=Arguments)
Take = Callable[[Any, str, JsonParser], Any]
"""Returns a value, found at a named place, in its declared type. Strings that hold JSON go through the parser, which
bounds what they hold. Raises BadArgument."""


def check(kind: type[T], raw: dict[str, Any]) -> T:
    """Return the JSON object of a call as `kind`; unknown keys are ignored.

    Raises BadArgument that names the field, as `edits[2].old` inside entries, and the expected JSON type.
    """
    taken = _struct(kind)(raw, "", JsonParser())
    assert isinstance(taken, kind)
    return taken


def prepare(kind: type[Arguments]) -> None:
    """Make the checker of `kind` at the start: it takes half a millisecond, which the first call would wait for."""
    _struct(kind)


_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
_takers: dict[type, Take] = {}
"""The checkers of structs that were made so far."""


def _wrong(place: str, expected: str, value: Any) -> BadArgument:
    got = "null" if value is None else _KINDS.get(type(value), "something else")
    return BadArgument(f"{place}: expected {expected}, not {got}")


def _struct(kind: type) -> Take:
    take = _takers.get(kind)
    if take is None:
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        fields = [(field.encode_name, field.required, _taker(field.type), _words(field.type)) for field in info.fields]

        def take(value: Any, place: str, parser: JsonParser) -> Any:
            value = parser.decoded(value, place, dict)
            if type(value) is not dict:
                raise _wrong(place, "an object", value)
            inner = f"{place}." if place else ""
            given = {}
            for name, required, taker, words in fields:
                item = value.get(name)
                if item is not None:
                    given[name] = taker(item, inner + name, parser)
                elif required:
                    raise BadArgument(f"{inner}{name} is required: expected {words}")
            return kind(**given)

        _takers[kind] = take
    return take


def _take_string(value: Any, place: str, parser: JsonParser) -> str:
    if type(value) is not str:
        raise _wrong(place, "a string", value)
    return value


def _take_boolean(value: Any, place: str, parser: JsonParser) -> bool:
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise _wrong(place, "a boolean", value)


def _integer(info: inspect.IntType, lower_to: int | None) -> Take:
    least = info.ge

    def take(value: Any, place: str, parser: JsonParser) -> int:
        if type(value) is int:
            number = value
        elif type(value) is float and value.is_integer():
            number = int(value)
        elif type(value) is str and len(value) < MAX_DIGITS and _INTEGER.fullmatch(value):
            number = int(value)
        elif type(value) is float:
            raise BadArgument(f"{place}: expected an integer, not {value}")
        else:
            raise _wrong(place, "an integer", value)
        if least is not None and number < least:
            raise BadArgument(f"{place}: expected an integer of at least {least}, not {str(number)[:40]}")
        if lower_to is not None and number > lower_to:
            return lower_to
        if abs(number) > MAX_INTEGER:
            raise BadArgument(f"{place}: expected an integer of at most {MAX_INTEGER}")
        return number

    return take


def _list(info: inspect.ListType) -> Take:
    item = _taker(info.item_type)
    least, most = info.min_length or 0, info.max_length

    def take(value: Any, place: str, parser: JsonParser) -> list[Any]:
        value = parser.decoded(value, place, list)
        if type(value) is not list:
            raise _wrong(place, "an array", value)
        if len(value) < least or (most is not None and len(value) > most):
            bounds = f"at least {least}" if most is None else f"{least} to {most}"
            raise BadArgument(f"{place}: expected an array of {bounds} entries, not of {len(value)}")
        return [item(one, f"{place}[{index}]", parser) for index, one in enumerate(value)]

    return take


def _mapping(info: inspect.DictType) -> Take:
    item = _taker(info.value_type)

    def take(value: Any, place: str, parser: JsonParser) -> dict[str, Any]:
        value = parser.decoded(value, place, dict)
        if type(value) is not dict:
            raise _wrong(place, "an object", value)
        return {key: item(one, f"{place}.{key[:KEY_CUT]}", parser) for key, one in value.items()}

    return take


def _literal(info: inspect.LiteralType) -> Take:
    values = [str(value) for value in info.values]

    def take(value: Any, place: str, parser: JsonParser) -> str:
        if type(value) is not str or value not in values:
            raise BadArgument(f"{place}: expected a string, one of {', '.join(values)}")
        return value

    return take


def _union(info: inspect.UnionType) -> Take:
    """Choose by the JSON type of the value; a string is never decoded where a string is declared."""
    types = branches(info)
    if len(types) == 1:
        return _taker(types[0])
    by_type = {_json_type(branch): _taker(branch) for branch in types}
    words = _words(info)

    def take(value: Any, place: str, parser: JsonParser) -> Any:
        taker = by_type.get(type(value))
        if taker is None:
            raise _wrong(place, words, value)
        return taker(value, place, parser)

    return take


def _json_type(info: inspect.Type) -> type:
    match bare(info)[0]:
        case inspect.StrType() | inspect.LiteralType():
            return str
        case inspect.ListType():
            return list
        case inspect.IntType():
            return int
        case inspect.BoolType():
            return bool
    return dict


def _taker(info: inspect.Type) -> Take:
    declared, _, extra = bare(info)
    match declared:
        case inspect.UnionType():
            types = branches(declared)
            if "lower_to" in extra and len(types) == 1 and isinstance(types[0], inspect.IntType):
                return _integer(types[0], extra["lower_to"])
            return _union(declared)
        case inspect.StructType():
            return _struct(declared.cls)
        case inspect.StrType():
            return _take_string
        case inspect.BoolType():
            return _take_boolean
        case inspect.IntType():
            return _integer(declared, extra.get("lower_to"))
        case inspect.ListType():
            return _list(declared)
        case inspect.DictType():
            return _mapping(declared)
        case inspect.LiteralType():
            return _literal(declared)
    raise TypeError(f"no rule for arguments of {declared}")


_WORDS = {str: "a string", list: "an array", int: "an integer", bool: "a boolean", dict: "an object"}


def _words(info: inspect.Type) -> str:
    """Return what an error says was expected."""
    declared = bare(info)[0]
    if isinstance(declared, inspect.UnionType):
        return " or ".join(_words(branch) for branch in branches(declared))
    return _WORDS[_json_type(declared)]
