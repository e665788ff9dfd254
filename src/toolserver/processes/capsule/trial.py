"""The trial run that shows whether the capsule works here."""

from __future__ import annotations

import os
import subprocess
import tempfile

from toolserver.processes.capsule.bubblewrap import Capsule, Unavailable, blank_descriptors
from toolserver.processes.capsule.view import Settings
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.workspace.names import MAIN

TRIAL_S = 10.0
"""Seconds that the trial run may take."""


def tried(settings: Settings) -> Capsule:
    """Return a capsule in which `true` has run with the real options. Raises Unavailable, Uncoverable."""
    capsule = Capsule(settings)
    with tempfile.TemporaryDirectory(prefix="toolserver-trial-") as made:
        root = os.fsencode(os.path.realpath(made))
        fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            directory = WorkingDirectory(MAIN, root, b"", fd)
            layout = capsule.view.layout(directory)
            argv = capsule.argv(layout, directory, terminal=False, status=False)
        finally:
            os.close(fd)
        try:
            done = _run([*argv, b"true"], blank_descriptors(layout))
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"bubblewrap does not run: {error}") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().replace("\n", "; ")
        raise Unavailable(f"bubblewrap does not work here: {reason or f'exit status {done.returncode}'}")
    return capsule


def _run(argv: list[bytes], blank: tuple[int, ...]) -> subprocess.CompletedProcess[bytes]:
    """Run bubblewrap; a shell gives it the descriptors of nothing, which may be in use here."""
    opened = " ".join(f"{fd}</dev/null" for fd in blank)
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {opened}', "sh", *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TRIAL_S,
        check=False,
    )
