"""The ignore files of a directory that is watched."""

from __future__ import annotations

import os
from collections.abc import Container

from toolserver.git.rule_files import MAX_RULES, SHORTAGE
from toolserver.workspace.bounded import read_regular
from toolserver.workspace.names import IGNORE_FILES

RuleFiles = tuple[bytes | None, ...]
"""Contents of a directory's ignore files, in the order of IGNORE_FILES, which `Rules.push` takes."""
NO_FILES: RuleFiles = (None,) * len(IGNORE_FILES)


def read_rule_files(directory: int, names: Container[bytes], before: RuleFiles = NO_FILES) -> RuleFiles:
    """Return the contents of an open directory's ignore files, of those that are in `names`.

    Those of `before` where the server lacks a descriptor or memory: rules must not vanish for that.
    """
    try:
        return tuple(_read(directory, name) if name in names else None for name in IGNORE_FILES)
    except OSError:
        return before


def _read(directory: int, name: bytes) -> bytes | None:
    try:
        return read_regular(name, MAX_RULES, directory, os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in SHORTAGE:
            raise
        return None
