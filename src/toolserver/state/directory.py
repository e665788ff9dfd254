"""The server's own files outside the workspace: the state directory and the token files (specification, section 1)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets

PLATFORM_TOKENS = ("/etc/kode/ssh/workspace-token", "/etc/kloudlite/ssh/workspace-token")
"""Where a platform puts the token of a workspace, in the order they are looked at."""


def directory(root: bytes) -> str:
    """Return the state directory of a resolved root; it need not be there.

    `$XDG_STATE_HOME/toolserver/KEY`, else below `~/.local/state`. A relative `$XDG_STATE_HOME` does not count, as its
    own specification says.
    """
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "toolserver", hashlib.sha256(root).hexdigest()[:32])


def all_servers(root: bytes) -> str:
    """Return the directory that holds the state directories of all this user's servers."""
    return os.path.dirname(directory(root))


def make_directory(root: bytes) -> str:
    """Return the state directory of a root, made where it is missing, for this user alone. Raises OSError."""
    path = directory(root)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def own_token_file(root: bytes) -> str:
    """Return the path of the token file that a server of this root makes for itself."""
    return os.path.join(directory(root), "token")


def platform_token_file() -> str | None:
    """Return the platform's token file if there is one."""
    return next((path for path in PLATFORM_TOKENS if os.path.exists(path)), None)


def make_token_file(root: bytes) -> str:
    """Return the root's own token file, with a random token made where there is none. Raises OSError.

    It is made whole, with mode 0600; two servers that start at once use the same token.
    """
    make_directory(root)
    path = own_token_file(root)
    if _blank(path):
        made = f"{path}.{secrets.token_hex(8)}"
        fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
            with contextlib.suppress(FileExistsError):
                if os.path.exists(path):
                    os.rename(made, path)
                else:
                    os.link(made, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(made)
    return path


def _blank(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return not file.read(4096).strip()
    except FileNotFoundError:
        return True
