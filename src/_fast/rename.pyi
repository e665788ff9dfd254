"""Steps of an atomic write that the standard library lacks: linkat of descriptors, renameat2, syncfs.

Names are single components relative to a directory descriptor. Every function releases the GIL and raises OSError.
"""

def link(fd: int, directory: int, name: bytes) -> None:
    """Give an unnamed file (O_TMPFILE) its name. EEXIST where the name is taken. Needs /proc."""

def replace(fd: int, directory: int, temp: bytes, name: bytes) -> None:
    """Replace `name` by an unnamed file: linkat to `temp`, and renameat directly after it.

    After an error `temp` does not exist.
    """

def exchange(directory: int, one: bytes, other: bytes) -> None:
    """Exchange two names of a directory atomically. EINVAL if the file system does not support it."""

def rename_new(source: int, old: bytes, directory: int, new: bytes) -> None:
    """Rename; EEXIST if the new name exists. Without RENAME_NOREPLACE support: link, then unlink."""

def sync_file_system(fd: int) -> None:
    """Flush all that is written to the file system of a descriptor (syncfs).

    Since Linux 5.8 an error of the disk is raised that came after the descriptor was opened; before, none is. EBADF for
    one opened with O_PATH.
    """
