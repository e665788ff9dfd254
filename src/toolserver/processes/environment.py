"""The environment of commands: the server's, less what is the server's own (specification, section 9)."""

from __future__ import annotations

import os
from collections.abc import Iterable

OWN = b"TOOLSERVER_"


def environment(secrets: Iterable[bytes] = ()) -> dict[bytes, bytes]:
    """Answer the server's variables without `TOOLSERVER_*` and without any whose value holds a secret."""
    hidden = [secret for secret in secrets if secret]
    return {
        name: value
        for name, value in os.environb.items()
        if not name.startswith(OWN) and not any(secret in value for secret in hidden)
    }
