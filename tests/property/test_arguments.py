"""The argument check against a plain model of its rules (specification, section 2)."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta, to_builtins

from toolserver.calls.arguments import Arguments, Entry
from toolserver.calls.coercion import check
from toolserver.calls.schema import schema
from toolserver.calls.unknown_keys import unknown_keys
from toolserver.errors import BadArgument


class One(Entry, kw_only=True, frozen=True):
    """An entry."""

    old: Annotated[str, Meta(description="A required string.")]
    many: Annotated[bool, Meta(description="A boolean.")] = False
    line: Annotated[int, Meta(ge=0, description="An integer.")] = 1


class Sample(Arguments, kw_only=True, frozen=True):
    """Every kind of argument that tools declare."""

    text: Annotated[str, Meta(description="A required string.")]
    note: Annotated[str | None, Meta(description="A string.")] = None
    count: Annotated[int, Meta(ge=0, description="An integer, lowered.", extra={"lower_to": 100})] = 7
    offset: Annotated[int, Meta(description="Any integer.")] = 1
    flag: Annotated[bool, Meta(description="A boolean.")] = False
    mode: Annotated[Literal["a", "b"], Meta(description="An enum.")] = "a"
    words: Annotated[list[str] | None, Meta(description="Strings.")] = None
    edits: Annotated[list[One] | None, Meta(description="Entries.")] = None
    either: Annotated[list[str | One] | None, Meta(description="Strings or entries.")] = None
    cmd: Annotated[str | list[str] | None, Meta(description="A string or strings.")] = None
    env: Annotated[dict[str, str] | None, Meta(description="Strings by name.")] = None


Model = Any
WRONG = object()
"""What the model answers for a value that is refused."""


def text(value: Model) -> Model:
    return value if isinstance(value, str) else WRONG


def integer(value: Model) -> Model:
    if isinstance(value, bool):
        return WRONG
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value == int(value):
        return int(value)
    return int(value) if isinstance(value, str) and re.fullmatch("-?[0-9]+", value, re.ASCII) else WRONG


def count(value: Model) -> Model:
    found = integer(value)
    return WRONG if found is WRONG or found < 0 else min(found, 100)


def natural(value: Model) -> Model:
    found = integer(value)
    return WRONG if found is WRONG or found < 0 else found


def boolean(value: Model) -> Model:
    return {"true": True, "false": False}.get(value, WRONG) if isinstance(value, str) else (
        value if isinstance(value, bool) else WRONG
    )  # fmt: skip


def decoded(value: Model, kind: type) -> Model:
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_constant=lambda _: 1 / 0)
        except (ValueError, ZeroDivisionError):
            return WRONG
    return value if isinstance(value, kind) else WRONG


def listed(item: Any) -> Any:
    def take(value: Model) -> Model:
        found = decoded(value, list)
        if found is WRONG:
            return WRONG
        taken = [item(one) for one in found]
        return WRONG if WRONG in taken else taken

    return take


def entry(value: Model) -> Model:
    return struct(decoded(value, dict), {"old": (text, ...), "many": (boolean, False), "line": (natural, 1)})


def string_or_entry(value: Model) -> Model:
    return value if isinstance(value, str) else entry(value)


def string_or_strings(value: Model) -> Model:
    return value if isinstance(value, str) else listed(text)(value)


def mapping(value: Model) -> Model:
    found = decoded(value, dict)
    return WRONG if found is WRONG or any(text(one) is WRONG for one in found.values()) else found


FIELDS: dict[str, tuple[Any, Any]] = {
    "tree": (text, None),
    "text": (text, ...),
    "note": (text, None),
    "count": (count, 7),
    "offset": (integer, 1),
    "flag": (boolean, False),
    "mode": (lambda value: value if value in ("a", "b") else WRONG, "a"),
    "words": (listed(text), None),
    "edits": (listed(entry), None),
    "either": (listed(string_or_entry), None),
    "cmd": (string_or_strings, None),
    "env": (mapping, None),
}


def struct(value: Model, fields: dict[str, tuple[Any, Any]]) -> Model:
    if value is WRONG:
        return WRONG
    out = {}
    for name, (take, default) in fields.items():
        given = value.get(name)
        out[name] = default if given is None else take(given)
        if out[name] is WRONG or out[name] is ...:
            return WRONG
    return out


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.integers(-5, 200).map(float),
    st.integers(-5, 200).map(str),
    st.sampled_from(
        ["true", "false", "True", "", "a", "b", "c", "1.0", "+1", " 1", "1\n", "٣", "-0", "[]", "{}", '["x"]']
    ),
    st.text(max_size=5),
)
one = st.dictionaries(st.sampled_from(["old", "many", "line", "new", "x"]), plain, max_size=4)
value = st.one_of(plain, one, st.lists(st.one_of(plain, one, one.map(json.dumps)), max_size=3))
given_value = st.one_of(value, value.map(json.dumps))
names = st.sampled_from([*FIELDS, "file_path", "x"])
whole = st.integers(0, 10**6)
number = st.one_of(whole, whole.map(float), whole.map(str))
entry_ = st.fixed_dictionaries(
    {"old": st.text(max_size=5)},
    optional={"line": number, "many": st.sampled_from([True, False, "true", "false", None]), "new": plain},
)
words_ = st.lists(st.text(max_size=5), max_size=3)
entries = st.lists(st.one_of(entry_, entry_.map(json.dumps)), max_size=3)
right = st.fixed_dictionaries(
    {"text": st.text(max_size=5)},
    optional={
        "count": number,
        "offset": st.one_of(number, st.integers(-(2**40), 0).map(str)),
        "flag": st.sampled_from([True, False, "true", "false"]),
        "mode": st.sampled_from("ab"),
        "words": st.one_of(words_, words_.map(json.dumps)),
        "edits": st.one_of(entries, entries.map(json.dumps)),
        "either": st.lists(st.one_of(st.text(max_size=5), entry_), max_size=3),
        "cmd": st.one_of(st.text(max_size=5), words_, words_.map(json.dumps)),
        "env": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    },
)
calls = st.one_of(
    right,
    st.tuples(right, names, given_value).map(lambda three: {**three[0], three[1]: three[2]}),
    st.dictionaries(names, given_value, max_size=6),
)


@given(calls)
@settings(derandomize=True, max_examples=400, deadline=None)
def test_as_the_model_says(raw: dict[str, Any]) -> None:
    """The same value as the model's, or refused like there, with a field's name and a type's."""
    want = struct(raw, FIELDS)
    if want is WRONG:
        with pytest.raises(BadArgument, match=r"\b(string|integer|boolean|array|object)\b") as refused:
            check(Sample, raw)
        assert re.split(r"[: \[.]", str(refused.value))[0] in FIELDS
        return
    got = to_builtins(check(Sample, raw))
    assert got == want
    for name, found in got.items():
        assert type(found) is type(want[name])


@given(calls)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_the_check_leaves_the_call_as_it_was(raw: dict[str, Any]) -> None:
    """The raw call is still there for the words of an error, and unknown keys are found without one."""
    before = json.dumps(raw)
    with contextlib.suppress(BadArgument):
        check(Sample, raw)
    strange = unknown_keys(Sample, raw)
    assert json.dumps(raw) == before
    assert len(strange) <= 5
    assert {name for name in raw if name not in FIELDS} <= set(strange) or len(strange) == 5


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({"text": "", "a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}, ["a", "b", "c", "d", "e"]),
        ({"x" * 5000: 1}, ["x" * 64]),
        ({"edits": [{"old": "a", "old_string": 1}, {"new": 2}]}, ["edits[0].old_string", "edits[1].new"]),
        ({"edits": '[{"old_string": 1}]'}, ["edits[0].old_string"]),
        ({"edits": ['{"old_string": 1}', "x"]}, ["edits[0].old_string"]),
        ({"either": [{"file": 1}, '{"file": 1}']}, ["either[0].file"]),
        ({"cmd": ["x"], "env": {"NAME": "value"}}, []),
        ({"text": {"inner": 1}, "words": [{"inner": 1}]}, []),
    ],
)
def test_unknown_keys(raw: dict[str, Any], named: list[str]) -> None:
    """At most five, each cut; of entries too, also given as JSON text; not inside a string that may be one."""
    assert unknown_keys(Sample, raw) == named


def test_a_million_entries_are_not_all_looked_at() -> None:
    raw = {"edits": [{"old": "a"}] * 1_000_000 + [{"strange": 1}], "last": 1}
    assert unknown_keys(Sample, raw) == ["last"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({}, "text is required: expected a string"),
        ({"text": None}, "text is required: expected a string"),
        ({"text": 5}, "text: expected a string, not a number"),
        ({"text": "", "edits": [{"old": "a"}, None]}, "edits[1]: expected an object, not null"),
        ({"text": "", "edits": [{}]}, "edits[0].old is required: expected a string"),
        ({"text": "", "edits": [{"old": "a", "line": -1}]}, "edits[0].line: expected an integer of at least 0, not -1"),
        ({"text": "", "env": {"A": 1}}, "env.A: expected a string, not a number"),
        ({"text": "", "mode": "z"}, "mode: expected a string, one of a, b"),
        ({"text": "", "either": [1]}, "either[0]: expected a string or an object, not a number"),
        ({"text": "", "cmd": ["a", 2]}, "cmd[1]: expected a string, not a number"),
        ({"text": "", "offset": 2**63}, f"offset: expected an integer of at most {2**63 - 1}"),
        ({"text": "", "offset": "9" * 5000}, "offset: expected an integer, not a string"),
        ({"text": "", "offset": 1.5}, "offset: expected an integer, not 1.5"),
    ],
)
def test_words_of_an_error(raw: dict[str, Any], said: str) -> None:
    with pytest.raises(BadArgument) as error:
        check(Sample, raw)
    assert str(error.value) == said


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63) + 1, str(2**63 - 1), 0, -0.0, "-0", "007"])
def test_integers_to_their_ends(number: Any) -> None:
    assert check(Sample, {"text": "", "offset": number}).offset == int(number)


@pytest.mark.parametrize("number", [101, 10**30, 1e300, "9" * 4000])
def test_numbers_above_a_maximum_are_lowered(number: Any) -> None:
    assert check(Sample, {"text": "", "count": number}).count == 100


def test_the_schema_says_the_same() -> None:
    made = schema(Sample)
    assert made["required"] == ["text"]
    assert made["properties"]["count"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 100,
        "default": 7,
        "description": "An integer, lowered.",
    }
    assert made["properties"]["mode"]["enum"] == ["a", "b"]
    assert made["properties"]["edits"]["items"]["required"] == ["old"]
    assert [kind["type"] for kind in made["properties"]["cmd"]["anyOf"]] == ["string", "array"]
    assert all(one["description"] for one in made["properties"].values())
