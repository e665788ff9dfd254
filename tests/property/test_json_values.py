"""The count of JSON values against Python's own parser (specification, section 13)."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver._fast.json import count_values

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(0, 1) | st.text('"\\[]{},: é\n', max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text('"\\[{,a', max_size=4), below, max_size=4),
    max_leaves=30,
)
MANY = 10**9


def model(text: str) -> int:
    """Count with Python's parser; members of one name count each."""

    def values(found: Any) -> int:
        if isinstance(found, tuple):
            return 1 + sum(values(value) for _, value in found)
        return 1 + sum(map(values, found)) if isinstance(found, list) else 1

    return values(json.loads(text, object_pairs_hook=tuple))


@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_the_count_is_exact(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert count_values(text, MANY) == count_values(text.encode(), MANY) == model(text)


@given(st.text('[]{}",:\\1 \n', max_size=40))
def test_any_text(text: str) -> None:
    """What is JSON is counted right; what is not never counts as nothing, nor as more than it has bytes."""
    found = count_values(text, MANY)
    assert 1 <= found <= 1 + len(text)
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    assert found == model(text)


@given(VALUES, st.integers(0, 20))
def test_it_stops_above_the_bound(value: Any, most: int) -> None:
    text = json.dumps(value)
    assert count_values(text, most) == min(model(text), most + 1)


@pytest.mark.parametrize(
    ("text", "values"),
    [("[" * 9, 9), ("{" * 9, 9), ('[{"a":[', 3), ("," * 9, 10), ('["' + '\\"' * 9 + "," * 9, 2), ("", 1)],
)
def test_unfinished_texts(text: str, values: int) -> None:
    """As many as a parser may have made where it stops."""
    assert count_values(text, MANY) == values


def test_the_end_of_a_string() -> None:
    """A quote after an even number of backslashes closes it, after an odd number it does not."""
    for slashes in range(8):
        text = '["' + "\\" * slashes + '",1,1,1'
        assert count_values(text, MANY) == (5 if slashes % 2 == 0 else 2)


def test_a_lone_surrogate() -> None:
    with pytest.raises(UnicodeEncodeError):
        count_values('["\ud800"]', MANY)
