"""What tells a workspace from a restored or cloned copy of it (specification, section 9)."""

from __future__ import annotations

import contextlib
import hashlib
import os

from toolserver.workspace.bounded import read_regular

_MACHINE = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def workspace_id(root: bytes, given: str) -> str:
    """Return the id of a resolved root as a hash: of `given`, else of the machine's id, the root's path and inode.

    On a machine without an id a copy is told by path and inode alone. Raises OSError where there is no root.
    """
    default = (b"default", _machine(), root, b"%d" % os.stat(root).st_ino)
    parts = (b"given", os.fsencode(given)) if given else default
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _machine() -> bytes:
    for path in _MACHINE:
        with contextlib.suppress(OSError):
            if found := read_regular(path, 4096).strip():
                return found
    return b""
