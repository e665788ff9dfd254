"""Paths as bytes: collapsed by name, and opened beneath a directory descriptor (openat2)."""

NO_SYMLINKS: int
"""For `resolve`: any symlink on the way is refused with ELOOP."""

def collapse(path: bytes) -> bytes | None:
    """Resolve `.`, `..` and doubled slashes by name alone.

    Return the components joined by single slashes, none at the start or the end; empty for the directory itself, None
    where `..` leads above the start. A leading slash is dropped: check for an absolute path before.
    """

def open_beneath(directory: int, path: bytes, flags: int, mode: int = 0, resolve: int = 0) -> int:
    """Open `path` below `directory` so that the kernel itself proves it stays there (openat2, RESOLVE_BENEATH).

    `path` is relative; empty means the directory. O_CLOEXEC is added. Raises OSError: EXDEV where a link or `..` leads
    outside, ENOSYS on a kernel before 5.6, else as open(2).
    """
