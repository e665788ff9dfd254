"""Starts a program without copying the server's memory (posix_spawn), whatever the size of the server."""

from collections.abc import Iterable

def spawn(
    path: bytes,
    argv: Iterable[bytes],
    env: Iterable[bytes],
    cwd: int,
    fds: Iterable[tuple[int, int]],
    tty: tuple[int, bytes] | None = None,
) -> int:
    """Run a program in a session of its own; return its pid, which is also its process group.

    `cwd` is a descriptor of its directory. `fds` are pairs of a descriptor here and its number there, taken in order;
    each descriptor here must be above every number there. The program gets these, the inherited 0, 1 and 2 where they
    are not replaced, and no other: close-on-exec is set on all descriptors of this process from 3 up. `tty` is a number
    there and the path of a terminal that is opened as it, before `fds`, and becomes the controlling terminal. Signals
    are unblocked and have their default action. Raises OSError when the program cannot be executed; nothing runs then.
    """
