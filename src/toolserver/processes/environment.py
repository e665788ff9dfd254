"""The environment of commands: the server's, less what is the server's own (specification, section 9)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

OWN = b"TOOLSERVER_"


class Environment:
    """The server's variables without `TOOLSERVER_*` and without any whose value holds a secret.

    `secrets` is asked at each use, since the token may change; the variables are those of the server's start.
    """

    def __init__(self, secrets: Callable[[], Iterable[bytes]]) -> None:
        self._secrets = secrets
        self._all = {name: value for name, value in os.environb.items() if not name.startswith(OWN)}
        self._known: tuple[bytes, ...] | None = None
        self._shown: dict[bytes, bytes] = {}

    def __call__(self) -> dict[bytes, bytes]:
        """Return a new mapping of what a command gets."""
        secrets = tuple(secret for secret in self._secrets() if secret)
        if secrets != self._known:
            self._known = secrets
            self._shown = {
                name: value for name, value in self._all.items() if not any(secret in value for secret in secrets)
            }
        return dict(self._shown)
