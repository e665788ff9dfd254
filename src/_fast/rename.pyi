"""Giving files their names: the steps of a write that the standard library lacks (linkat of descriptors, renameat2).

Names are single components relative to a directory descriptor. Every function lets the GIL go and raises OSError.
"""

def link(fd: int, directory: int, name: bytes) -> None:
    """Give an unnamed file (O_TMPFILE) its name. EEXIST where the name is taken. Needs /proc."""

def replace(fd: int, directory: int, temp: bytes, name: bytes) -> None:
    """Put an unnamed file in the place of `name`, by way of `temp`: linkat and renameat with nothing between them.

    After an error `temp` is gone again.
    """

def exchange(directory: int, one: bytes, other: bytes) -> None:
    """Swap what two names of a directory stand for, in one step. EINVAL where the file system cannot."""

def rename_new(source: int, old: bytes, directory: int, new: bytes) -> None:
    """Rename where nothing has the new name, else EEXIST. Where the file system cannot say so: link, then unlink."""
