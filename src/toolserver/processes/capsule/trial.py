"""The trial run that shows whether the capsule works here."""

from __future__ import annotations

import os
import subprocess
import tempfile

from toolserver.processes.capsule.bubblewrap import Capsule, Unavailable, View
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.workspace.names import MAIN

TRIAL_S = 10.0
"""Seconds that the trial run may take."""


def tried(view: View) -> Capsule:
    """Return a capsule in which `true` has run with the real options. Raises Unavailable."""
    capsule = Capsule(view)
    with tempfile.TemporaryDirectory(prefix="toolserver-trial-") as made:
        root = os.fsencode(os.path.realpath(made))
        fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
        try:
            argv = capsule.argv(WorkingDirectory(MAIN, root, b"", fd), terminal=False, status=False)
        finally:
            os.close(fd)
        try:
            done = subprocess.run(
                [*argv, b"true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"bubblewrap does not run: {error}") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().replace("\n", "; ")
        raise Unavailable(f"bubblewrap does not work here: {reason or f'exit status {done.returncode}'}")
    return capsule
