"""The ignore files of a directory that is watched."""

from __future__ import annotations

import os
from collections.abc import Container

from toolserver.git.rule_files import MAX_RULES
from toolserver.workspace.names import IGNORE_FILES

RuleFiles = tuple[bytes | None, ...]
"""Contents of a directory's ignore files, in the order of IGNORE_FILES, which `Rules.push` takes."""


def read_rule_files(directory: int, names: Container[bytes]) -> RuleFiles:
    """Return the contents of an open directory's ignore files, of those that are in `names`."""
    return tuple(_read(directory, name) if name in names else None for name in IGNORE_FILES)


def _read(directory: int, name: bytes) -> bytes | None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None
    with open(fd, "rb") as file:
        try:
            data = file.read(MAX_RULES + 1)
        except OSError:
            return None
    return data if len(data) <= MAX_RULES else None
