"""Builds the Cython kernels of `toolserver._fast`, and `shelltext`, a library for the shell.

Everything else about the package is in pyproject.toml.

`TS_DEBUG=1` turns bounds checks on, `TS_SANITIZE=1` builds with AddressSanitizer and UBSan (`make asan`), `TS_FUZZ=1`
with both and the coverage that libFuzzer reads, by clang (`make fuzz`). `TS_KERNELS=none` leaves them out.
"""

import os
import pathlib
import re

from Cython.Build import cythonize
from setuptools import Extension, setup

# One extension a kernel. The folder is named through the package, where a source distribution has it too.
HERE = pathlib.Path("src/toolserver/_fast")
KERNELS = sorted(path.stem for path in HERE.glob("*.pyx")) if os.environ.get("TS_KERNELS") != "none" else []
DEBUG = bool(os.environ.get("TS_DEBUG"))
SANITIZE = bool(os.environ.get("TS_SANITIZE"))
FUZZ = bool(os.environ.get("TS_FUZZ"))

COMPILE = ["-std=c++17", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter"]
LINK: list[str] = []
if SANITIZE:
    COMPILE += ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"]
    COMPILE += ["-fno-sanitize-recover=undefined"]
    LINK += ["-fsanitize=address,undefined"]
if FUZZ:  # the runtimes come with the fuzzer, which is preloaded; its UBSan knows no C++
    COMPILE += ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined,fuzzer-no-link"]
    COMPILE += ["-fno-sanitize=function,vptr", "-fno-sanitize-recover=undefined"]

DIRECTIVES = {
    "language_level": 3,
    "embedsignature": False,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "nonecheck": DEBUG,
}


def headers(name: str) -> list[str]:
    """Return the headers that a kernel is built from, those that they include too."""
    found: set[str] = set()
    todo = [HERE / f"{name}.pyx", HERE / f"{name}.pxd"]
    while todo:
        at = todo.pop()
        if at.exists():
            for header in re.findall(r'"(\w+\.h)"', at.read_text()):
                if header not in found and (HERE / header).exists():
                    found.add(header)
                    todo.append(HERE / header)
    return [str(HERE / header) for header in sorted(found)]


# Loaded into /bin/sh, not into Python: it needs the C library that is there, and no sanitizer. What it links is kept
# small, since the dynamic linker maps it at each start of a shell.
SHELL_TEXT = Extension(
    "toolserver._fast.shelltext",
    [str(HERE / "shelltext.c")],
    extra_compile_args=["-std=gnu11", "-O2", "-fvisibility=hidden", "-fno-stack-protector", "-Wall", "-Wextra"],
    extra_link_args=["-nostdlib", "-Wl,-init,shelltext_begin", "-Wl,-z,norelro", "-Wl,-z,noseparate-code"],
)


setup(
    ext_modules=cythonize(
        [
            Extension(
                f"toolserver._fast.{name}",
                [str(HERE / f"{name}.pyx")],
                language="c++",
                include_dirs=[str(HERE)],
                depends=headers(name),
                extra_compile_args=COMPILE,
                extra_link_args=LINK,
            )
            for name in KERNELS
        ],
        include_path=["src"],
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
    )
    + ([SHELL_TEXT] if KERNELS else []),
)
