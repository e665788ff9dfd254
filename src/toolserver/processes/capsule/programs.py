"""Whether a program can be executed inside, asked before bubblewrap would fail over it."""

from __future__ import annotations

import errno
import os
import stat

from toolserver.processes.capsule.mounts import Layout

MAX_INTERPRETERS = 5
"""How many `#!` lines the kernel follows."""


def problem(path: bytes, layout: Layout, directory: bytes, depth: int = 0) -> int:
    """Return why a program cannot be executed inside, as an errno; 0: nothing is known against it.

    A relative path counts from `directory`.
    """
    try:
        real = layout.on_host(os.path.join(directory, path))
        if real is None:
            return 0
        if not real or not stat.S_ISREG(os.stat(real).st_mode) or not os.access(real, os.X_OK):
            return errno.EACCES
        with open(real, "rb") as file:
            first = file.readline(256)
    except OSError as error:
        return error.errno or errno.ENOENT
    words = first.removeprefix(b"#!").split()
    if not first.startswith(b"#!") or not words or depth == MAX_INTERPRETERS:
        return 0
    return problem(words[0], layout, directory, depth + 1)
