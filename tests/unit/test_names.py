"""The names that mean something to the server are the same in Python and in the kernels."""

from __future__ import annotations

import os
import pathlib
import re

import toolserver
from toolserver._fast.ignore import IGNORE_FILES, BaseRules
from toolserver.workspace import names

HEADER = pathlib.Path(toolserver.__file__).parent / "_fast/names.h"


def test_the_kernels_header_has_the_names_of_python():
    found = dict(re.findall(r'constexpr char (\w+)\[\] = "(.*)";', HEADER.read_text()))
    assert found == {name: getattr(names, name).decode() for name in ("GIT", "KD", "AGENTS")}


def test_ignore_files_are_those_of_the_kernel_weakest_first():
    assert names.IGNORE_FILES == IGNORE_FILES == (b".gitignore", b".ignore")


def test_a_rule_of_a_later_kind_beats_those_of_all_earlier_ones(tmp_path: pathlib.Path):
    for rank, name in enumerate(names.IGNORE_FILES):
        (tmp_path / os.fsdecode(name)).write_bytes(b"f\n" if rank % 2 == 0 else b"!f\n")
        fd = os.open(tmp_path, os.O_RDONLY)
        try:
            assert BaseRules().enter(b"", fd).ignored(b"", b"f", False) == (rank % 2 == 0)
        finally:
            os.close(fd)
