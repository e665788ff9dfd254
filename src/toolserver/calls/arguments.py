"""Arguments of tools: schema, check and coercion from one definition, a msgspec struct (specification, section 2).

A tool declares a subclass of `Arguments`; every field has a `Meta` with a description. In `Meta`: `ge`, `min_length`
and `max_length` are checked, `extra={"lower_to": N}` lowers a larger number to N.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeVar

import msgspec
import orjson
from msgspec import Meta, inspect

from toolserver.errors import BadArgument

NAMED_AT_MOST = 5
"""How many unknown keys an error names."""
CUT = 64
"""How many characters of an unknown key, or of a key of a mapping, an error shows."""
LOOKED_AT = 1000
"""How many entries are searched for unknown keys."""
MAX_INTEGER = 2**63 - 1

T = TypeVar("T", bound="Arguments")
Take = Callable[[Any, str], Any]
"""Checks a value at a named place and answers it in its declared type, or raises BadArgument."""


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


def check(kind: type[T], raw: dict[str, Any]) -> T:
    """Check the JSON object of a call and answer it as `kind`; unknown keys are ignored.

    Raises BadArgument that names the field, as `edits[2].old` inside entries, and the expected JSON type.
    """
    taken = _struct(kind)(raw, "")
    assert isinstance(taken, kind)
    return taken


def prepare(kind: type[Arguments]) -> None:
    """Make the checker of `kind` now, which takes half a millisecond, and not with the first call."""
    _struct(kind)


def unknown_keys(kind: type[Arguments], raw: dict[str, Any]) -> list[str]:
    """Return the keys that `kind` does not declare, those of entries as `edits[0].x`; at most five, each cut."""
    found: list[str] = []
    for name in _unknown(inspect.type_info(kind), raw, "", [LOOKED_AT]):
        found.append(name)
        if len(found) == NAMED_AT_MOST:
            break
    return found


def schema(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of `kind`, every property with its description, `required` always there."""
    return _schema_of(inspect.type_info(kind))


# --------------------------------------------------------------------------------------------------------- checking

_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
_takers: dict[type, Take] = {}


def _wrong(place: str, expected: str, value: Any) -> BadArgument:
    got = "null" if value is None else _KINDS.get(type(value), "something else")
    return BadArgument(f"{place}: expected {expected}, not {got}")


def _struct(kind: type) -> Take:
    """Return the (once made) checker of a struct."""
    take = _takers.get(kind)
    if take is None:
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        fields = [(field.encode_name, field.required, _taker(field.type), _words(field.type)) for field in info.fields]

        def take(value: Any, place: str) -> Any:
            value = _decoded(value, dict)
            if type(value) is not dict:
                raise _wrong(place, "an object", value)
            inner = f"{place}." if place else ""
            given = {}
            for name, required, taker, words in fields:
                item = value.get(name)
                if item is not None:
                    given[name] = taker(item, inner + name)
                elif required:
                    raise BadArgument(f"{inner}{name} is required: expected {words}")
            return kind(**given)

        _takers[kind] = take
    return take


def _take_string(value: Any, place: str) -> str:
    if type(value) is not str:
        raise _wrong(place, "a string", value)
    return value


def _take_boolean(value: Any, place: str) -> bool:
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise _wrong(place, "a boolean", value)


def _integer(info: inspect.IntType, lower_to: int | None) -> Take:
    least = info.ge

    def take(value: Any, place: str) -> int:
        if type(value) is int:
            number = value
        elif type(value) is float and value.is_integer():
            number = int(value)
        elif type(value) is str and len(value) < 4096 and _INTEGER.fullmatch(value):
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


def _decoded(value: Any, *wanted: type) -> Any:
    """Return what a string holds as JSON where that is of a wanted type, else the value as it is."""
    if type(value) is str:
        try:
            found = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
        if type(found) in wanted:
            return found
    return value


def _list(info: inspect.ListType) -> Take:
    item = _taker(info.item_type)
    least, most = info.min_length or 0, info.max_length

    def take(value: Any, place: str) -> list[Any]:
        value = _decoded(value, list)
        if type(value) is not list:
            raise _wrong(place, "an array", value)
        if len(value) < least or (most is not None and len(value) > most):
            bounds = f"at least {least}" if most is None else f"{least} to {most}"
            raise BadArgument(f"{place}: expected an array of {bounds} entries, not of {len(value)}")
        return [item(one, f"{place}[{index}]") for index, one in enumerate(value)]

    return take


def _mapping(info: inspect.DictType) -> Take:
    item = _taker(info.value_type)

    def take(value: Any, place: str) -> dict[str, Any]:
        value = _decoded(value, dict)
        if type(value) is not dict:
            raise _wrong(place, "an object", value)
        return {key: item(one, f"{place}.{key[:CUT]}") for key, one in value.items()}

    return take


def _literal(info: inspect.LiteralType) -> Take:
    values = [str(value) for value in info.values]

    def take(value: Any, place: str) -> str:
        if type(value) is not str or value not in values:
            raise BadArgument(f"{place}: expected a string, one of {', '.join(values)}")
        return value

    return take


def _union(info: inspect.UnionType) -> Take:
    """Choose by the JSON kind of the value; a string is never decoded where a string is declared."""
    branches = [branch for branch in info.types if not isinstance(branch, inspect.NoneType)]
    if len(branches) == 1:
        return _taker(branches[0])
    by_kind = {_json_type(branch): _taker(branch) for branch in branches}
    words = _words(info)

    def take(value: Any, place: str) -> Any:
        for kinds, taker in by_kind.items():
            if type(value) is kinds:
                return taker(value, place)
        raise _wrong(place, words, value)

    return take


def _json_type(info: inspect.Type) -> type:
    info = _bare(info)[0]
    if isinstance(info, inspect.StrType | inspect.LiteralType):
        return str
    if isinstance(info, inspect.ListType):
        return list
    if isinstance(info, inspect.IntType):
        return int
    if isinstance(info, inspect.BoolType):
        return bool
    return dict


def _bare(info: inspect.Type) -> tuple[inspect.Type, dict[str, Any], dict[str, Any]]:
    """Take the `Meta` wrapper off: the type, its extra JSON schema, its extra facts."""
    if isinstance(info, inspect.Metadata):
        return info.type, dict(info.extra_json_schema or {}), dict(info.extra or {})
    return info, {}, {}


def _taker(info: inspect.Type) -> Take:
    bare, _, extra = _bare(info)
    match bare:
        case inspect.UnionType():
            numbers = [branch for branch in bare.types if isinstance(branch, inspect.IntType)]
            if numbers and len(bare.types) == 2 and "lower_to" in extra:
                return _integer(numbers[0], extra["lower_to"])
            return _union(bare)
        case inspect.StructType():
            return _struct(bare.cls)
        case inspect.StrType():
            return _take_string
        case inspect.BoolType():
            return _take_boolean
        case inspect.IntType():
            return _integer(bare, extra.get("lower_to"))
        case inspect.ListType():
            return _list(bare)
        case inspect.DictType():
            return _mapping(bare)
        case inspect.LiteralType():
            return _literal(bare)
    raise TypeError(f"no rule for arguments of {bare}")


def _words(info: inspect.Type) -> str:
    bare = _bare(info)[0]
    if isinstance(bare, inspect.UnionType):
        return " or ".join(_words(branch) for branch in bare.types if not isinstance(branch, inspect.NoneType))
    return {str: "a string", list: "an array", int: "an integer", bool: "a boolean", dict: "an object"}[
        _json_type(bare)
    ]


# ---------------------------------------------------------------------------------------------------- unknown keys


def _unknown(info: inspect.Type, value: Any, place: str, budget: list[int]) -> Iterator[str]:
    """Find unknown keys in a value and in the entries below it, those given as JSON strings too.

    `budget` holds how many entries may still be looked at: a call of a million of them is not worth a second.
    """
    bare = _bare(info)[0]
    branches = bare.types if isinstance(bare, inspect.UnionType) else (bare,)
    kinds = [_bare(one)[0] for one in branches]
    if not any(isinstance(one, inspect.StrType | inspect.LiteralType) for one in kinds):
        value = _decoded(value, dict, list)
    for kind in kinds:
        if isinstance(kind, inspect.StructType) and type(value) is dict:
            fields = {field.encode_name: field.type for field in kind.fields}
            inner = f"{place}." if place else ""
            yield from (inner + name[:CUT] for name in value if name not in fields)
            for name, below in fields.items():
                yield from _unknown(below, value.get(name), inner + name, budget)
        elif isinstance(kind, inspect.ListType) and type(value) is list:
            for index, item in enumerate(value):
                budget[0] -= 1
                if budget[0] < 0:
                    return
                yield from _unknown(kind.item_type, item, f"{place}[{index}]", budget)


# ----------------------------------------------------------------------------------------------------------- schema


def _schema_of(info: inspect.Type) -> dict[str, Any]:
    bare, said, extra = _bare(info)
    out: dict[str, Any] = {}
    match bare:
        case inspect.UnionType():
            branches = [_schema_of(one) for one in bare.types if not isinstance(one, inspect.NoneType)]
            out = branches[0] if len(branches) == 1 else {"anyOf": branches}
        case inspect.StructType():
            out = {
                "type": "object",
                "properties": {field.encode_name: _with_default(field) for field in bare.fields},
                "required": [field.encode_name for field in bare.fields if field.required],
            }
        case inspect.StrType():
            out = {"type": "string"}
        case inspect.BoolType():
            out = {"type": "boolean"}
        case inspect.IntType():
            out = {"type": "integer"} | ({} if bare.ge is None else {"minimum": bare.ge})
        case inspect.ListType():
            out = {"type": "array", "items": _schema_of(bare.item_type)}
            out |= {"minItems": bare.min_length} if bare.min_length else {}
            out |= {"maxItems": bare.max_length} if bare.max_length else {}
        case inspect.DictType():
            out = {"type": "object", "additionalProperties": _schema_of(bare.value_type)}
        case inspect.LiteralType():
            out = {"type": "string", "enum": list(bare.values)}
    return out | said | ({"maximum": extra["lower_to"]} if "lower_to" in extra else {})


def _with_default(field: inspect.Field) -> dict[str, Any]:
    found = _schema_of(field.type)
    if not field.required and field.default not in (None, msgspec.NODEFAULT):
        found = found | {"default": field.default}
    return found
