"""The JSON Schema of a tool's arguments, as GET /tools shows it (specification, section 2)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from toolserver.calls.arguments import Arguments, bare, branches


def schema(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of `kind`: every property has a description, and `required` is always there."""
    return _of_type(inspect.type_info(kind))


def _of_type(info: inspect.Type) -> dict[str, Any]:
    declared, said, extra = bare(info)
    out: dict[str, Any] = {}
    match declared:
        case inspect.UnionType():
            types = [_of_type(branch) for branch in branches(declared)]
            out = types[0] if len(types) == 1 else {"anyOf": types}
        case inspect.StructType():
            out = {
                "type": "object",
                "properties": {field.encode_name: _with_default(field) for field in declared.fields},
                "required": [field.encode_name for field in declared.fields if field.required],
            }
        case inspect.StrType():
            out = {"type": "string"}
        case inspect.BoolType():
            out = {"type": "boolean"}
        case inspect.IntType():
            out = {"type": "integer"} | ({} if declared.ge is None else {"minimum": declared.ge})
        case inspect.ListType():
            out = {"type": "array", "items": _of_type(declared.item_type)}
            out |= {"minItems": declared.min_length} if declared.min_length else {}
            out |= {"maxItems": declared.max_length} if declared.max_length else {}
        case inspect.DictType():
            out = {"type": "object", "additionalProperties": _of_type(declared.value_type)}
        case inspect.LiteralType():
            out = {"type": "string", "enum": list(declared.values)}
    return out | said | ({"maximum": extra["lower_to"]} if "lower_to" in extra else {})


def _with_default(field: inspect.Field) -> dict[str, Any]:
    found = _of_type(field.type)
    if not field.required and field.default not in (None, msgspec.NODEFAULT):
        found = found | {"default": field.default}
    return found
