"""The stubs of the kernels name the arguments that their constructors take; `make lint` checks all else (stubtest)."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest

import toolserver

KERNELS = pathlib.Path(toolserver.__file__).parent / "_fast"
CLASS = re.compile(r"^cdef class (\w+)(?:\((\w+)\))?:\n((?:[ \t].*\n|\n)*)", re.MULTILINE)
CONSTRUCTOR = re.compile(r"def __c?init__\((.*?)\):\n", re.DOTALL)


def arguments(text: str) -> list[tuple[str, bool, bool]]:
    """Return name, whether by keyword only, and whether it has a default, of a constructor in Cython's syntax."""
    found = []
    keyword_only = False
    for part in re.split(r",\s*", text.strip().removesuffix(",")):
        name, equals, _ = part.partition("=")
        name = name.removesuffix(" not None").split()[-1]
        if name.startswith("*"):
            keyword_only = True
        elif name != "self":
            found.append((name, keyword_only, bool(equals)))
    return found


def sources() -> dict[str, tuple[str, list[tuple[str, bool, bool]] | None]]:
    """Return the base and the own arguments of each extension class that has a stub."""
    found = {}
    for source in KERNELS.glob("*.pyx"):
        for name, base, body in CLASS.findall(source.read_text()):
            if name.startswith("_"):
                continue
            own = CONSTRUCTOR.search(body)
            found[name] = (base, arguments(own[1]) if own else None)
    return found


def stubs() -> dict[str, list[tuple[str, bool, bool]]]:
    """Return the arguments of each class whose stub has a constructor."""
    found = {}
    for stub in KERNELS.glob("*.pyi"):
        for node in ast.walk(ast.parse(stub.read_text())):
            if isinstance(node, ast.ClassDef) and node.name in SOURCES:
                for made in node.body:
                    if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                        a = made.args
                        plain = [(arg.arg, False, at >= len(a.args) - len(a.defaults)) for at, arg in enumerate(a.args)]
                        named = [
                            (arg.arg, True, at is not None) for arg, at in zip(a.kwonlyargs, a.kw_defaults, strict=True)
                        ]
                        found[node.name] = plain[1:] + named
    return found


SOURCES = sources()
STUBS = stubs()


@pytest.mark.parametrize("name", SOURCES)
def test_constructors(name: str) -> None:
    """Each extension class on the way up takes its own arguments and leaves the rest to its base."""
    base, own = SOURCES[name]
    want = list(own or [])
    while base in SOURCES:
        base, further = SOURCES[base]
        want += further or []
    assert sorted(STUBS.get(name, [])) == sorted(want)


def test_every_constructor_with_arguments_is_compared() -> None:
    assert {"Glob", "Grep", "Listing", "Needles", "Ring", "Tracked", "Walk"} <= set(STUBS)
    assert STUBS["Grep"] != STUBS["Listing"]
