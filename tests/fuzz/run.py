"""Feeds one target from a coverage-guided fuzzer: `run.py NAME [libFuzzer options]`; see `make fuzz`.

A target is a module `fuzz_NAME.py` beside this file with a function `target(data)`. It may only return: an exception, a
report of a sanitizer or a hang is a finding, which libFuzzer keeps as a file.
"""

import importlib
import pathlib
import sys

import atheris

TESTS = pathlib.Path(__file__).parents[1]
sys.path += [str(TESTS), str(TESTS / "property")]


def main() -> None:
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["toolserver"]):  # the kernels are, by their compiler
        target = importlib.import_module(f"fuzz_{name}").target
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
